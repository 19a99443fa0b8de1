#!/usr/bin/env python3
"""Other people's test suites and programs under the preloaded library, from checkouts of their public repositories (none of their code is here).

    make install PREFIX=$PWD/target/site
    scripts/suites.py --site target/site --mpich ~/src/mpich --osu ~/src/osu-micro-benchmarks --imb ~/src/mpi-benchmarks --mpi4py ~/src/mpi4py \\
        --npb ~/src/NPB --lulesh ~/src/LULESH --hpccg ~/src/HPCCG --lammps /usr/share/lammps/examples/melt --hpcc /usr/share/doc/hpcc/examples -o suites.md

LAMMPS and hpcc are the distribution's (`apt-get install lammps hpcc`).

What passes without the library runs again with a policy of three groups, tuned for a simulated platform, and with others that name one algorithm for each collective, so that
each algorithm comes in turn. With a policy all calls are profiled, too. Programs must print the same, but for times. The table says what passed without, with, and what failed with.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HOSTS = 16  # of a platform; ranks beyond share hosts

PLATFORM = """format = 1
name = "{name}"
[hosts]
send_overhead_s = 5e-6
recv_overhead_s = 6e-6
gap_s = 8e-6
gap_s_per_byte = 8.5e-9
copy_s_per_byte = 0.5e-9
combine_s_per_byte = 1e-9
"""


def group(name, count, latency):
    return f'[[group]]\nname = "{name}"\ncount = {count}\nlatency_s = {latency}\n'


def link(a, b, latency):
    return f'[[link]]\nbetween = ["{a}", "{b}"]\nlatency_s = {latency}\n'


class Site:
    """An installed library, and a folder for policies."""

    def __init__(self, prefix, folder, mpi):
        self.prefix, self.folder, self.mpi = Path(prefix).resolve(), Path(folder), mpi
        self.collwise = self.prefix / "bin/collwise"

    def tune(self, name, text):
        platform, policy = self.folder / f"{name}.platform.toml", self.folder / f"{name}.toml"
        platform.write_text(text)
        subprocess.run([self.collwise, "tune", "--platform", platform, "-o", policy], check=True, stdout=subprocess.DEVNULL)
        return policy

    def policies(self, most):
        """Names and files: one of three groups, and those that name one algorithm for each collective."""
        three = PLATFORM.format(name="three") + group("a", 7, 50e-6) + group("b", 5, 30e-6) + group("c", 4, 40e-6)
        three += link("a", "b", 5e-3) + link("a", "c", 8e-3) + link("b", "c", 2e-3)
        found = {"three groups": self.tune("three", three)}
        one = self.tune("one", PLATFORM.format(name="one") + group("h", HOSTS, 50e-6)).read_text()
        algorithms = self.algorithms()
        for k in range(min(most, max(map(len, algorithms.values())))):
            named = {collective: names[k % len(names)] for collective, names in algorithms.items()}
            policy = self.folder / f"forced-{k}.toml"
            policy.write_text(forced(one, named))
            subprocess.run([self.collwise, "check", policy], check=True, stdout=subprocess.DEVNULL)
            found[" ".join(f"{collective}={name}" for collective, (name, *_) in named.items())] = policy
        return found

    def algorithms(self):
        """Of each collective those that take no library's."""
        listed = json.loads(subprocess.run([self.collwise, "list", "--json"], check=True, capture_output=True).stdout)
        found = {}
        for entry in listed:
            kind = entry["kind"]
            if kind not in ("model", "grouping", "schedule") and entry["name"] != "native":
                found.setdefault(kind, []).append((entry["name"], "--segment" in entry["summary"], "--radix" in entry["summary"]))
        return {kind: names for kind, names in found.items() if kind in COLLECTIVES}

    def hosts(self, policy, ranks):
        """A file with the host of each rank, dealt out over the policy's."""
        groups = [("a", 7), ("b", 5), ("c", 4)] if policy.name == "three.toml" else [("h", HOSTS)]
        names = [f"{name}-{k + 1}" for k in range(HOSTS) for name, count in groups if k < count]
        file = self.folder / f"{policy.stem}.{ranks}.hosts"
        file.write_text("".join(names[rank % len(names)] + "\n" for rank in range(ranks)))
        return file


COLLECTIVES = ["bcast", "barrier", "reduce", "allreduce", "reduce_scatter", "gather", "scatter", "allgather", "alltoall"]


def forced(text, named):
    """A policy whose group does everything by these algorithms."""
    for collective, (name, segment, radix) in named.items():
        # what was measured of the rows that are gone
        at = 0 if collective == "barrier" else 1
        kept = lambda table: "".join(line for line in table[0].splitlines(True) if not re.match(rf'"?(?!{at} )\w+"? = {{', line))
        row = f'{{ from = 0, at = {at}, algorithm = "{name}"' + (', segment = "1KiB", in_flight = 2' if segment else "") + (", radix = 3" if radix else "") + ' },'
        row = row.replace(" },", ', model = "loggp" },')
        text = re.sub(rf"^\[evidence\.group\.h\.{collective}\]\n.*?(?=^\[|\Z)", kept, text, flags=re.M | re.S)
        text = re.sub(rf"^{collective} = \[\n.*?^\]\n", f"{collective} = [\n  {row}\n]\n", text, count=1, flags=re.M | re.S)
    return text


class Test:
    """A command on so many ranks. `same` makes of its output what must be the same in each run, or says that it failed by raising."""

    def __init__(self, suite, name, ranks, command, folder, same, seconds=120):
        self.suite, self.name, self.ranks, self.command, self.folder = suite, name, ranks, [str(c) for c in command], folder
        self.same, self.seconds = same, seconds

    def run(self, site, policy=None):
        """What it printed that must be the same; an error as text."""
        environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1", OMPI_MCA_mpi_yield_when_idle="1")
        preloaded = []
        self.adaptive = 0
        if policy:
            profile = site.folder / "profile.mpiP"
            profile.unlink(missing_ok=True)
            environment |= {"COLLWISE_POLICY": str(policy), "COLLWISE_HOSTS": str(site.hosts(policy, self.ranks)), "COLLWISE_PROFILE": str(profile)}
            preloaded = [str(site.prefix / "lib/libcollwise_preload.so")]
        if site.mpi.is_mpich:
            preloaded.append(str(site.mpi.yielding))
        if preloaded:
            preloaded = ["env", "LD_PRELOAD=" + ":".join(preloaded)]
        command = site.mpi.launch(self.ranks) + preloaded + self.command
        try:
            done = subprocess.run(["timeout", "-k", "5", str(self.seconds), *command], cwd=self.folder, env=environment, capture_output=True, text=True, errors="replace")
        except OSError as error:
            return None, str(error)
        said = done.stdout + done.stderr
        if policy and profile.exists():
            self.adaptive = planned_calls(profile.read_text())
        fell_back = re.search(r"collwise: the program runs as without.*", said)
        if fell_back:
            return None, fell_back[0]
        try:
            return self.same(done.returncode, "\n".join(line for line in said.splitlines() if not line.startswith("collwise: a communicator"))), None
        except ValueError as error:
            return None, f"{error}: {said[-400:]}"


def planned_calls(report):
    """Calls of a process that the policy planned, of the table of collectives by communicator."""
    table = report.partition("--- Collectives by communicator")[2].partition("--- End of Report")[0].splitlines()[2:]
    if not table:
        return 0
    # names of columns say where they are: there were fewer in older reports
    columns = table[0].split()
    calls, predicted = columns.index("Calls"), columns.index("Predicted")
    rows = [line.split() for line in table[1:]]
    return sum(float(row[calls]) for row in rows if len(row) > predicted and row[predicted] != "-")


class Mpi:
    """An MPI library's tools."""

    def __init__(self, name, folder):
        self.is_mpich = name == "mpich"
        self.cc, self.cxx, self.fc = (f"{tool}.{name}" for tool in ("mpicc", "mpicxx", "mpif90"))
        self.mpirun = f"mpirun.{name}"
        if self.is_mpich:
            # its ranks that wait must yield where there are few processors
            self.yielding = Path(folder) / "yield.so"
            source = Path(__file__).parent.parent / "tests/mpich_yield.c"
            subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", self.yielding, source, "-ldl"], check=True)

    def launch(self, ranks):
        return [self.mpirun, "-n", str(ranks)] + ([] if self.is_mpich else ["--oversubscribe"])


def built(folder, *commands, variables=None):
    """Runs the commands that build a suite, quietly."""
    for command in commands:
        done = subprocess.run(command, cwd=folder, shell=True, capture_output=True, text=True, env=dict(os.environ, **(variables or {})))
        if done.returncode:
            print(f"{folder}: {command}: {done.returncode}: {(done.stdout + done.stderr)[-300:]}", file=sys.stderr)


def no_errors(code, said):
    if code or "No Errors" not in said:
        raise ValueError(f"code {code}")
    return "No Errors"


def mpich(folder, mpi):
    """MPICH's own tests of collectives, communicators, datatypes and errors."""
    folder = Path(folder) / "test/mpi"
    if not (folder / "configure").exists():
        built(folder, "cp -r ../../confdb confdb", "./autogen.sh")
    if not (folder / "Makefile").exists():
        built(folder, f"./configure --with-mpi=/usr --disable-fortran --disable-cxx --disable-rma --disable-spawn MPICC={mpi.cc} CC=gcc")
    parts = ("coll", "comm", "datatype", "errhan")
    for part in ("util", *parts):
        built(folder, f"make -k -j2 -C {part} || true")
    for part in parts:
        for line in (folder / part / "testlist").read_text().splitlines():
            words = line.split("#")[0].split()
            # other results than "No Errors", what takes Gigabytes, and settings of MPICH
            if len(words) < 2 or any(word.startswith(("resultTest=", "mem=", "env=")) for word in words) or not (folder / part / words[0]).exists():
                continue
            arguments = [word[4:] for word in words if word.startswith("arg=")]
            name = " ".join([part + "/" + words[0], words[1], *arguments])
            yield Test("MPICH's " + part, name, int(words[1]), ["./" + words[0], *arguments], folder / part, no_errors)


def validated(code, said):
    if code or re.search(r"\bFail\b", said) or "Pass" not in said:
        raise ValueError(f"code {code}")
    return "Pass"


def osu(folder, mpi):
    """The OSU micro-benchmarks' collectives, each result validated."""
    folder = Path(folder)
    if not (folder / "Makefile").exists():
        built(folder, "autoreconf -fi", f"sh ./configure CC={mpi.cc} CXX={mpi.cxx}", "make -k -j2 -C c/util || true", "make -k -j2 -C c/mpi/collective || true")
    for kind in ("blocking", "non_blocking", "persistent"):
        for program in sorted((folder / "c/mpi/collective" / kind).glob("osu_*")):
            if program.suffix or not os.access(program, os.X_OK):
                continue
            sizes = [] if "barrier" in program.name else ["-m", "4:65536"]
            if "reduce" in program.name:
                sizes += ["-T", "mpi_int"]  # sums of its usual type, characters, fail its validation under Open MPI 4.1.4 alone
            for ranks in (4, 7):
                same = validated if sizes else lambda code, said: no_code(code, said) and "done"
                yield Test("OSU " + kind, f"{program.name} {ranks}", ranks, [program, *(["-c"] if sizes else []), *sizes, "-i", "10", "-x", "2"], folder, same)


def no_defects(code, said):
    rows, checked = 0, False
    for line in said.splitlines():
        words = line.split()
        if words[:1] in (["#bytes"], ["#repetitions"]):
            checked = words[0] == "#bytes"
            if checked and words[-1] != "defects":
                raise ValueError("it is built without -DCHECK")
        elif words and words[0].isdigit():
            rows += 1
            if checked and words[-1] != "0.00":
                raise ValueError(f"defects: {line}")
    if code or not rows:
        raise ValueError(f"code {code}")
    return f"{rows} rows"


def imb(folder, mpi):
    """the Intel MPI Benchmarks' collectives, blocking and not, each result but those of barriers, which have none, checked."""
    blocking = "Bcast Barrier Allreduce Reduce Reduce_scatter Reduce_scatter_block Allgather Allgatherv Gather Gatherv Scatter Scatterv Alltoall Alltoallv".split()
    folder = Path(folder) / "src_cpp"
    for target, names in (("MPI1", blocking), ("NBC", ["I" + name.lower() for name in blocking if name != "Reduce_scatter_block"])):
        program = folder / f"IMB-{target}"
        if not program.exists():
            built(folder, f"make -j2 TARGET={target} CC={mpi.cc} CXX={mpi.cxx} CPPFLAGS=-DCHECK CFLAGS=-w CXXFLAGS=-w")
        for name in names:
            for ranks in (4, 7):
                command = [program, name, "-npmin", ranks, "-iter", 10, "-msglog", "0:16"]
                yield Test("IMB " + target, f"{name} {ranks}", ranks, command, folder, no_defects)


def no_code(code, said):
    if code:
        raise ValueError(f"code {code}")
    return said or "done"


def all_ok(code, said):
    if code or not re.search(r"^OK", said, flags=re.M):
        raise ValueError(f"code {code}")
    return "OK"


def mpi4py(folder, mpi):
    """mpi4py's tests of collectives, communicators, operations and errors; mpi4py itself is what this Python imports."""
    folder = Path(folder)
    for name in ("cco_buf", "cco_vec", "cco_obj", "cco_buf_inter", "cco_vec_inter", "cco_obj_inter", "cco_nb_buf", "cco_nb_vec", "cco_pr_buf", "comm", "comm_inter", "op", "errhandler", "threads", "util_pkl5"):
        for ranks in (1, 3, 5):
            yield Test("mpi4py", f"{name} {ranks}", ranks, [sys.executable, "-W", "ignore", "test/main.py", "-q", "-i", f"test_{name}"], folder, all_ok, seconds=300)


def without_times(code, said):
    """Results and verdicts, without what a run takes."""
    taken = r"time|second|mop|flop|date|elapsed|rate|overhead|grind|fom|z/s|^\s*(Total|DDOT|WAXPBY|SPARSEMV)\s*:|DDOT Timing"
    kept = [line for line in no_code(code, said).splitlines() if not re.search(taken, line, flags=re.I)]
    return "\n".join(kept)


def alike(got, expected):
    """The same words, and numbers but for rounding: sums may be made in any order. What is below 1e-20 is the rounding itself."""
    if got is None:
        return False
    pairs = list(zip(got.split(), expected.split(), strict=False))

    def close(a, b):
        try:
            a, b = float(a), float(b)
        except ValueError:
            return a == b
        return abs(a - b) <= 1e-5 * max(abs(a), abs(b)) + 1e-20

    return len(got.split()) == len(expected.split()) and all(close(a, b) for a, b in pairs)


def verified(code, said):
    if code or not re.search(r"VERIFICATION SUCCESSFUL|Verification\s*=\s*SUCCESSFUL", said, flags=re.I):
        raise ValueError(f"code {code}")
    return "SUCCESSFUL"


def npb(folder, mpi, classes="S", ranks=4):
    """NAS parallel benchmarks, by their own verification."""
    folder = Path(folder) / "NPB3.3-MPI"
    make = "MPIF77 = {f}\nFLINK = {f}\nFMPI_LIB =\nFMPI_INC =\nFFLAGS = -O2 -w -fallow-argument-mismatch -fallow-invalid-boz\nFLINKFLAGS = -O2\nMPICC = {c}\nCLINK = {c}\nCMPI_LIB =\nCMPI_INC =\nCFLAGS = -O2 -w\nCLINKFLAGS = -O2\nCC = cc -g\nBINDIR = ../bin\nRAND = randi8\n"
    (folder / "config/make.def").write_text(make.format(f=mpi.fc, c=mpi.cc))
    (folder / "bin").mkdir(exist_ok=True)
    for size in classes:
        for name in ("cg", "ft", "is", "mg"):
            program = folder / f"bin/{name}.{size}.{ranks}"
            if not program.exists():
                built(folder, f"make {name} CLASS={size} NPROCS={ranks}")
            yield Test("NAS", f"{name}.{size} {ranks}", ranks, [program], folder, verified, seconds=300)


def lulesh(folder, mpi, size=10, ranks=8):
    """LULESH: the final energy."""
    folder = Path(folder)
    if not (folder / "lulesh2.0").exists():
        built(folder, f'make -j2 CXX="{mpi.cxx} -DUSE_MPI=1" CXXFLAGS="-O2 -I. -w" LDFLAGS="-O2"')
    yield Test("LULESH", f"-s {size} -i 20, {ranks}", ranks, [folder / "lulesh2.0", "-s", size, "-i", 20], folder, without_times)


def hpccg(folder, mpi, ranks=4):
    """HPCCG: the residuals."""
    folder = Path(folder)
    if not (folder / "test_HPCCG").exists():
        built(folder, f'make -j2 CXX={mpi.cxx} LINKER={mpi.cxx} USE_MPI=-DUSING_MPI CPP_OPT_FLAGS="-O2 -w"')
    yield Test("HPCCG", f"20 20 20, {ranks}", ranks, [folder / "test_HPCCG", 20, 20, 20], folder, without_times)


def lammps(folder, mpi, ranks=4):
    """the distribution's LAMMPS, in the folder of one of its examples: temperature, energies and pressure."""

    def thermo(code, said):
        table = re.search(r"^ *Step +Temp.*?(?=^Loop time)", no_code(code, said), flags=re.M | re.S)
        if not table:
            raise ValueError("no table of steps")
        return table[0]

    for script in sorted(Path(folder).glob("in.*")):
        yield Test("LAMMPS", f"{script.name}, {ranks}", ranks, ["lmp", "-in", script, "-log", "none"], folder, thermo, seconds=300)


def hpcc(folder, mpi, ranks=4):
    """the distribution's hpcc, with the folder of its example's input: the residuals and verdicts of its seven benchmarks, HPL among them."""
    example = next(Path(folder).glob("*hpccinf.txt*"))
    kept = tempfile.TemporaryDirectory()
    work = Path(kept.name)
    (work / "hpccinf.txt").write_bytes(example.read_bytes())
    said = ["sh", "-c", "rm -f hpccoutf.txt; hpcc && if [ ${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}} = 0 ]; then cat hpccoutf.txt; fi"]

    def verdicts(code, said):
        found = re.findall(r"^(.*(?:PASSED|FAILED|Success=\d|errors? *=|Failures=|residual).*)$", no_code(code, said), flags=re.M)
        found = [re.sub(r"-?[0-9]+\.[0-9]+(e[-+]\d+)?", "", line) for line in found]
        if not any("PASSED" in line for line in found) or any("FAILED" in line for line in found):
            raise ValueError("its verification fails")
        return "\n".join(found)

    yield Test("hpcc", f"its example, {ranks}", ranks, said, work, verdicts, seconds=600)
    kept.cleanup()


SUITES = {
    "mpich": mpich,
    "osu": osu,
    "imb": imb,
    "mpi4py": mpi4py,
    "npb": npb,
    "lulesh": lulesh,
    "hpccg": hpccg,
    "lammps": lammps,
    "hpcc": hpcc,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--site", required=True, help="where make install put the library")
    parser.add_argument("--mpi", choices=["openmpi", "mpich"], default="openmpi", help="the MPI library, by Debian's names of its tools")
    parser.add_argument("--policies", type=int, default=99, help="so many of those that name one algorithm for each collective")
    parser.add_argument("--only", default="", help="tests whose suite and name match")
    parser.add_argument("-o", "--output", help="the table, in Markdown")
    for suite, run in SUITES.items():
        parser.add_argument("--" + suite, metavar="FOLDER", help=run.__doc__)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        mpi = Mpi(arguments.mpi, folder)
        site = Site(arguments.site, folder, mpi)
        policies = site.policies(arguments.policies)
        rows, wrong = {}, []
        for suite, tests in SUITES.items():
            given = getattr(arguments, suite)
            for test in tests(Path(given).resolve(), mpi) if given else []:
                if not re.search(arguments.only, f"{test.suite} {test.name}"):
                    continue
                row = rows.setdefault(test.suite, {"tests": 0, "passed without": 0, "passed with": 0, "failed with": 0, "runs": 0, "adaptive": 0})
                row["tests"] += 1
                begin = time.time()
                expected, why = test.run(site)
                print(f"{test.suite}: {test.name}: {'ok' if why is None else 'FAILS WITHOUT: ' + why[:200]} ({time.time() - begin:.1f} s)", flush=True)
                if why is not None:
                    continue
                row["passed without"] += 1
                failed = []
                # what takes long runs with the first policy only
                some = list(policies.items())[: None if time.time() - begin < 10 else 1]
                for name, policy in some:
                    row["runs"] += 1
                    got, why = test.run(site, policy)
                    row["adaptive"] += test.adaptive
                    if why is not None or not alike(got, expected):
                        failed.append(f"{test.suite}: {test.name} with {name}: {why or 'other results: ' + got[-300:]}")
                        print("WRONG", failed[-1], flush=True)
                row["failed with" if failed else "passed with"] += 1
                wrong += failed
        lines = ["| suite | tests | passed without | passed with | failed with | runs with | adaptive calls of a process |", "|---|---|---|---|---|---|---|"]
        lines += [f"| {suite} | {r['tests']} | {r['passed without']} | {r['passed with']} | {r['failed with']} | {r['runs']} | {r['adaptive']:.0f} |" for suite, r in rows.items()]
        text = "\n".join([*lines, "", *wrong, ""])
        print(text)
        if arguments.output:
            Path(arguments.output).write_text(text)
        sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
