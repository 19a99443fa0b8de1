#!/usr/bin/env bash
# What `collwise app whatif` says that a policy saves, beside what it saves: steps.c on the emulated grid, three runs without and with the policy in turns.
#   scripts/app-programs/saved.sh [OUT]
# Needs the grid (`gridemu up platforms/ccgrid2007.toml`). Tunes what it calls first; takes two minutes.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")") root=$(readlink -f "$(dirname "$0")/../..")
out=$(readlink -m "${1:-$root/target/app-programs/saved}") collwise=$root/target/release/collwise
cd "$root" && . scripts/mpi-env.sh
rm -rf "$out" && mkdir -p "$out" && cd "$out"
mpicc -O2 "$here/steps.c" -o steps
on_grid() { "$root/target/release/gridemu" mpirun -n 24 --by "$by" --real-time "$collwise" "$@" >said 2>&1; }
by=slot on_grid tune --fresh --collectives bcast,allreduce,reduce --name grid -o policy.toml
mean() { awk '/^ +\* / { print $2 / 24; exit }' "$1"; }
for by in slot node; do
    for time in 1 2 3; do
        on_grid run --profile "$out/$by.without.$time.mpiP" ./steps
        on_grid run --policy policy.toml --profile "$out/$by.with.$time.mpiP" ./steps
    done
    printf '\nby %s, seconds without and with the policy:\n' "$by"
    for time in 1 2 3; do echo "$(mean "$by.without.$time.mpiP") $(mean "$by.with.$time.mpiP")"; done
    "$collwise" app whatif "$by.without.2.mpiP" --policy policy.toml
done
