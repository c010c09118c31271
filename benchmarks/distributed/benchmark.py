"""Decisions shared by the ranks of a run: ``python -m benchmarks ddp``.

Two processes of one machine, connected by gloo, play a run of 500 rounds without training. Rank 0
decides in a space of four numbers, and each query takes the mean of a metric. Reported: whether the
decisions are identical on all ranks, the milliseconds of a decision, those of the tuner itself, and
what sharing adds: the difference of the two on rank 0.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.harness.provenance import ROOT
from benchmarks.harness.record import Row
from benchmarks.harness.sweep import measured, sweep_parser, tasks_of

NAME = "ddp"


class Task(NamedTuple):
    """A run, and the key of its row."""

    ranks: int
    rounds: int
    seed: int


def measure(task: Task) -> Row:
    """Return what a run took, and whether its ranks agreed."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone"]
        command += ["--nproc-per-node", str(task.ranks), "-m", "benchmarks.distributed.ranks"]
        command += [folder, str(task.rounds), str(task.seed)]
        subprocess.run(command, cwd=ROOT, check=True)
        files = [Path(folder) / f"{rank}.json" for rank in range(task.ranks)]
        said = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    return {**task._asdict(), **compared(said)}


def compared(said: Sequence[dict[str, Any]]) -> Row:
    """Return the row of what the ranks wrote, that of rank 0 first."""
    first = said[0]
    shared = [whole - own for whole, own in zip(first["ask"], first["own"], strict=True)]
    return {
        "identical": sum(
            all(one["decisions"][i] == decision for one in said)
            for i, decision in enumerate(first["decisions"])
        ),
        "queries": len(first["mean"]),
        "decision_ms": median(first["ask"]),
        "mean_decision_ms": sum(first["ask"]) / len(first["ask"]),
        "tuner_ms": median(first["own"]),
        "sharing_ms": median(shared),
        "sharing_ms_95": sorted(shared)[int(0.95 * len(shared))],
        "metric_ms": median(first["mean"]),
    }


def text(rows: Sequence[Row]) -> str:
    """Return one line for each run."""
    columns = ("decision_ms", "mean_decision_ms", "tuner_ms", "sharing_ms", "sharing_ms_95")
    heads = ("decision", "(mean)", "tuner", "sharing", "95 % below", "a metric")
    head = f"{'ranks':>5} {'seed':>4} {'identical':>12} {'queries':>8}"
    lines = [head + "".join(f"{name:>12}" for name in heads)]
    for row in rows:
        cells = "".join(f"{row[column]:>12.2f}" for column in (*columns, "metric_ms"))
        alike = f"{row['identical']}/{row['rounds']}"
        lines.append(f"{row['ranks']:>5} {row['seed']:>4} {alike:>12} {row['queries']:>8}{cells}")
    return "\n".join([*lines, "Milliseconds on rank 0, medians but where it says mean or 95 %."])


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print them."""
    parser = sweep_parser(NAME, "decisions that the ranks of a distributed run share", seeds=3)
    parser.add_argument("--ranks", type=int, default=2, help="processes of a run")
    parser.add_argument("--rounds", type=int, default=500, help="decisions of a run")
    parser.set_defaults(processes=1)  # runs side by side would wait for each other
    options = parser.parse_args(arguments)
    wanted = tasks_of(Task, options, [options.ranks], [options.rounds])
    print(text(measured(NAME, wanted, measure, options)))
