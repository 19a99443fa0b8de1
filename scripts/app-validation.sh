#!/usr/bin/env bash
# How well wall times of the mini-applications are predicted: each number of processes from the runs at all others.
#   scripts/app-validation.sh [here|simulated|elsewhere|saved]...      (all of them, if none is named)
# `here` runs on this machine; `simulated` on a cluster of up to 1,024 hosts under SimGrid SMPI (needs `make smpi`), in virtual time;
# `elsewhere` predicts, from those on a cluster, runs on nodes of four processors and on one where half of the processors are half as fast;
# `saved` tunes the broadcast on the simulated grid of 78 hosts, and compares what `collwise app whatif` says that it saves with what it does.
# Tables and pictures are left in target/app.
set -euo pipefail
cd "$(dirname "$(dirname "$(readlink -f "$0")")")"
. scripts/mpi-env.sh
out=target/app collwise=$PWD/target/release/collwise
mkdir -p "$out"
title() { printf '\n== %s\n\n' "$*"; }

# name, program and arguments of each application; a run here takes seconds
here() {
    local latency=2us bandwidth=2GB
    rm -f "$out"/here.*
    for app in "conjugate_gradient 1024 600" "fourier_2d 1024 20"; do
        # shellcheck disable=SC2086 # words
        set -- $app
        # five times all of them, so that what else the machine does meets all alike
        for time in 1 2 3 4 5; do for ranks in 1 2 3 4 6 8 12 16; do
            COLLWISE_PROFILE=$out/here.$1.$ranks.$time.mpiP $MPIRUN -n $ranks target/release/examples/$1 "${@:2}" >"$out/said"
        done; done
        title "$app on this machine of $(nproc) processors"
        "$collwise" app fit "$out"/here."$1".*.mpiP --latency $latency --bandwidth $bandwidth --nodes 1 --cores "$(nproc)" --svg "$out/here.$1.svg" |
            sed -n '/^Each number/,$p'
    done
}

cluster() { # hosts: the file of a uniform cluster of so many
    sed "s/^name = \"icluster2\"/name = \"cluster\"/; s/^count = .*/count = $1/" platforms/icluster2.toml >"$out/cluster.$1.toml"
    echo "$out/cluster.$1.toml"
}

simulated() {
    rm -f "$out"/simulated.*
    for app in "conjugate_gradient 1024 20 1 2 4 8 16 32 64 128 256 512 1024" "fourier_2d 512 1 1 2 4 8 16 32 64 128 256"; do
        # shellcheck disable=SC2086 # words
        set -- $app
        for ranks in "${@:4}"; do
            COLLWISE_PROFILE=$PWD/$out/simulated.$1.$ranks.mpiP smpi/smpirun.sh "$(cluster "$ranks")" slot --cfg=smpi/alltoallv:pair \
                "target/smpi/release/examples/$1" "$2" "$3" >"$out/said"
        done
        title "$1 $2 $3 on simulated clusters"
        "$collwise" app fit "$out"/simulated."$1".*.mpiP --platform "$(cluster 1024)" --library mpich --placement one-per-node --svg "$out/simulated.$1.svg" |
            sed -n '/^Each number/,$p'
    done
}

# runs of 64 processes elsewhere, predicted from those of 2 to 32 on a cluster of one processor a node
elsewhere() {
    local app=conjugate_gradient reports=() mixed=$out/mixed.toml
    for ranks in 2 4 8 16 32; do
        reports+=("$out/elsewhere.$ranks.mpiP")
        COLLWISE_PROFILE=$PWD/$out/elsewhere.$ranks.mpiP smpi/smpirun.sh "$(cluster $ranks)" slot target/smpi/release/examples/$app 1024 20 >"$out/said"
    done
    # two groups of 32 hosts of one network
    sed '/^\[\[group\]\]/,$d; s/^name = .*/name = "mixed"/' platforms/icluster2.toml >"$mixed"
    sed -n '/^\[group.hosts\]/,$p' platforms/icluster2.toml | sed 's/^\[group.hosts\]/[hosts]/' >>"$mixed"
    printf '[[group]]\nname = "%s"\ncount = 32\nlatency_s = 50e-6\n' fast slow >>"$mixed"
    printf '[[link]]\nbetween = ["fast", "slow"]\nlatency_s = 50e-6\n' >>"$mixed"
    compare() { # what it is, platform, placement, options of predict; the environment says how it runs
        title "64 processes of $app 1024 20 $1: predicted, then simulated"
        "$collwise" app predict "${reports[@]}" --platform "$(cluster 32)" --library mpich --ranks 64 --on "$2" "${@:4}"
        COLLWISE_PROFILE=$PWD/$out/there.mpiP smpi/smpirun.sh "$2" "$3" target/smpi/release/examples/$app 1024 20 >"$out/said"
        awk '$1 == "0" { print "simulated " $2 " s"; exit }' "$out/there.mpiP"
    }
    compare "on 64 nodes" "$(cluster 64)" slot
    SMPI_EDIT='/id="slow/s/1Gf/0.5Gf/' compare "where half of the processors are half as fast" "$mixed" slot --clock slow=0.5
    export RANKS_PER_HOST=4 SMPI_EDIT='s/speed="1Gf"/& core="4"/'
    compare "on 16 nodes of 4, in blocks" "$(cluster 16)" slot --on-cores 4
    compare "on 16 nodes of 4, dealt out" "$(cluster 16)" node --on-cores 4 --to cyclic
    unset RANKS_PER_HOST SMPI_EDIT
}

saved() {
    local platform=platforms/ccgrid2007.toml policy=$out/saved.toml
    smpi/smpirun.sh $platform slot target/smpi/release/collwise tune --fresh --collectives bcast --name ccgrid2007 -o "$policy" >"$out/said"
    for how in native adaptive; do
        [ $how = native ] || export COLLWISE_POLICY=$PWD/$policy
        COLLWISE_PROFILE=$PWD/$out/saved.$how.mpiP smpi/smpirun.sh $platform slot --cfg=smpi/reduce:mvapich2 target/smpi/release/examples/k_means 600 512 10 >"$out/said"
    done
    title "k_means 600 512 10 on 78 simulated hosts: what a tuned broadcast would save, and what it saves"
    "$collwise" app whatif "$out/saved.native.mpiP" --policy $policy
    awk 'FNR == 1 { most = 0 } $1 ~ /^[0-9]+$/ && NF == 4 && $2 > most { most = $2 } /^ +\* / { print FILENAME ": wall time " most " s"; nextfile }' "$out"/saved.*.mpiP
}

[ $# -gt 0 ] || set -- here simulated elsewhere saved
for part; do
    case $part in
    here | simulated | elsewhere | saved) $part ;;
    *) sed -n 's/^#   /usage: /p' "$0" && exit 2 ;;
    esac
done
