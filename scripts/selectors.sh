#!/usr/bin/env bash
# adaptive_bcast against the broadcast selectors of SimGrid SMPI, on every host of a platform, in virtual time (needs `make smpi`).
#   scripts/selectors.sh PLATFORM.toml [slot|node] [SIZES] [SELECTOR...]
# The policy is COLLWISE_POLICY, or tuned on the platform's simulator. One row a selector: how many times longer than adaptive_bcast it
# takes at each size. LIMIT (600) seconds of real time are left to each; a size not reached by then, or a crash, is a dash.
set -euo pipefail
root=$(dirname "$(dirname "$(readlink -f "$0")")")
[ $# -ge 1 ] || { sed -n 's/^#   /usage: /p' "$0"; exit 2; }
platform=$1 placement=${2:-node} sizes=${3:-1,1KiB,16KiB,64KiB,256KiB,1MiB,4MiB}
shift $(($# < 3 ? $# : 3))
if [ $# -gt 0 ]; then selectors=("$@"); else
    selectors=(default ompi mpich mvapich2 impi binomial_tree flattree flattree_pipeline NTSL NTSL_Isend NTSB SMP_binary SMP_binomial
        SMP_linear scatter_LR_allgather scatter_rdb_allgather arrival_pattern_aware arrival_pattern_aware_wait arrival_scatter)
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 130' INT TERM
export COLLWISE=$root/target/release/collwise
if [ -z "${COLLWISE_POLICY:-}" ]; then
    export COLLWISE_POLICY=$folder/policy.toml
    "$COLLWISE" tune --platform "$platform" -o "$COLLWISE_POLICY" >/dev/null
fi
printf '%-28s' "$placement"
printf '%10s' ${sizes//,/ }
echo
for selector in "${selectors[@]}"; do
    timeout -k 5 "${LIMIT:-600}" "$root/smpi/smpirun.sh" "$platform" "$placement" --cfg=smpi/bcast:"$selector" \
        "$root/target/smpi/release/examples/adaptive_bcast" "$sizes" 1 >"$folder/out" 2>"$folder/err" || true
    # the example prints one row a size: bytes, adaptive, MPI_Bcast (each a number and a unit), their ratio
    awk -v sizes="$(tr , '\n' <<<"$sizes" | wc -l)" -v selector="$selector" -v best="$folder/adaptive" '
        /[0-9]x$/ { ratio[++rows] = $NF; adaptive[rows] = $1 " " $2 " " $3 }
        END {
            printf "%-28s", selector
            for (k = 1; k <= sizes; k++) printf "%10s", k <= rows ? ratio[k] : "-"
            print ""
            for (k = 1; k <= rows; k++) print adaptive[k] > best
        }' "$folder/out"
done
[ ! -s "$folder/adaptive" ] || echo "adaptive_bcast: $(paste -sd, "$folder/adaptive" | sed 's/,/, /g')"
