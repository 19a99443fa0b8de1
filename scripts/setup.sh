#!/bin/sh
# Installs what building and testing collwise needs beyond a Rust toolchain and a C compiler: an MPI library with its headers, a
# Fortran compiler, libclang (for the mpi crate's bindings), SimGrid for the simulated grid, and for tests a C++ compiler, pkg-config, CMake and, on
# Debian, MPICH. --browser also installs, on Debian, what tests and checks of reports' pages need, which is much: Chromium with Selenium, and ESLint.
# Does nothing where all is there; run it as often as you like. --print only says what it would do.
set -eu

browser="" print=""
for option in "$@"; do
    case $option in
    --browser) browser=yes ;;
    --print) print=yes ;;
    *) echo "setup: the options are --browser and --print, not $option" >&2 && exit 2 ;;
    esac
done

say() { printf 'setup: %s\n' "$*"; }
missing=""
need() { # what for, apt packages, dnf packages; missing when $found is empty
    [ -n "$found" ] || { say "missing: $1"; apt="$apt $2"; dnf="$dnf $3"; missing=yes; }
}
clang_header() { find /usr/lib/clang /usr/lib/llvm-*/lib/clang /usr/lib64/clang -name stddef.h 2>/dev/null | head -n 1; }

apt="" dnf=""
found=$(command -v cc || true)
need "a C compiler" build-essential gcc
found=$(command -v mpirun.openmpi || command -v mpirun || ls /usr/lib64/openmpi/bin/mpirun 2>/dev/null || true)
need "Open MPI (mpirun)" openmpi-bin openmpi
found=$(command -v mpicc.openmpi || command -v mpicc || ls /usr/lib64/openmpi/bin/mpicc 2>/dev/null || true)
need "Open MPI headers (mpicc)" libopenmpi-dev openmpi-devel
found=$(command -v gfortran || true)
need "a Fortran compiler (for tests)" gfortran gcc-gfortran
found=$(command -v c++ || true)
need "a C++ compiler (for tests)" g++ gcc-c++
found=$(command -v pkg-config || true)
need "pkg-config (for tests)" pkg-config pkgconf-pkg-config
found=$(command -v cmake || true)
need "CMake (for tests)" cmake cmake
if command -v apt-get >/dev/null; then # Open MPI stays what mpicc and mpirun mean; elsewhere both have the same names
    found=$(command -v mpicc.mpich >/dev/null && command -v mpirun.mpich || true)
    need "MPICH (for tests)" "mpich libmpich-dev" ""
fi
if [ -n "$browser" ] && command -v apt-get >/dev/null; then # elsewhere these tests are skipped, and counted
    found=$(command -v chromium >/dev/null && command -v chromedriver && /usr/bin/python3 -c 'import selenium' 2>/dev/null && echo yes || true)
    need "Chromium with its driver and Selenium (for tests of reports)" "chromium chromium-driver python3-selenium" ""
    found=$(command -v eslint || true)
    need "ESLint (for make check)" eslint ""
fi
found=$(find /usr/lib /usr/lib64 /usr/local/lib -maxdepth 4 -name 'libclang*.so*' 2>/dev/null | head -n 1)
need "libclang" libclang-dev clang-libs
found=$(clang_header)
need "clang's own headers" libclang-dev clang-devel
found=$(command -v ip || ls /usr/sbin/ip /sbin/ip 2>/dev/null || true)
need "ip (for make grid-demo)" iproute2 iproute
found=$(command -v smpirun || true)
need "SimGrid SMPI (the simulated grid)" libsimgrid-dev simgrid-devel

if [ -z "$missing" ]; then
    say "everything is there"
    exit 0
fi
as_root=""
[ "$(id -u)" = 0 ] || as_root=sudo
if command -v apt-get >/dev/null; then
    install="$as_root apt-get install -y --no-install-recommends$apt"
elif command -v dnf >/dev/null; then
    install="$as_root dnf install -y$dnf"
else
    say "this system has neither apt-get nor dnf: install by hand what is missing, in the packages of your system"
    say "for Debian they are:$apt"
    exit 1
fi
if [ -n "$print" ]; then
    say "would run: $install"
    exit 0
fi
if [ -n "$as_root" ] && ! command -v sudo >/dev/null; then
    say "run as root: $install"
    exit 1
fi
if command -v apt-get >/dev/null; then
    say "running: $as_root apt-get update"
    $as_root apt-get update -q
fi
say "running: $install"
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # a command with its words
$install
