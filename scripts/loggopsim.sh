#!/usr/bin/env bash
# What `collwise predict` says beside what LogGOPSim says of the same messages, for every algorithm of every collective.
#   scripts/loggopsim.sh FOLDER [RANKS...]      (2 to 64 ranks if none are given; exits with 1 if any two differ by more than 1 %)
# FOLDER has the programs LogGOPSim and txt2bin, or they are built there, from its folder `source` or else from the public repository: that takes git, a C++
# compiler, re2c, gengetopt and graphviz (Debian: apt-get install re2c gengetopt libgraphviz-dev). COLLECTIVES="bcast barrier" compares these alone.
#
# The machine has 2 o <= g: beyond, a processor has more to do than it can, and LogGOPSim serves what waits by the time at which it
# was sent, while here it takes turns. LogGOPSim keeps a receiver's port for g + (k-1)G with a message of k bytes and its processor for o + (k-1)G; here the
# bytes alone keep the port, and model loggp charges the processor o. So two columns are of model `tables` with what LogGOPSim charges (os = o,
# or = o + (k-1)G, g = g + (k-1)G, a transit of 2o + L + (k-1)G, and no gap of an empty message, which is what leaves a receiver's port all of g):
#   G = 0, G > 0   judged
#   loggp          model loggp itself, with G > 0; not judged
# What sends empty messages (barriers, handshakes) has their gap. Barriers up trees have several of them come to one port, where LogGOPSim keeps them waiting
# for g each: these are not judged. Nor is rabenseifner in the column G > 0, where receives wait until their place may be written: LogGOPSim charges the processor
# for their messages as soon as they come, here it takes them in when the receive is posted.
# Of messages that come to a port at the same time LogGP does not say which is first. Where two times differ, LogGOPSim runs twice more, with ranks that begin
# a nanosecond after each other, in both orders; the closest of its times is taken.
set -euo pipefail
[ $# -ge 1 ] || { sed -n 's/^#   \(scripts.*\)/usage: \1/p' "$0"; exit 2; }
root=$(dirname "$(dirname "$(readlink -f "$0")")")
programs=$1 collwise=${COLLWISE:-$root/target/release/collwise}
shift
[ -x "$collwise" ] || { echo "loggopsim.sh: failed to run $collwise: build it first"; exit 1; }

# Builds the two programs from their source.
build() {
    mkdir -p "$programs"
    [ -d "$programs/source" ] || git clone --depth 1 https://github.com/spcl/LogGOPSim.git "$programs/source"
    local here=$programs/source/src/LogGOPSim
    (
        cd "$here"
        gengetopt -F loggopsim_cmdline -i loggopsim_cmdline.ggo
        gengetopt -F txt2bin_cmdline -i txt2bin_cmdline.ggo
        re2c -o txt2bin.cpp txt2bin.re
        gcc -O2 -w -c loggopsim_cmdline.c txt2bin_cmdline.c
        g++ -std=c++17 -O2 -w txt2bin.cpp txt2bin_cmdline.o -o txt2bin
        g++ -std=c++17 -O2 -w LogGOPSim.cpp loggopsim_cmdline.o -o LogGOPSim -lcgraph
    ) >&2
    cp "$here/LogGOPSim" "$here/txt2bin" "$programs"
}
if ! [ -x "$programs/LogGOPSim" ] || ! [ -x "$programs/txt2bin" ]; then
    build || { echo "loggopsim.sh: failed to build LogGOPSim in $programs"; exit 1; }
fi
if [ $# -gt 0 ]; then counts=("$@"); else mapfile -t counts < <(seq 2 64); fi
# bytes and segment: small, in segments, and large; blocks of at least a byte for the algorithms that scatter
cases=(64:0 8KiB:512 100000:7000 1MiB:64KiB)
# a size of these collectives is of each rank's block: what all give is as large as messages of others; a barrier has none
of_blocks=(8:0 512:128 4KiB:1KiB)
# LogGOPSim takes whole nanoseconds; messages above S would wait for their receiver
L=5000 o=600 g=3000 G=1 S=2000000000
per_byte=1000000000
loggp=(--model loggp --param "L=${L}e-9" --param "o=${o}e-9" --param "g=${g}e-9" --param "G=${G}e-9")

# What LogGOPSim charges, as parameters of model `tables`: for a gap per byte, and with this gap of an empty message.
charged() {
    local bytes=$((per_byte * $1))
    echo "--model tables --param bytes=0,1,$((per_byte + 1)) --param os=${o}e-9,${o}e-9,${o}e-9 --param or=${o}e-9,${o}e-9,$((o + bytes))e-9" \
        "--param g=${2}e-9,${g}e-9,$((g + bytes))e-9 --param transit=$((2 * o + L))e-9,$((2 * o + L))e-9,$((2 * o + L + bytes))e-9"
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM

# Seconds of one algorithm under a model.
predicted() { "$collwise" predict "${what[@]}" "$@" --json | sed -n 's/.*"predicted_s": \([^,]*\),*/\1/p'; }

# Nanoseconds until the last rank's processor is done: of which messages, with which gap per byte.
simulated() {
    "$programs/LogGOPSim" -b -f "$1" -L $L -o $o -g $g -G "$2" -S $S |
        sed -n 's/^Maximum finishing time at host [0-9]*: \([0-9]*\).*/\1/p'
}

# Lets ranks begin a nanosecond after each other, in the order of their numbers or (-1) the other way round.
skewed() {
    awk -v order="$1" '
        $1 == "num_ranks" { ranks = $2 }
        $1 == "rank" { print; print "begin: calc " (order > 0 ? $2 : ranks - $2) + 1; delete waits; count = 0; next }
        $2 == "send" || $2 == "calc" { waits[++count] = substr($1, 1, length($1) - 1) }
        $1 == "}" { for (k = 1; k <= count; k++) print waits[k] " requires begin" }
        { print }' "$folder/goal" >"$folder/skewed"
    "$programs/txt2bin" -i "$folder/skewed" -o "$folder/bin-skewed"
}

# LogGOPSim's time, with a gap per byte, that is closest to this many seconds.
closest() {
    local times order
    times=$(simulated "$folder/bin" "$1")
    if awk -v a="$times" -v s="$2" 'BEGIN { d = s * 1e9 / a - 1; exit !(d * d > 1e-6) }'; then
        for order in 1 -1; do
            skewed $order
            times+=" $(simulated "$folder/bin-skewed" "$1")"
        done
    fi
    awk -v s="$2" '{ for (k = 1; k <= NF; k++) { d = $k - s * 1e9; d = d < 0 ? -d : d; if (k == 1 || d < least) { least = d; best = $k } } print best }' <<<"$times"
}

"$collwise" list | awk '$2 != "native" { print $1, $2, /takes .*--segment/ ? "segment" : "-" }' | while read -r collective algorithm cut; do
    # the list has models and methods too
    case $collective in bcast | barrier | allreduce | reduce | reduce_scatter | allgather | gather | scatter | alltoall) ;; *) continue ;; esac
    [ -z "${COLLECTIVES:-}" ] || [[ " $COLLECTIVES " = *" $collective "* ]] || continue
    empty=0
    [[ $collective/$algorithm != barrier/* && $algorithm != *rendezvous* ]] || empty=$g
    case $collective in
        barrier) sizes=(0:0) ;;
        bcast | reduce | allreduce) sizes=("${cases[@]}") ;;
        *) sizes=("${of_blocks[@]}") ;;
    esac
    for ranks in "${counts[@]}"; do
        for case in "${sizes[@]}"; do
            what=(--collective "$collective" --algorithm "$algorithm" --ranks "$ranks" --bytes "${case%:*}")
            [ "$cut" != segment ] || what+=(--segment "${case#*:}")
            # some algorithms are for some numbers of ranks alone
            if ! why=$("$collwise" export --to goal "${what[@]}" -o "$folder/goal" 2>&1); then
                [[ $why = *"it wants"* ]] || echo "$collective/$algorithm: $why"
                continue
            fi
            "$programs/txt2bin" -i "$folder/goal" -o "$folder/bin"
            # shellcheck disable=SC2046 # several words
            without=$(predicted $(charged 0 "$empty")) with=$(predicted $(charged $G "$empty"))
            echo "$collective/$algorithm $(closest 0 "$without") $without $(closest $G "$with")" \
                "$(predicted "${loggp[@]}") $with $ranks:$case"
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
        printf "%-34s %5s %10s %10s %10s   the worst that is judged, RANKS:BYTES:SEGMENT\n", "algorithm", "runs", "G = 0", "loggp", "G > 0"
        for (k = 1; k <= count; k++) {
            name = names[k]
            printf "%-34s %5d %10s %10s %10s   %s\n", name, runs[name], percent(1), percent(2), percent(3), where[name]
            judged = name != "barrier/flat" && name != "barrier/tree"
            if (judged && (most[name, 1] > 0.01 || (name !~ /rabenseifner$/ && most[name, 3] > 0.01))) failed = 1
        }
        if (!count) { print "loggopsim.sh: failed to compare: `collwise list` names no algorithm"; failed = 1 }
        exit failed
    }'
