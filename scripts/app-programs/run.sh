#!/usr/bin/env bash
# How well wall times of programs that others wrote are predicted from reports that mpiP writes of them, on simulated clusters.
#   scripts/app-programs/run.sh SOURCES [OUT]
# SOURCES has checkouts of the public repositories LLNL/mpiP (mpip), Mantevo/HPCCG (hpccg), ECP-copa/CoMD (comd) and LLNL/LULESH (lulesh),
# and the folder NPB3.3-MPI of the NAS parallel benchmarks (npb). Each runs under SimGrid SMPI with mpiP linked into it, its processors
# counting blocks of code (counted.c), on one to 64 ranks: one on each node of a cluster, on a network ten times as fast, and on nodes
# of four processors. Reports, of some 17 MB, are left in OUT (target/app-programs); those that are there are not made again.
# OTHER_SIZES=1 runs the same programs with other sizes, which the method was not made on (some nine minutes; an OUT of its own).
# Needs: smpicc, smpicxx, smpif90 (libsimgrid-dev), gfortran, binutils-dev, libiberty-dev. Takes some four minutes.
set -euo pipefail
here=$(dirname "$(readlink -f "$0")") root=$(readlink -f "$(dirname "$0")/../..")
sources=$(readlink -f "$1") out=$(readlink -m "${2:-$root/target/app-programs}")
mkdir -p "$out/bin" "$out/reports"
cd "$out"
# classes of NPB, and sizes of HPCCG (of each process; and of all, whose depth is shared), CoMD and LULESH
classes=W weak="12 12 12" strong="32 32" depth=128 atoms="-x 20 -y 20 -z 20 -N 10" mesh="-s 8 -i 20"
if [ -n "${OTHER_SIZES:-}" ]; then
    classes="A S" weak="20 20 20" strong="24 24" depth=192 atoms="-x 16 -y 16 -z 16 -N 15" mesh="-s 12 -i 15"
fi

# programs are compiled so that blocks of code are counted, and mpiP is a part of each of them: ranks are copies of the program
counted="-O2 -w -fsanitize-coverage=trace-pc"
linked="$out/counted.o -Wl,--whole-archive $out/libmpiP.a -Wl,--no-whole-archive"

build_mpip() {
    cp -r "$sources/mpip" build && cd build
    export LOGNAME=${LOGNAME:-user}
    ./configure CC="smpicc -DSMPI_NO_OVERRIDE_MALLOC=1" CXX=smpicxx F77="gfortran -I/usr/include/smpi" FC=gfortran CFLAGS="-O2 -g -fPIC" \
        --with-wtime --disable-libunwind --disable-bfd --disable-mpi-io --disable-mpi-rma
    make PYTHON=python3
    ar rcs ../libmpiP.a $(make -n -B PYTHON=python3 libmpiP.so | sed -n 's/.*-shared -o libmpiP.so \(.*\.o\).*/\1/p')
    cd ..
    for name in MPI PMPI; do for way in c2f f2c; do objcopy --redefine-sym ${name}_Status_$way=counted_Status_$way libmpiP.a; done; done
    rm -rf build
}

build() {
    gcc -O2 -fPIC -c "$here/counted.c" -o counted.o
    [ -f libmpiP.a ] || build_mpip
    # shellcheck disable=SC2086 # words
    {
        smpicxx $counted -DUSING_MPI "$sources"/hpccg/*.cpp $linked -o bin/hpccg
        smpicxx $counted -DUSE_MPI=1 "$sources"/lulesh/lulesh*.cc $linked -o bin/lulesh
        mkdir -p info && for word in VARIANT HOSTNAME KERNEL_NAME KERNEL_RELEASE PROCESSOR COMPILER COMPILER_VERSION CFLAGS LDFLAGS; do
            echo "#define CoMD_$word \"-\""
        done >info/CoMD_info.h
        smpicc $counted -std=c99 -D_POSIX_C_SOURCE=200809L -DDOUBLE -DDO_MPI -Iinfo "$sources"/comd/src-mpi/*.c $linked -lm -o bin/comd
    }
    # smpif90 leaves objects elsewhere, unless told
    cat >bin/f90 <<'F90'
#!/usr/bin/env bash
for word in "$@"; do case $word in *.f) object=$(basename "${word%.f}").o ;; esac; done
case " $* " in *" -c "*) exec smpif90 "$@" -o "$object" ;; *) exec smpif90 "$@" ;; esac
F90
    chmod +x bin/f90
    rm -rf npb && cp -r "$sources/npb" npb
    find npb -name '*.o' -delete
    mkdir -p npb/bin
    cat >npb/config/make.def <<DEF
MPIF77 = $out/bin/f90
FLINK = $out/bin/f90
FFLAGS = $counted -fallow-argument-mismatch -fallow-invalid-boz
FLINKFLAGS = -O2 $linked
MPICC = smpicc
CLINK = smpicc
CFLAGS = $counted
CLINKFLAGS = -O2 $linked -lm
CC = cc
BINDIR = ../bin
RAND = randi8
DEF
    for class in $classes; do for program in cg ft is mg; do for ranks in 1 2 4 8 16 32 64; do
        make -C npb $program NPROCS=$ranks CLASS="$class"
    done; done; done
}

cluster() { # network's times, as multiples of gigabit Ethernet's
    sed "s/^name = .*/name = \"cluster\"/; s/^count = .*/count = 64/" "$root/platforms/icluster2.toml" |
        awk -v times="$1" '/_s(_per_byte)? = / { $3 *= times } { print }'
}

# reports/NAME.RANKS.KIND.mpiP: name, ranks, kind, platform, ranks of a host, program and its arguments
simulate() {
    local report=$out/reports/$1.$2.$3.mpiP platform=$4 each=$5 folder
    [ -s "$report" ] && return
    folder=$(mktemp -d)
    sed "s/^count = .*/count = $(($2 / each))/" "$platform" >"$folder/platform.toml"
    if ! (cd "$folder" && RANKS_PER_HOST=$each SMPI_EDIT="s/speed=\"1Gf\"/& core=\"$each\"/" "$root/smpi/smpirun.sh" platform.toml slot \
        --cfg=smpi/simulate-computation:no --cfg=smpi/coll-selector:mpich "${@:6}" >said 2>&1); then
        tail "$folder/said" && exit 1
    fi
    # mpiP takes the program's name from where SMPI has none
    find "$folder" -name '*.mpiP' -exec cat {} + | LC_ALL=C sed "s#^@ Command :.*#@ Command : $(basename "$6") ${*:7}#" >"$report"
    rm -rf "$folder"
}

runs() { # name, ranks, program and its arguments
    simulate "$1" "$2" slow "$out/slow.toml" 1 "${@:3}"
    if [ "$2" -ge 16 ] && [ $(($2 % 4)) = 0 ]; then
        simulate "$1" "$2" fast "$out/fast.toml" 1 "${@:3}"
        simulate "$1" "$2" four "$out/slow.toml" 4 "${@:3}"
    fi
}

# among how many ranks collectives are
export MPIP=-y
trap 'tail "$out/build.log"' ERR
build >build.log 2>&1
trap - ERR
cluster 1 >slow.toml
cluster 0.1 >fast.toml
sides=("1 1 1" "2 1 1" "2 2 1" "2 2 2" "4 2 2" "4 4 2" "4 4 4")
for k in 0 1 2 3 4 5 6; do
    ranks=$((1 << k))
    # shellcheck disable=SC2086 # words
    {
        runs hpccg-weak $ranks "$out/bin/hpccg" $weak
        runs hpccg $ranks "$out/bin/hpccg" $strong $((depth / ranks))
    }
    for class in $classes; do for program in cg ft is mg; do
        # a class of its own has no name in the tables
        [ "$classes" = W ] && name=$program || name=$program$class
        runs "$name" $ranks "$out/npb/bin/$program.$class.$ranks"
    done; done
    # shellcheck disable=SC2086 # words
    { set -- ${sides[k]}; runs comd $ranks "$out/bin/comd" $atoms -n 5 -i "$1" -j "$2" -k "$3"; }
done
# shellcheck disable=SC2086 # words
for ranks in 1 8 27 64; do runs lulesh $ranks "$out/bin/lulesh" $mesh; done
COLLWISE=${COLLWISE:-$root/target/release/collwise} "$here/table.py" "$out"
