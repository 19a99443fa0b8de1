#!/usr/bin/env bash
# What `collwise predict` says beside what LogGOPSim says of the same messages, for every algorithm of every collective.
#   scripts/loggopsim.sh FOLDER [RANKS...]      (2 to 64 ranks if none are given; exits with 1 if any two differ by more than 1 %)
# FOLDER has the programs LogGOPSim and txt2bin, or they are built there, from its folder `source` or else from the public repository: that takes git, a C++
# compiler, re2c, gengetopt and graphviz (Debian: apt-get install re2c gengetopt libgraphviz-dev). From the environment:
#   COLLECTIVES="bcast barrier"         compares these alone
#   L=5000 o=600 g=3000 G=1             another machine, in whole nanoseconds, with 2 o <= g: beyond, a processor has more to do than it can, and LogGOPSim
#                                       serves what waits by the time at which it was sent, while here it takes turns. Where messages come while their
#                                       receiver sends, it keeps the port from when the processor takes them, and here they keep it from when they come: with
#                                       L=5600 some differ by 4 %, with others by up to 6 %; with the parameters above none comes then
#
# LogGOPSim keeps a receiver's port for g + (k-1)G with a message of k bytes and its processor for o + (k-1)G; here the
# bytes alone keep the port, and model loggp charges the processor o. So two columns are of model `tables` with what LogGOPSim charges (os = o,
# or = o + (k-1)G, g = g + (k-1)G, a transit of 2o + L + (k-1)G, and no gap of an empty message, which is what leaves a receiver's port all of g):
#   G = 0, G > 0   judged
#   loggp          model loggp itself, with G > 0; not judged
# LogGOPSim charges the processor for a message when it comes, whether or not its receive is posted: so does `predict --eager`.
# Where messages are empty (barriers, handshakes, one byte split in two) they have their gap here, and none keeps the receiver's port; LogGOPSim, which would
# take G off, gets them with a byte. Where several come to one port, g is o (barriers up trees, the byte), for which the processor keeps them waiting and
# not the port, or o is 0 (handshakes), so that they keep no processor when the port may send again.
# Of messages that come to a port at the same time LogGP does not say which is first. Where two times differ, both are found again with ranks that begin
# after each other, by a nanosecond or by what 8 bytes take, in both orders (`predict --skew`), and those two that differ least are compared.
set -euo pipefail
[ $# -ge 1 ] || { sed -n 's/^#   \(scripts.*\)/usage: \1/p' "$0"; exit 2; }
root=$(dirname "$(dirname "$(readlink -f "$0")")")
programs=$1 collwise=${COLLWISE:-$root/target/release/collwise}
shift
[ -x "$collwise" ] || { echo "loggopsim.sh: failed to run $collwise: build it first"; exit 1; }

# Builds the two programs from their source; stops at the first thing that fails.
build() {
    mkdir -p "$programs" &&
        { [ -d "$programs/source" ] || git clone --depth 1 https://github.com/spcl/LogGOPSim.git "$programs/source"; } &&
        (
            cd "$programs/source/src/LogGOPSim" &&
                gengetopt -F loggopsim_cmdline -i loggopsim_cmdline.ggo &&
                gengetopt -F txt2bin_cmdline -i txt2bin_cmdline.ggo &&
                re2c -o txt2bin.cpp txt2bin.re &&
                gcc -O2 -w -c loggopsim_cmdline.c txt2bin_cmdline.c &&
                g++ -std=c++17 -O2 -w txt2bin.cpp txt2bin_cmdline.o -o txt2bin &&
                g++ -std=c++17 -O2 -w LogGOPSim.cpp loggopsim_cmdline.o -o LogGOPSim -lcgraph
        ) >&2 &&
        cp "$programs/source/src/LogGOPSim/LogGOPSim" "$programs/source/src/LogGOPSim/txt2bin" "$programs"
}
if ! [ -x "$programs/LogGOPSim" ] || ! [ -x "$programs/txt2bin" ]; then
    build || { echo "loggopsim.sh: failed to build LogGOPSim in $programs"; exit 1; }
fi
if [ $# -gt 0 ]; then counts=("$@"); else mapfile -t counts < <(seq 2 64); fi
# bytes and segment: one byte, small, in segments, and large
cases=(1:0 64:0 8KiB:512 100000:7000 1MiB:64KiB)
# a size of these collectives is of each rank's block: what all give is as large as messages of others; a barrier has none
of_blocks=(8:0 512:128 4KiB:1KiB)
# LogGOPSim takes whole nanoseconds; messages above S would wait for their receiver
L=${L:-5000} o=${o:-600} g=${g:-3000} G=${G:-1} S=2000000000
# the largest message of all: tables are of none, one, and so many bytes more
per_byte=1048576
folder=$(mktemp -d)
trap 'kill $(jobs -rp) 2>/dev/null || true; rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM

# What LogGOPSim charges, as parameters of model `tables`, its nanoseconds as seconds, whose sums are exact: for a gap per byte, and this gap
# of an empty message.
charged() {
    local bytes=$((per_byte * $1)) transit=$((2 * o + L))
    charges=(--model tables --param "bytes=0,1,$((per_byte + 1))" --param "os=$o,$o,$o" --param "or=$o,$o,$((o + bytes))"
        --param "g=$2,$g,$((g + bytes))" --param "transit=$transit,$transit,$((transit + bytes))")
}

# Sets an array to the nanoseconds of one algorithm under a model, of each size.
predict() {
    local -n times=$1
    local said
    said=$("$collwise" predict --eager "${what[@]}" "${@:2}" --json 2>&1) || {
        [[ $said = *"it wants"* ]] || echo "${what[*]}: $said"
        return 1
    }
    times=()
    while [[ $said =~ predicted_s\":\ ([0-9]+)\.0(.*) ]]; do
        times+=("${BASH_REMATCH[1]}")
        said=${BASH_REMATCH[2]}
    done
}

# Sets `simulated` to the nanoseconds until the last rank's processor is done: of which messages, with which gap per byte.
simulate() {
    local said
    said=$("$programs/LogGOPSim" -b -f "$1" -L "$L" -o "$o" -g "$g" -G "$2" -S $S)
    [[ $said =~ Maximum\ finishing\ time\ at\ host\ [0-9]+:\ ([0-9]+) ]] || return 1
    simulated=${BASH_REMATCH[1]}
}

# Lets ranks begin so many nanoseconds after each other, in the order of their numbers or (-1) the other way round.
skewed() {
    awk -v step="$1" -v order="$2" '
        $1 == "num_ranks" { ranks = $2 }
        $1 == "rank" { print; print "begin: calc " step * (order > 0 ? $2 : ranks - 1 - $2); delete waits; count = 0; next }
        $2 == "send" || $2 == "calc" { waits[++count] = substr($1, 1, length($1) - 1) }
        $1 == "}" { for (k = 1; k <= count; k++) print waits[k] " requires begin" }
        { print }' "$goal" >"$goal.skewed"
    "$programs/txt2bin" -i "$goal.skewed" -o "$goal.skewed.bin"
}

# Sets an element of `theirs` and of `ours` to LogGOPSim's time, with a gap per byte, and ours, of one size and these charges; of those of ranks that begin
# together and one after the other the pair that differs least, where those that begin together differ.
settle() {
    local k=$1 perbyte=$2 size=$3 mine=$4 step order skew
    simulate "$goal.bin" "$perbyte"
    theirs[k]=$simulated ours[k]=$mine
    for step in 1 $((8 * perbyte)); do
        for order in 1 -1; do
            # they are within a thousandth
            ((step > 0 && 1000 * (theirs[k] > ours[k] ? theirs[k] - ours[k] : ours[k] - theirs[k]) > theirs[k])) || continue
            skew=$((step * order))
            predict mine --bytes "$size" "${charges[@]}" --skew="$skew"
            skewed $step $order
            simulate "$goal.skewed.bin" "$perbyte"
            # |a - b| / b by products, which are whole
            (((simulated > mine ? simulated - mine : mine - simulated) * theirs[k] \
                >= (theirs[k] > ours[k] ? theirs[k] - ours[k] : ours[k] - theirs[k]) * simulated)) || theirs[k]=$simulated ours[k]=$mine
        done
    done
}

# A line for each run of an algorithm: its name, LogGOPSim's and our nanoseconds with G = 0, LogGOPSim's, those of loggp and ours with G > 0, and which run.
compare() {
    local name=$1/$2 cut=$3 goal=$4 overhead=$o gap=$g o g sizes ranks part of_part k what bytes size empty charges uncharged simulated theirs ours without with loggp
    case $1 in
        barrier) sizes=(0:0) ;;
        bcast | reduce | allreduce) sizes=("${cases[@]}") ;;
        *) sizes=("${of_blocks[@]}") ;;
    esac
    # one prediction is of all sizes of one segment
    [ "$cut" = segment ] || sizes=("${sizes[*]}")
    for ranks in "${counts[@]}"; do
        for part in "${sizes[@]}"; do
            o=$overhead g=$gap empty=0
            case $name:$part in
                barrier/flat:* | barrier/tree:* | */split_binary:1:*) g=$o empty=$o ;;
                */*_rendezvous:*) o=0 empty=$g ;;
                barrier/*) empty=$g ;;
            esac
            read -ra of_part <<<"$part"
            bytes=$(IFS=, && echo "${of_part[*]%:*}")
            what=(--collective "$1" --algorithm "$2" --ranks "$ranks")
            [ "$cut" != segment ] || what+=(--segment "${part#*:}")
            charged 0 "$empty"
            # some algorithms are for some numbers of ranks alone
            predict without --bytes "$bytes" "${charges[@]}" || continue
            uncharged=("${charges[@]}")
            charged "$G" "$empty"
            predict with --bytes "$bytes" "${charges[@]}"
            predict loggp --bytes "$bytes" --model loggp --param "L=$L" --param "o=$o" --param "g=$g" --param "G=$G"
            for k in "${!of_part[@]}"; do
                # it warns each time that combining is free
                "$collwise" export --to goal "${what[@]}" --bytes "${of_part[k]%:*}" -o "$goal" 2>"$goal.said" || {
                    cat "$goal.said" >&2
                    return 1
                }
                [ "$empty" = 0 ] || sed -i 's/ 0b / 1b /' "$goal"
                "$programs/txt2bin" -i "$goal" -o "$goal.bin"
                size=${of_part[k]%:*}
                settle 1 "$G" "$size" "${with[k]}"
                charges=("${uncharged[@]}")
                settle 0 0 "$size" "${without[k]}"
                charged "$G" "$empty"
                echo "$name ${theirs[0]} ${ours[0]} ${theirs[1]} ${loggp[k]} ${ours[1]} $ranks:${of_part[k]}"
            done
        done
    done
}

# Waits for one of the algorithms under way.
finish() {
    wait -n || { echo "loggopsim.sh: failed to compare an algorithm: see above"; exit 1; }
    running=$((running - 1))
}

# one a processor at a time
started=0 running=0
while read -r collective algorithm cut; do
    # the list has models and methods too
    case $collective in bcast | barrier | allreduce | reduce | reduce_scatter | allgather | gather | scatter | alltoall) ;; *) continue ;; esac
    [ -z "${COLLECTIVES:-}" ] || [[ " $COLLECTIVES " = *" $collective "* ]] || continue
    [ $running -lt "$(nproc)" ] || finish
    started=$((started + 1)) running=$((running + 1))
    part=$folder/$((1000 + started))
    compare "$collective" "$algorithm" "$cut" "$part.goal" >"$part.times" &
done < <("$collwise" list | awk '$2 != "native" { print $1, $2, /takes .*--segment/ ? "segment" : "-" }')
while [ $running -gt 0 ]; do finish; done
touch "$folder/none.times"

cat "$folder"/*.times | awk '
    function off(ours, theirs) { return (d = ours / theirs - 1) < 0 ? -d : d }
    function worst(column, share) { if (share > most[$1, column]) most[$1, column] = share }
    function judge(column, share) { worst(column, share); if (share > judged[$1]) { judged[$1] = share; where[$1] = $7 } }
    function percent(column) { return sprintf("%.3f %%", 100 * most[name, column]) }
    NF != 7 { print "loggopsim.sh: no times for " $0; failed = 1; next }
    !($1 in runs) { names[++count] = $1 }
    { runs[$1]++; judge(1, off($3, $2)); worst(2, off($5, $4)); judge(3, off($6, $4)) }
    END {
        printf "%-34s %5s %10s %10s %10s   the worst that is judged, RANKS:BYTES:SEGMENT\n", "algorithm", "runs", "G = 0", "loggp", "G > 0"
        for (k = 1; k <= count; k++) {
            name = names[k]
            printf "%-34s %5d %10s %10s %10s   %s\n", name, runs[name], percent(1), percent(2), percent(3), where[name]
            if (judged[name] > 0.01) failed = 1
        }
        if (!count) { print "loggopsim.sh: failed to compare: `collwise list` names no algorithm"; failed = 1 }
        exit failed
    }'
