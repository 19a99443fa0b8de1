# make demo   the whole pipeline on this machine and on a simulated grid
# make grid-demo [RANKS=24] [PLATFORM=platforms/ccgrid2007.toml]   a real grid of network namespaces (root): tune, compare
# make test   all tests
# make mpich-test   the tests of running over MPI, on MPICH
# make install [PREFIX=/usr/local] [DESTDIR=]   the command, the C library with what pkg-config and CMake read, and what is preloaded
# make gallery   the pictures of docs/gallery.md, from the shipped policies and from what the emulated grid measured, if that is in docs/gallery
# make check  formatting, lints, docs, and the tests without MPI, as CI runs them

CARGO ?= cargo
RANKS ?= 24
PLATFORM ?= platforms/ccgrid2007.toml
# the mpi crate takes the compiler of the MPI library from MPICC
export MPICC ?= $(shell command -v mpicc.openmpi || command -v mpicc || ls /usr/lib64/openmpi/bin/mpicc 2>/dev/null)
# SMPI builds go to a folder of their own, target/smpi: cargo does not notice another MPICC. With --target, programs alone are linked with these flags, and
# not what runs while the crates are built. What is stripped when it is linked (each simulated rank loads a copy) is not made for our crates.
MACHINE = $(shell rustc -vV | sed -n 's/^host: //p')
SMPI = CARGO_PROFILE_RELEASE_DEBUG=false MPICC=$(CURDIR)/smpi/smpicc-rs RUSTFLAGS="-C link-arg=-shared -C strip=debuginfo" $(CARGO) build --release --target $(MACHINE) --target-dir target/for-smpi
SMPI_LINK = [ -L target/smpi ] || rm -rf target/smpi; ln -sfn for-smpi/$(MACHINE) target/smpi
DEMO = --bin collwise --example adaptive_bcast
NO_MPI = --no-default-features --features cli --target-dir target/no-mpi

.PHONY: demo grid-demo test mpich-test netem-test gallery check build smpi setup browser install install-files

setup:
	scripts/setup.sh

browser:
	scripts/setup.sh --browser

build: setup
	$(CARGO) build --release --workspace --bins --lib --examples

# What programs in C, C++ and Fortran link, what is preloaded under others, and the command. Each is built without what the others need. Preloading finds the
# library for a program's MPI library by its name: install for several, one after the other, with MPICC and CARGO_TARGET_DIR.
PREFIX ?= /usr/local
FROM ?= $(or $(CARGO_TARGET_DIR),target)/release
VERSION = $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
MPI = $(shell $(MPICC) -E -dM capi/install/mpi.c | grep -q OPEN_MPI && echo openmpi || { $(MPICC) -E capi/install/mpi.c >/dev/null && echo mpich; })
LIB = $(DESTDIR)$(PREFIX)/lib
install: setup
	$(CARGO) build --release --bin collwise
	$(CARGO) build --release -p collwise-preload
	$(CARGO) build --release -p collwise-c
	$(MAKE) install-files

# What was built before, from the folder FROM. Programs that are linked with the library for one MPI library stay with it when one for another is installed: that is then
# what -lcollwise and pkg-config mean by default, beside -lcollwise-openmpi and -lcollwise-mpich.
install-files:
	@[ -n "$(MPI)" ] || { echo "install: MPICC ($(MPICC)) is no compiler of an MPI library"; exit 1; }
	@case "$(PREFIX)" in *[!A-Za-z0-9_./+~@%-]*) echo "install: choose a PREFIX of letters, digits and _./+~@%-"; exit 1;; esac
	install -d "$(DESTDIR)$(PREFIX)/bin" "$(LIB)/pkgconfig" "$(LIB)/cmake/collwise" "$(DESTDIR)$(PREFIX)/include"
	install -m 644 include/collwise.h include/collwise.fh "$(DESTDIR)$(PREFIX)/include/"
	install -m 755 "$(FROM)/libcollwise_c.so" "$(LIB)/libcollwise-$(MPI).so"
	install -m 644 "$(FROM)/libcollwise_c.a" "$(LIB)/libcollwise-$(MPI).a"
	for kind in so a; do ln -sfn libcollwise-$(MPI).$$kind "$(LIB)/libcollwise.$$kind"; done
	for name in collwise collwise-$(MPI); do \
	    sed "s|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|; s|@NAME@|$$name|" capi/install/collwise.pc.in > "$(LIB)/pkgconfig/$$name.pc"; \
	done
	install -m 644 capi/install/collwise-config.cmake "$(LIB)/cmake/collwise/"
	[ ! -e "$(FROM)/libcollwise_preload.so" ] || install -m 755 "$(FROM)/libcollwise_preload.so" "$(LIB)/"
	[ ! -e "$(FROM)/collwise" ] || install -m 755 "$(FROM)/collwise" "$(DESTDIR)$(PREFIX)/bin/"

smpi: setup
	$(SMPI) --bin collwise --examples
	$(SMPI_LINK)

# only what the demo runs: most of its time is building
demo: setup
	$(CARGO) build --release $(DEMO)
	$(SMPI) $(DEMO)
	$(SMPI_LINK)
	scripts/demo.sh

grid-demo: build
	scripts/grid-demo.sh $(RANKS) $(PLATFORM)

# the grid needs root and network namespaces, and one test a second MPI library: where they are not, tests are skipped, and counted
test: build smpi browser
	$(CARGO) test --release --workspace
	@if why=$$(target/release/gridemu check 2>&1); then \
	    $(CARGO) test --release --workspace --test grid -- --ignored; \
	else \
	    echo "SKIPPED 1 test: the grid of network namespaces: $$why"; \
	fi
	@if command -v mpicc.mpich >/dev/null && command -v mpirun.mpich >/dev/null; then \
	    MPICC=mpicc.mpich $(CARGO) build --release -p collwise-c --target-dir target/mpich && \
	    $(CARGO) test --release --workspace --test preload -- --ignored; \
	else \
	    echo "SKIPPED 1 test: the preloaded library under MPICH: this machine has no mpicc.mpich or no mpirun.mpich"; \
	fi

# builds for another library go to a folder of their own, as SMPI's; ranks that wait must yield there, too
MPICH_TESTS = $(addprefix --test ,collectives communicators contexts datatypes errors native nonblocking random_mix reductions refused under_way vector)
mpich-test: export MPICC = mpicc.mpich
mpich-test:
	$(CARGO) test --target-dir target/mpich $(MPICH_TESTS) --no-run
	$(CC) -shared -fPIC -O2 -o target/mpich/yield.so tests/mpich_yield.c -ldl
	LD_PRELOAD=$(CURDIR)/target/mpich/yield.so MPIEXEC=mpirun.mpich $(CARGO) test --target-dir target/mpich $(MPICH_TESTS)

# the grid with netem, on a kernel of its own (Debian: apt-get install user-mode-linux kmod); delays on a busy machine may be off
netem-test: build
	scripts/on-uml.sh --check
	$(CARGO) test --release --workspace --test netem -- --ignored

gallery: build
	scripts/gallery.sh

# Lints and docs are of the release profile: what was built for the tests is not built again. Without MPI the command line is tested; what the other tests run is the
# same code with and without it.
check: browser
	$(CARGO) fmt --all --check
	@if command -v eslint >/dev/null; then NODE_PATH=/usr/share/nodejs eslint --no-eslintrc --format unix --config src/report/eslint.json src/report/page.js; \
	else echo "SKIPPED: the report's script is not checked: this machine has no eslint"; fi
	$(CARGO) clippy --release --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --release --workspace --no-deps
	$(CARGO) clippy --release $(NO_MPI) --all-targets -- -D warnings
	$(CARGO) clippy --release --no-default-features --features mpi -- -D warnings
	$(CARGO) test --release $(NO_MPI) --bins --test cli --test names
