#!/usr/bin/env bash
# How well wall times of programs that others wrote are predicted on this machine: NPB's MG (class A) and LAMMPS (its melt, 32,000 atoms), on one to
# eight ranks, nine runs of each in turns (on shared machines runs differ by a quarter), each number of ranks predicted from the runs at all others.
#   [RUNS=9] scripts/app-programs/here.sh NPB [OUT]
# NPB is a checkout's folder NPB3.3-MPI whose config/make.def is for the MPI library here; LAMMPS is the distribution's (lammps). Takes three minutes.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")") root=$(readlink -f "$(dirname "$0")/../..")
npb=$(readlink -f "$1") out=$(readlink -m "${2:-$root/target/app-programs/here}") collwise=$root/target/release/collwise
cd "$root" && . scripts/mpi-env.sh
rm -rf "$out" && mkdir -p "$out" && cd "$out"
run() { # name, ranks, time, program and its arguments
    $MPIRUN -n "$2" "$collwise" run --profile "$out/$1.$2.$3.mpiP" "${@:4}" >said 2>&1
}
for ranks in 1 2 4 8; do make -C "$npb" mg NPROCS=$ranks CLASS=A >said 2>&1; done
for time in $(seq "${RUNS:-9}"); do for ranks in 1 2 4 8; do
    run mg $ranks $time "$npb/bin/mg.A.$ranks"
    run lammps $ranks $time lmp -in "$here/in.melt" -log none
done; done
for name in mg lammps; do
    printf '\n%s\n' "$name"
    "$collwise" app fit "$name".*.mpiP --latency 2us --bandwidth 2GB --nodes 1 --cores "$(nproc)" | sed -n '/^Each number/,$p'
done
