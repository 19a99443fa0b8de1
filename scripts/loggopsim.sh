#!/usr/bin/env bash
# What `collwise predict` says beside what LogGOPSim says of the same messages, for every broadcast algorithm.
#   scripts/loggopsim.sh FOLDER [RANKS...]      (2 to 64 ranks if none are given; exits with 1 if any two differ by more than 1 %)
# FOLDER has the programs LogGOPSim and txt2bin. Their source is the repository spcl/LogGOPSim, whose README says how they are built.
#
# The machine has 2 o <= g: beyond, a processor has more to do than it can, and LogGOPSim serves what waits by the time at which it
# was sent, while here it takes turns. The columns:
#   G = 0      model loggp without a gap per byte: both charge a receiver o.
#   G > 0      model loggp. LogGOPSim charges a receiver o + (k-1)G for k bytes, LogGP o: whoever receives while it sends differs, so this
#              column is not judged.
#   charged    the same machine with what LogGOPSim charges, as model `tables`: os = o, or = o + (k-1)G, g = g + (k-1)G, and a transit of
#              2o + L + (k-1)G.
set -euo pipefail
[ $# -ge 1 ] || { sed -n 's/^#   \(scripts.*\)/usage: \1/p' "$0"; exit 2; }
root=$(dirname "$(dirname "$(readlink -f "$0")")")
programs=$1 collwise=${COLLWISE:-$root/target/release/collwise}
shift
for program in "$programs/LogGOPSim" "$programs/txt2bin" "$collwise"; do
    [ -x "$program" ] || { echo "loggopsim.sh: failed to run $program: build it first"; exit 1; }
done
if [ $# -gt 0 ]; then counts=("$@"); else mapfile -t counts < <(seq 2 64); fi
# bytes and segment: empty, small, in segments, and large; blocks of at least a byte for the algorithms that scatter
cases=(64:0 8KiB:512 100000:7000 1MiB:64KiB)
# LogGOPSim takes whole nanoseconds; messages above S would wait for their receiver
L=5000 o=600 g=3000 G=1 S=2000000000
per_byte=1000000000
loggp=(--model loggp --param "L=${L}e-9" --param "o=${o}e-9" --param "g=${g}e-9")
charged=(--model tables --param "bytes=1,$((per_byte + 1))" --param "os=${o}e-9,${o}e-9" --param "or=${o}e-9,$((o + per_byte * G))e-9"
    --param "g=${g}e-9,$((g + per_byte * G))e-9" --param "transit=$((2 * o + L))e-9,$((2 * o + L + per_byte * G))e-9")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM

# Seconds of one algorithm under a model.
predicted() { "$collwise" predict "${what[@]}" "$@" --json | sed -n 's/.*"predicted_s": \([^,]*\),*/\1/p'; }

# Nanoseconds until the last rank's processor is done.
simulated() {
    "$programs/LogGOPSim" -b -f "$folder/bin" -L $L -o $o -g $g -G "$1" -S $S |
        sed -n 's/^Maximum finishing time at host [0-9]*: \([0-9]*\).*/\1/p'
}

for entry in $("$collwise" list | awk '$1 == "bcast" && $2 != "native" { print $2 (/takes .*--segment/ ? ":segment" : "") }'); do
    algorithm=${entry%:segment}
    for ranks in "${counts[@]}"; do
        for case in "${cases[@]}"; do
            what=(--algorithm "$algorithm" --ranks "$ranks" --bytes "${case%:*}")
            [ "$entry" = "$algorithm" ] || what+=(--segment "${case#*:}")
            "$collwise" export --to goal "${what[@]}" -o "$folder/goal"
            "$programs/txt2bin" -i "$folder/goal" -o "$folder/bin"
            echo "$algorithm $(simulated 0) $(predicted "${loggp[@]}" --param G=0) $(simulated $G)" \
                "$(predicted "${loggp[@]}" --param "G=${G}e-9") $(predicted "${charged[@]}") $ranks:$case"
        done
    done
done | awk '
    function off(seconds, nanoseconds) { return (d = seconds * 1e9 / nanoseconds - 1) < 0 ? -d : d }
    function worst(column, share) { if (share > most[$1, column]) { most[$1, column] = share; if (column != 2) where[$1] = $7 } }
    function percent(column) { return sprintf("%.3f %%", 100 * most[name, column]) }
    NF != 7 { print "loggopsim.sh: no times for " $0; failed = 1; next }
    !($1 in runs) { names[++count] = $1 }
    { runs[$1]++; worst(1, off($3, $2)); worst(2, off($5, $4)); worst(3, off($6, $4)) }
    END {
        printf "%-20s %5s %10s %10s %10s   the worst that is judged, RANKS:BYTES:SEGMENT\n", "algorithm", "runs", "G = 0", "G > 0", "charged"
        for (k = 1; k <= count; k++) {
            name = names[k]
            printf "%-20s %5d %10s %10s %10s   %s\n", name, runs[name], percent(1), percent(2), percent(3), where[name]
            if (most[name, 1] > 0.01 || most[name, 3] > 0.01) failed = 1
        }
        if (!count) { print "loggopsim.sh: failed to compare: `collwise list` names no algorithm of the broadcast"; failed = 1 }
        exit failed
    }'
