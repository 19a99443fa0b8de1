#!/usr/bin/env bash
# What `collwise app whatif` says that a policy saves, beside what it saves: programs of steps.c on the emulated grid, three runs without and with the policy in
# turns; the one in the middle counts.
#   scripts/app-programs/saved.sh [OUT]
# Needs the grid (`gridemu up platforms/ccgrid2007.toml`). Tunes what they call first; takes seven minutes.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")") root=$(readlink -f "$(dirname "$0")/../..")
out=$(readlink -m "${1:-$root/target/app-programs/saved}") collwise=$root/target/release/collwise
cd "$root" && . scripts/mpi-env.sh
rm -rf "$out" && mkdir -p "$out" && cd "$out"
mpicc -O2 "$here/steps.c" -o steps
on_grid() { "$root/target/release/gridemu" mpirun -n 24 --by "$by" --real-time "$collwise" "$@" >said 2>&1; }
by=slot on_grid tune --fresh --collectives bcast,allreduce,reduce --name grid -o policy.toml
# seconds of the process that takes longest, and the report, of the run in the middle
middle() { for report in "$1".*.mpiP; do echo "$(awk '$1 ~ /^[0-9]+$/ && NF == 4 { if ($2 > most) most = $2 } /^ +\* / { print most; exit }' "$report") $report"; done | sort -n | sed -n 2p; }
cat >programs <<EOF
slot sleep b65536 a64 r8192
slot sleep b65536
slot sleep b1000000
slot sleep r262144
slot sleep a1024
slot sleep r8192
slot sleep b1000
slot sleep a64 b262144 a64 r65536 a131072
node sleep b65536 a64 r8192
slot compute b65536 a64 r8192
node compute b65536 a64 r8192
EOF
while read -r by program <&3; do
    name=$by.${program// /.}
    for time in 1 2 3; do
        # shellcheck disable=SC2086 # words
        on_grid run --profile "$out/$name.without.$time.mpiP" ./steps $program
        # shellcheck disable=SC2086
        on_grid run --policy policy.toml --profile "$out/$name.with.$time.mpiP" ./steps $program
    done
    read -r without report < <(middle "$name.without")
    read -r with _ < <(middle "$name.with")
    "$collwise" app whatif "$report" --policy policy.toml --json >"$name.json"
    python3 - "$by: $program" "$without" "$with" "$name.json" <<'EOF'
import json, sys
name, without, with_, said = sys.argv[1], float(sys.argv[2]), float(sys.argv[3]), json.load(open(sys.argv[4]))[0]
saved, at_most, really = said["saved_s"], said["at_most_s"], without - with_
said = f"at most {at_most:.3f} s" if saved is None else f"{saved:.3f} s" + (f" ({(saved / really - 1) * 100:+.0f} %)" if really > 0.05 * without else "")
print(f"{name}: {without:.3f} s without, {with_:.3f} s with the policy: {really:.3f} s saved; whatif says {said}")
EOF
done 3<programs
