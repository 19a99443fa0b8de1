#!/bin/sh
# The whole pipeline twice: on this machine with 8 ranks, and on the 78 simulated hosts of the CCGrid 2007 platform.
set -eu
root=$(dirname "$(dirname "$(readlink -f "$0")")")
cd "$root"
. scripts/mpi-env.sh
out=target/demo
mkdir -p "$out"
title() { printf '\n== %s\n\n' "$*"; }

title "This machine, 8 ranks: measure, group, fit, score, select"
$MPIRUN -n 8 target/release/collwise tune --name this-machine --fresh -o "$out/here.toml"
title "What runs for 64 KiB, and why"
target/release/collwise explain "$out/here.toml" --bytes 64KiB
title "An MPI program whose adaptive_bcast uses this policy, every byte checked"
COLLWISE_POLICY=$out/here.toml $MPIRUN -n 8 target/release/examples/adaptive_bcast

title "78 simulated hosts: the same program text, in virtual time"
smpi/smpirun.sh platforms/ccgrid2007.toml slot target/smpi/release/collwise tune --name ccgrid2007 --collectives bcast,barrier --fresh -o "$out/ccgrid2007.toml"
title "What runs for 1 MiB, and why"
target/release/collwise explain "$out/ccgrid2007.toml" --bytes 1MiB
for bcast in binomial_tree ompi; do
    title "adaptive_bcast against SMPI's $bcast, ranks placed by node"
    COLLWISE_POLICY=$out/ccgrid2007.toml smpi/smpirun.sh platforms/ccgrid2007.toml node --cfg=smpi/bcast:$bcast \
        target/smpi/release/examples/adaptive_bcast 1,1KiB,16KiB,64KiB,256KiB,1MiB,4MiB 1
done
title "done; the policies are in $out"
