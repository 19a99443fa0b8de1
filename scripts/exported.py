#!/usr/bin/env python3
"""What exporting wins: the MPI library by itself, the library with what `collwise export` tells it, and the adaptive collectives, side by side in one run.

    scripts/exported.py policy.toml --launcher "mpirun -n 8 --oversubscribe"
    scripts/exported.py grid.toml --launcher "target/release/gridemu mpirun -n 24 --by slot --real-time" --rounds 5 -o gains.md

In each round the first and the second take turns, each a run of `collwise bench`: what the library takes by itself, beside the adaptive collectives, and what it
takes with the exported file. Every byte is compared. The table has the medians of all rounds, and how many times faster than the library by itself.
"""

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

COLLECTIVES = "bcast,barrier,allreduce,reduce,reduce_scatter,allgather,gather,scatter,alltoall"
MESSAGES, BLOCKS = "8,16KiB,256KiB,1MiB", "8,1KiB,16KiB"
SIZES = {"barrier": None, **dict.fromkeys(["bcast", "allreduce", "reduce"], MESSAGES)}


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policy", type=Path)
    parser.add_argument("--launcher", required=True, help="what starts all ranks, with its options")
    parser.add_argument("--to", default="openmpi", choices=["openmpi", "openmpi-json", "mpich"], help="what is exported")
    parser.add_argument("--collectives", default=COLLECTIVES)
    parser.add_argument("--bytes", help="sizes for all of them; else some that suit each")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repetitions", type=int, default=10, help="of each call in a round")
    parser.add_argument("--collwise", default=str(Path(__file__).resolve().parent.parent / "target/release/collwise"))
    parser.add_argument("-o", "--output", type=Path, help="write the table here, too")
    return parser.parse_args()


def run(command, **more):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1800, **more)
    except subprocess.TimeoutExpired:
        sys.exit(f"exported: {shlex.join(command)} did not end within half an hour")
    if done.returncode != 0:
        sys.exit(f"exported: failed to run {shlex.join(command)}:\n{done.stderr[-2000:]}")
    return done.stdout


def bench(args, collective, environment):
    """The medians of a run by (bytes, contestant)."""
    sizes = args.bytes or SIZES.get(collective, BLOCKS)
    command = [*shlex.split(args.launcher), "env", *(f"{name}={value}" for name, value in environment), args.collwise, "bench", str(args.policy.resolve())]
    command += ["--collective", collective, "--repetitions", str(args.repetitions), "--json"]
    if sizes and collective != "barrier":
        command += ["--bytes", sizes]
    said = run(command)
    rows = json.loads(said[said.index("{") :])["rows"]
    if any(row["wrong"] for row in rows):
        sys.exit(f"exported: wrong bytes in {collective}: {said}")
    return {(row["bytes"], row["contestant"]): statistics.median(row["seconds"]) for row in rows}


def main():
    args = options()
    # beside the policy, where all nodes find it
    with tempfile.TemporaryDirectory(dir=args.policy.resolve().parent) as folder:
        file = Path(folder) / "decisions"
        exported = json.loads(run([args.collwise, "export", str(args.policy), "--to", args.to, "--json", "-o", str(file)]))
        if not exported["environment"]:
            sys.exit("exported: the policy has nothing that this library could be told")
        lines = ["| collective | bytes | by itself | exported | adaptive | exported wins | adaptive wins |", "|---|---|---|---|---|---|---|"]
        wins = {"exported": [], "adaptive": []}
        for collective in args.collectives.split(","):
            found = {}
            for _ in range(args.rounds):
                for environment in ([], exported["environment"]):
                    for (size, contestant), seconds in bench(args, collective, environment).items():
                        if contestant == "native":
                            found.setdefault(size, {}).setdefault("exported" if environment else "itself", []).append(seconds)
                        elif contestant == "adaptive" and not environment:
                            found.setdefault(size, {}).setdefault("adaptive", []).append(seconds)
            for size, times in sorted(found.items()):
                median = {way: statistics.median(all_of_it) for way, all_of_it in times.items()}
                won = {way: median["itself"] / median[way] for way in wins}
                for way, ratio in won.items():
                    wins[way].append(ratio)
                shown = " | ".join(f"{1e3 * median[way]:.3g} ms" for way in ("itself", "exported", "adaptive"))
                lines.append(f"| {collective} | {size} | {shown} | {won['exported']:.2f} | {won['adaptive']:.2f} |")
                print(lines[-1], flush=True)
        for way, ratios in wins.items():
            lines.append("")
            lines.append(f"{way}: {min(ratios):.2f} to {max(ratios):.2f} times as fast, geometric mean {statistics.geometric_mean(ratios):.2f}")
            print(lines[-1])
    if args.output:
        partial = args.output.with_suffix(".partial")
        partial.write_text("\n".join(lines) + "\n")
        os.replace(partial, args.output)


if __name__ == "__main__":
    main()
