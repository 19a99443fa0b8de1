#!/bin/sh
# Runs a program on every host of a platform, simulated by SimGrid SMPI, in virtual time.
#   smpi/smpirun.sh PLATFORM.toml slot|node [OPTION...] PROGRAM [ARGUMENT...]
# RANKS_PER_HOST puts more than one rank on each host: next to each other (slot), or dealt out (node). SMPI_EDIT is a sed expression for the
# platform's XML, for what collwise's platforms do not have: speed="0.5Gf", core="4".
# Options that begin with -- before PROGRAM go to smpirun (such as --cfg=smpi/bcast:ompi). COLLWISE names the collwise command
# that exports the platform (default: target/release/collwise of this checkout).
set -eu
root=$(dirname "$(dirname "$(readlink -f "$0")")")
platform=$1 placement=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT INT TERM
"${COLLWISE:-$root/target/release/collwise}" export "$platform" --to simgrid -o "$folder" >"$folder/said"
xml=$(ls "$folder"/*.xml)
hosts=${xml%.xml}.$placement.hosts
options=$(sed -n 's/.*-hostfile [^ ]* \(.*\) PROGRAM$/\1/p' "$folder/said")
[ -z "${SMPI_EDIT:-}" ] || sed -i "$SMPI_EDIT" "$xml"
for _ in $(seq 2 "${RANKS_PER_HOST:-1}"); do cat "$hosts"; done >"$folder/more"
cat "$folder/more" >>"$hosts"
# the hosts in their order come out again, each as often as it has ranks
[ "$placement" = node ] || awk 'NR == FNR { n[$0]++; next } n[$0] { for (; n[$0] > 0; n[$0]--) print }' "$hosts" "$hosts" >"$folder/sorted"
[ "$placement" = node ] || mv "$folder/sorted" "$hosts"
# each rank is a copy of the program in one process: make room for their thread-local data
export GLIBC_TUNABLES=glibc.rtld.optional_static_tls=2000000
# SMPI's default allgather posts n * n messages at once, among which it searches for each one's end: with hundreds of ranks
# nothing else gets done; its default alltoall ends a program of which not a power of two of ranks take part
# shellcheck disable=SC2086 # options are words
smpirun -np "$(grep -c . "$hosts")" -platform "$xml" -hostfile "$hosts" $options --log=root.fmt:%m%n --log=smpi_coll.thresh:warning --cfg=smpi/allgather:bruck --cfg=smpi/alltoall:ring "$@"
