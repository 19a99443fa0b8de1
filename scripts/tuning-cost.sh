#!/usr/bin/env bash
# What tuning costs on a real grid (see grid-demo.sh), beside measuring every candidate at the same sizes, and what is lost by measuring only
# what the models predict to be fast.
#   scripts/tuning-cost.sh RANKS... [PLATFORM.toml]      (as root; each rank count on a grid of one node a site)
set -euo pipefail
cd "$(dirname "$(dirname "$(readlink -f "$0")")")"
platform=platforms/ccgrid2007.toml counts=()
for argument in "$@"; do
    case $argument in *.toml) platform=$argument ;; *) counts+=("$argument") ;; esac
done
[ ${#counts[@]} -gt 0 ] || counts=(8 16 24 48)
gridemu=$PWD/target/release/gridemu collwise=$PWD/target/release/collwise out=$PWD/target/tuning-cost
mkdir -p "$out"
if $gridemu stats >"$out/stats" 2>&1; then
    echo "a platform is up already: take it down first, with \`target/release/gridemu down\`"
    exit 1
fi
trap '$gridemu down' EXIT
trap 'exit 130' INT TERM
$gridemu up "$platform"
cd "$out"
for ranks in "${counts[@]}"; do
    samples=$ranks.samples.jsonl
    rm -f "$samples"
    for how in tuned exhaustive; do
        option=$([ $how = tuned ] || echo --exhaustive)
        # shellcheck disable=SC2086 # nothing, or an option
        $gridemu mpirun -n "$ranks" --real-time "$collwise" tune --collectives bcast,barrier --verbose $option --samples "$samples" --precision 0.1 --repetitions 7 -o "$ranks.$how.toml" |
            sed -n "/^what  *experiments/,\$p"
    done
    $collwise accuracy "$ranks.tuned.toml" "$samples" | tail -n 2
done
