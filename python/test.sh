#!/bin/sh
# Tests of the package, in an environment of its own: the prefix where `make install` put the command and the library, and the MPI launcher.
#     python/test.sh PREFIX [mpirun]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
prefix=$(cd "$1" && pwd)
mpirun=${2:-mpirun}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet "$here[mpi,plot]"
export COLLWISE="$prefix/bin/collwise" PLATFORMS="$here/../platforms"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1 OMPI_MCA_rmaps_base_oversubscribe=1
"$folder/venv/bin/python" -m unittest discover -s "$here/tests"
cd "$folder"
cat >sites.toml <<'END'
format = 1
name = "sites"
[hosts]
send_overhead_s = 5e-6
recv_overhead_s = 6e-6
gap_s = 8e-6
gap_s_per_byte = 8.5e-9
copy_s_per_byte = 0.5e-9
combine_s_per_byte = 1e-9
[[group]]
name = "a"
count = 3
latency_s = 50e-6
[[group]]
name = "b"
count = 2
latency_s = 30e-6
[[link]]
between = ["a", "b"]
latency_s = 5e-3
END
"$COLLWISE" tune --platform sites.toml -o sites.policy.toml >/dev/null
printf '%s\n' b-1 a-1 a-3 b-2 a-2 >hosts
for ranks in 1 2 5; do
    head -n "$ranks" hosts >hosts.$ranks
    COLLWISE_HOSTS=hosts.$ranks timeout 120 "$mpirun" -n "$ranks" "$folder/venv/bin/python" "$here/tests/collectives.py" sites.policy.toml
done
"$folder/venv/bin/python" "$here/examples/models.py" sites.policy.toml allreduce picture.png
echo "python: all passed"
