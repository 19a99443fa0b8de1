#!/usr/bin/env bash
# Adaptive collectives against the selectors and algorithms of SimGrid SMPI, on every host of a platform, in virtual time (needs `make smpi`).
#   scripts/selectors.sh PLATFORM.toml [slot|node] [SIZES] [SELECTOR...]
# COLLECTIVES, separated by commas (default: bcast; all: every one). The policy is COLLWISE_POLICY, or tuned on the platform's simulator. Without
# SELECTORs: default, ompi, mpich, mvapich2, impi, and every algorithm that SMPI names. The adaptive call is timed beside the first one that ends. One row a
# selector: how many times longer than the adaptive call it takes at each size (blocks, where a collective has blocks), and one for the
# best of all. LIMIT (600) seconds of real time are left to each; a size not reached by then, a crash, or a wrong byte is a dash.
set -euo pipefail
root=$(dirname "$(dirname "$(readlink -f "$0")")")
[ $# -ge 1 ] || { sed -n 's/^#   /usage: /p' "$0"; exit 2; }
platform=$1 placement=${2:-node} sizes=${3:-}
shift $(($# < 3 ? $# : 3))
collectives=${COLLECTIVES:-bcast}
[ "$collectives" != all ] || collectives=bcast,barrier,allreduce,reduce,reduce_scatter,allgather,gather,scatter,alltoall
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
export COLLWISE=$root/target/release/collwise
if [ -z "${COLLWISE_POLICY:-}" ]; then
    COLLWISE_POLICY=$folder/policy.toml
    "$COLLWISE" tune --platform "$platform" --collectives "$collectives" -o "$COLLWISE_POLICY" >/dev/null
fi
# every algorithm of a collective that SMPI names, which it does where it is asked for one that there is not
algorithms() {
    "$root/smpi/smpirun.sh" "$platform" "$placement" --cfg=smpi/"$1":none "$root/target/smpi/release/collwise" list 2>&1 |
        sed -n 's/.*Valid algorithms: \(.*\)\.$/\1/p' | tr -d ' ' | tr , '\n' | awk '!seen[$0]++ && !/^(default|ompi|mpich|mvapich2|impi|automatic)$/' || true
}
# bytes contestant seconds, of the rows without a wrong byte
times() {
    awk -F'[:,]' '
        { gsub(/[ "]/, "") }
        $1 == "bytes" { bytes = $2 }
        $1 == "contestant" { name = $2 }
        reading { seconds = $1; reading = 0 }
        $1 == "seconds" { reading = 1 }
        $1 == "wrong" && $2 == 0 { print bytes, name, seconds }' "$1"
}
for collective in ${collectives//,/ }; do
    case $collective in
    bcast | allreduce | reduce) own=${sizes:-1,1KiB,16KiB,64KiB,256KiB,1MiB,4MiB} ;;
    barrier) own= ;;
    *) own=${sizes:-1,256,1KiB,16KiB} ;;
    esac
    selectors=("$@")
    [ ${#selectors[@]} -gt 0 ] || read -ra selectors <<<"default ompi mpich mvapich2 impi $(algorithms "$collective" | xargs)"
    : >"$folder/times"
    for selector in "${selectors[@]}"; do
        timeout -k 5 "${LIMIT:-600}" "$root/smpi/smpirun.sh" "$platform" "$placement" --cfg=smpi/"$collective":"$selector" \
            "$root/target/smpi/release/collwise" bench "$COLLWISE_POLICY" --collective "$collective" ${own:+--bytes "$own"} \
            --repetitions 1 --warm-ups 2 --json >"$folder/out" 2>"$folder/err" || true
        times "$folder/out" | awk -v selector="$selector" '
            $2 == "native" { print $1, selector, $3 }
            $2 == "adaptive" { print $1, "adaptive", $3 }' >>"$folder/times"
    done
    awk -v title="$collective $placement" -v all="${selectors[*]}" '
        $2 == "adaptive" { if (!($1 in own)) { bytes[++sizes] = $1; own[$1] = $3 } next }
        { took[$2, $1] = $3; if (!($1 in best) || $3 < best[$1]) { best[$1] = $3; name[$1] = $2 } }
        function cell(seconds, b) { return seconds == "" ? "-" : sprintf("%.3gx", seconds / own[b]) }
        END {
            printf "%-32s", title
            for (k = 1; k <= sizes; k++) printf "%12s", bytes[k]
            count = split(all, selectors, " ")
            for (s = 1; s <= count; s++) {
                printf "\n%-32s", selectors[s]
                for (k = 1; k <= sizes; k++) printf "%12s", cell(took[selectors[s], bytes[k]], bytes[k])
            }
            printf "\n%-32s", "the best of them"
            for (k = 1; k <= sizes; k++) printf "%12s", ((bytes[k] in best) ? sprintf("%.4fx", best[bytes[k]] / own[bytes[k]]) : "-")
            printf "\nadaptive:"
            for (k = 1; k <= sizes; k++) printf "%s %.4g s (best %s)", (k > 1 ? "," : ""), own[bytes[k]], name[bytes[k]]
            print "\n"
        }' "$folder/times"
done
