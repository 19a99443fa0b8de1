#!/usr/bin/env bash
# A real multi-site grid on this machine: the CCGrid 2007 platform, Open MPI over TCP between network namespaces.
# Tunes it, shows that the measured latencies give back the platform's groups, and compares broadcasts.
#   scripts/grid-demo.sh [RANKS [PLATFORM.toml]]      (24 ranks by default; 78 fit too)
set -euo pipefail
cd "$(dirname "$(dirname "$(readlink -f "$0")")")"
ranks=${1:-24} platform=${2:-platforms/ccgrid2007.toml}
name=$(basename "$platform" .toml)
gridemu=target/release/gridemu collwise=$PWD/target/release/collwise out=target/grid-demo
mkdir -p "$out"
title() { printf '\n== %s\n\n' "$*"; }

if ! why=$($gridemu check 2>&1); then
    echo "grid-demo: skipped: ${why#gridemu: }"
    exit 0
fi
if $gridemu stats >"$out/stats" 2>&1; then
    echo "a platform is up already: take it down first, with \`target/release/gridemu down\`"
    exit 1
fi
trap '$gridemu down' EXIT
trap 'exit 130' INT TERM

title "A node for each host, latencies eightfold (so that two cores play them exactly): which hosts are alike?"
$gridemu up "$platform" --hosts --nic 1000 --scale 8
$gridemu mpirun -n "$ranks" --real-time "$collwise" discover --name "$name"
$gridemu down

title "A node for each site: tune $ranks ranks over it"
$gridemu up "$platform"
# as exact as a busy machine allows in some minutes; run again, it goes on from the samples in $out
(cd "$out" && ../../$gridemu mpirun -n "$ranks" --real-time "$collwise" tune --collectives bcast,barrier --name "$name" --precision 0.1 --repetitions 11 -o "$name-$ranks.toml")
title "What runs for 1 MiB, and why"
$collwise explain "$out/$name-$ranks.toml" --bytes 1MiB
for by in slot node; do
    title "Broadcasts compared, ranks placed by $by, every byte checked"
    $gridemu mpirun -n "$ranks" --by $by --real-time "$collwise" bench "$out/$name-$ranks.toml" --platform "$platform"
done
title "The router's own account"
$gridemu stats | head -n 3
title "done; the policy is in $out"
