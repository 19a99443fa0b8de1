"""Policies of collwise: what they do, what that should take, and what was measured.

Everything is asked of the command ``collwise``, whose answers are JSON: what is said here is what is said there.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Sequence, Union

import numpy as np

__all__ = ["Error", "Explanation", "Policy", "Prediction", "Row", "Samples", "command", "predict", "read_samples", "tune"]

Size = Union[int, str]
"""Bytes, or a text such as ``"64KiB"``."""


class Error(RuntimeError):
    """What the command failed to do."""


def command() -> str:
    """The command: the environment variable ``COLLWISE`` names it, or it is on the ``PATH``."""
    found = os.environ.get("COLLWISE") or shutil.which("collwise")
    if not found:
        raise Error("there is no command collwise on the PATH: make install writes it, and COLLWISE may name it")
    return found


def _ask(*arguments: Union[str, Path]) -> Any:
    """What the command answers in JSON."""
    return json.loads(_run(*arguments, "--json"))


def _run(*arguments: Union[str, Path]) -> str:
    done = subprocess.run([command(), *map(str, arguments)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise Error(done.stderr.strip() or f"collwise {arguments[0]} ended with {done.returncode}")
    return done.stdout


@dataclass(frozen=True)
class Row:
    """What is done from a size on."""

    from_bytes: int
    """The first size."""
    at_bytes: int
    """The size that it was made at."""
    predicted_s: Union[float, None]
    """Seconds at that size."""
    done: str
    """What is done, in words."""


@dataclass(frozen=True)
class Explanation:
    """What is done for a size, and why."""

    collective: str
    bytes: int
    form: str
    """What is done over all groups, in words."""
    details: dict[str, Any] = field(repr=False)
    """All that ``collwise explain --json`` says."""


@dataclass(frozen=True)
class Prediction:
    """Seconds by size. It unpacks as two arrays: ``sizes, seconds = prediction``."""

    bytes: np.ndarray
    """Sizes in bytes."""
    predicted_s: np.ndarray
    """Seconds by the policy's models; not a number where they do not say."""
    replayed_s: np.ndarray
    """Seconds by a replay of every message: the simulation of the same; not a number where there is none."""
    native_s: np.ndarray
    """Seconds that the MPI library's own took when the policy was tuned; not a number where that is not known."""

    def __iter__(self):
        return iter((self.bytes, self.predicted_s))


class Policy:
    """A policy file."""

    def __init__(self, path: Union[str, Path]) -> None:
        """Reads and checks it.

        :raises Error: it cannot be read, or is wrong: with its line.
        """
        self.path = Path(path)
        _run("check", self.path)

    def __repr__(self) -> str:
        return f"Policy({str(self.path)!r})"

    def rows(self, collective: str = "bcast") -> list[Row]:
        """What is done over all ranks, from each size on."""
        return [Row(**row) for row in _ask("explain", self.path, "--collective", collective)]

    def explain(self, size: Size, collective: str = "bcast", root: int = 0) -> Explanation:
        """What is done for a size from a root, which is a rank of all the policy's ranks group by group."""
        said = _ask("explain", self.path, "--collective", collective, "--bytes", str(size), "--root", str(root))
        return Explanation(said["collective"], said["bytes"], said["form"], said)

    def predict(self, sizes: Sequence[Size], collective: str = "bcast", root: int = 0) -> Prediction:
        """Seconds of a collective at some sizes, by models and by a simulation of every message."""
        said = _ask("predict", self.path, "--collective", collective, "--bytes", ",".join(map(str, sizes)), "--root", str(root))
        column = lambda name: np.array([np.nan if row.get(name) is None else row[name] for row in said], dtype=float)
        return Prediction(np.array([row["bytes"] for row in said], dtype=np.int64), column("predicted_s"), column("replayed_s"), column("native_s"))


def predict(model: str, parameters: dict[str, float], ranks: int, algorithm: str, sizes: Sequence[Size], collective: str = "bcast", **options: Any) -> np.ndarray:
    """Seconds of one algorithm under one model, by a simulation of every message, without a policy.

    ``options`` are those of ``collwise predict``: ``segment="8KiB"``, ``radix=4``, ``in_flight=2``, ``root=3``.
    """
    given = [word for name, value in parameters.items() for word in ("--param", f"{name}={value!r}")]
    more = [word for name, value in options.items() for word in ("--" + name.replace("_", "-"), str(value))]
    said = _ask("predict", "--model", model, *given, "--ranks", str(ranks), "--collective", collective, "--algorithm", algorithm, "--bytes", ",".join(map(str, sizes)), *more)
    rows = said if isinstance(said, list) else [said]
    return np.array([row["replayed_s"] if row.get("replayed_s") is not None else row["predicted_s"] for row in rows], dtype=float)


def tune(platform: Union[str, Path], output: Union[str, Path], *options: str) -> Policy:
    """Tunes a simulated platform, and writes the policy; ``options`` are those of ``collwise tune``, word by word.

    Real machines are tuned under ``mpirun``, from the command line.
    """
    _run("tune", "--platform", platform, "-o", output, *options)
    return Policy(output)


@dataclass(frozen=True)
class Samples:
    """What was measured."""

    header: dict[str, Any]
    """Platform, hosts, library, timer, date."""
    experiments: list[dict[str, Any]] = field(repr=False)
    """Each experiment with its ``kind``, in the order of the file."""
    seconds: list[np.ndarray] = field(repr=False)
    """Of each experiment its measured times."""

    def kinds(self) -> dict[str, int]:
        """How many experiments there are of each kind."""
        found: dict[str, int] = {}
        for experiment in self.experiments:
            found[experiment["kind"]] = found.get(experiment["kind"], 0) + 1
        return found

    def of(self, kind: str) -> np.ndarray:
        """All experiments of a kind as a structured array: their numbers (bytes are ``out`` and ``back`` of a ``round_trip``), and in seconds ``median_s``,
        ``min_s`` and ``max_s`` of ``count`` times.

        :raises KeyError: there is none.
        """
        chosen = [(e, s) for e, s in zip(self.experiments, self.seconds) if e["kind"] == kind and len(s)]
        if not chosen:
            raise KeyError(f"no experiment of kind {kind!r}: there are {', '.join(sorted(self.kinds()))}")
        names = [name for name, value in chosen[0][0].items() if isinstance(value, (int, float)) and not isinstance(value, bool)]
        names = [name for name in names if all(isinstance(e.get(name), (int, float)) for e, _ in chosen)]
        types = [(name, np.int64 if all(isinstance(e[name], int) for e, _ in chosen) else float) for name in names]
        times = [("median_s", float), ("min_s", float), ("max_s", float), ("count", np.int64)]
        rows = [(*(e[name] for name in names), float(np.median(s)), float(s.min()), float(s.max()), len(s)) for e, s in chosen]
        return np.array(rows, dtype=types + times)


def read_samples(path: Union[str, Path]) -> Samples:
    """Reads a file of samples (``policy.samples.jsonl``). A last line that was cut, as by an interrupted run, is left out.

    :raises Error: it cannot be read, or a line makes no sense: with the line.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise Error(f"failed to read {path}: {error}") from error
    entries = []
    for number, line in enumerate(lines, 1):
        try:
            entries.append(json.loads(line))
        except json.JSONDecodeError as error:
            if number == len(lines):
                break
            raise Error(f"failed to read {path}, line {number}: {error}") from error
    if not entries or "hosts" not in entries[0]:
        raise Error(f"failed to read {path}, line 1: this is no file of samples")
    measured = [entry for entry in entries[1:] if "experiment" in entry and "seconds" in entry]
    return Samples(entries[0], [entry["experiment"] for entry in measured], [np.array(entry["seconds"], dtype=float) for entry in measured])
