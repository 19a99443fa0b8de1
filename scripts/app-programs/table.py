#!/usr/bin/env python3
"""Predicts the runs of run.sh, and compares with them.

    COLLWISE=target/release/collwise scripts/app-programs/table.py OUT

Each number of ranks from the runs at all others; twice as many ranks as in any run; a network ten times as fast, and nodes of four
processors, from the runs on a cluster of one processor a node.
"""
import json
import os
import pathlib
import subprocess
import sys

out = pathlib.Path(sys.argv[1])
HOME = ["--platform", str(out / "slow.toml"), "--library", "mpich", "--placement", "one-per-node"]


def app(*arguments):
    command = [os.environ["COLLWISE"], "app", *map(str, arguments), "--json"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)


def reports(name, kind):
    found = {int(path.name.split(".")[-3]): path for path in out.glob(f"reports/{name}.*.{kind}.mpiP")}
    return dict(sorted(found.items()))


def measured(path):
    rows = path.read_text(errors="replace").split("@--- MPI Time")[1].split("@---")[0].splitlines()
    walls = [float(row.split()[1]) for row in rows if row.split() and row.split()[0].isdigit()]
    return sum(walls) / len(walls)


def of(prediction, path):
    """Error as a share, and whether the run is in the interval, if there is one."""
    wall, interval = measured(path), prediction["interval_s"]
    return prediction["wall_s"] / wall - 1, None if interval is None else interval[0] <= wall <= interval[1]


def compared(name):
    """By kind of prediction: ranks, error, held."""
    runs = reports(name, "slow")
    files = list(runs.values())
    left_out = app("fit", *files, *HOME)["left_out"]
    kinds = {"others": [(one["ranks"], *of(one["predicted"], runs[one["ranks"]])) for one in left_out]}
    twice = [(ranks, k) for k, ranks in enumerate(runs) if k >= 3]
    kinds["twice"] = [(ranks, *of(app("predict", *files[:k], *HOME, "--ranks", ranks)[0], runs[ranks])) for ranks, k in twice]
    for kind, there in {"fast": ["--on", out / "fast.toml"], "four": ["--on", out / "slow.toml", "--on-cores", 4, "--to", "block"]}.items():
        there = lambda ranks, there=there: app("predict", *files, *HOME, "--ranks", ranks, *there)[0]
        kinds[kind] = [(ranks, *of(there(ranks), path)) for ranks, path in reports(name, kind).items()]
    return kinds


def main():
    names = sorted({path.name.rsplit(".", 3)[0] for path in out.glob("reports/*.slow.mpiP")})
    titles = {"others": "from all others", "twice": "twice the ranks", "fast": "network 10x", "four": "4 on a node"}
    all_of = {kind: [] for kind in titles}
    print("| program | " + " | ".join(titles.values()) + " |\n" + "|---" * (len(titles) + 1) + "|")
    for name in names:
        kinds = compared(name)
        cells = [", ".join(f"{ranks}: {100 * error:+.0f}" for ranks, error, _ in kinds[kind]) for kind in titles]
        print(f"| {name} | " + " | ".join(cells) + " |")
        for kind, predictions in kinds.items():
            all_of[kind] += predictions
    print()
    for kind, predictions in [*all_of.items(), ("all", sum(all_of.values(), []))]:
        within = lambda share: sum(abs(error) <= share for _, error, _ in predictions)
        held = [inside for *_, inside in predictions if inside is not None]
        print(f"{titles.get(kind, 'all')}: {len(predictions)} predictions, {within(0.1)} within 10 %, {within(0.3)} within 30 %; "
              f"of {len(held)} intervals {sum(held)} hold")


main()
