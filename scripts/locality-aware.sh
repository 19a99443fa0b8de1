#!/usr/bin/env bash
# Builds a program that times the adaptive alltoall in turns with the MPI library's and every one of MPI Advance's locality-aware library.
#   scripts/locality-aware.sh SOURCE      (and run it as it says: on one machine, whose clock all ranks share)
# SOURCE is a checkout of mpi-advance/locality_aware; cmake and a C++ compiler build it. Of each contestant all bytes are checked. The library
# takes every so many ranks in their order for those of a node: each number given that divides the ranks is tried.
set -euo pipefail
[ $# -eq 1 ] || { sed -n 's/^#   \(scripts[^(]*\).*/usage: \1/p' "$0"; exit 2; }
root=$(dirname "$(dirname "$(readlink -f "$0")")")
folder=$root/target/locality-aware deps=$root/target/release/deps
cargo=${CARGO:-cargo}
mkdir -p "$folder"
{ cmake -S "$1" -B "$folder" -DENABLE_UNIT_TESTS=OFF -DBENCHMARKS=OFF && cmake --build "$folder" --target locality_aware; } >"$folder/log" 2>&1 ||
    { tail -20 "$folder/log"; echo "locality-aware.sh: failed to build $1"; exit 1; }
# the crates as cargo says that they are built
rlib() { sed -n 's/.*"\([^"]*\/lib'"$1"'-[0-9a-f]*\.rlib\)".*/\1/p' "$folder/crates" | tail -1; }
(cd "$root" && "$cargo" build --release --lib --message-format=json) >"$folder/crates"
collwise=$(sed -n 's/.*"\([^"]*\/libcollwise\.rlib\)".*/\1/p' "$folder/crates" | tail -1)
"${RUSTC:-rustc}" -O --edition 2024 "$root/scripts/locality_aware.rs" -o "$folder/locality_aware" -L dependency="$deps" \
    --extern collwise="$collwise" --extern mpi="$(rlib mpi)" -L native="$folder" -l static=locality_aware -l mpi -l stdc++
echo "built $folder/locality_aware; with blocks in bytes, how many ranks the library takes for neighbours, and repetitions:"
echo "  COLLWISE_POLICY=FILE mpirun -n 24 $folder/locality_aware 4,64,1024,16384 2,6,12 11"
