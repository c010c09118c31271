"""Seconds of an iteration of ``SubsetOptimizer``: ``python -m benchmarks fabolas-time``.

The function is Branin's, and its optimum moves with the fraction of the data. All evaluations but
the last are random. An iteration is all of ``ask``: hyperparameters are drawn, and the points of
which one is the optimum, and the acquisition function is maximized. Walkers start from where they
were an evaluation before, as in a run; the first steps of a run are told apart.
"""

import statistics
import time
from collections.abc import Sequence
from typing import NamedTuple

import torch
from botorch.test_functions import Branin

from benchmarks.harness.record import Row
from benchmarks.harness.sweep import measured, sweep_parser, tasks_of
from botorch_costly import Real, Sampling, SearchSpace, SubsetDecision, SubsetOptimizer
from botorch_costly.plain import as_number

NAME = "fabolas-time"
COUNTS = (10, 20, 40, 80)
SPACE = SearchSpace({"x": Real(-4.5, 10.0), "y": Real(0.0, 14.5)})


class Task(NamedTuple):
    """An iteration, and the key of its row."""

    evaluations: int
    seed: int


def measure(task: Task) -> Row:
    """Return the seconds of the iteration after so many evaluations, and of the first one of a run."""
    sampling = Sampling(first=task.evaluations - 1)
    optimizer = SubsetOptimizer(SPACE, maximize=False, sampling=sampling, seed=task.seed)
    for _ in range(task.evaluations - 1):
        asked = optimizer.ask()
        optimizer.tell(asked, _value(asked))
    first, asked = _timed(optimizer)
    optimizer.tell(asked, _value(asked))
    later, _ = _timed(optimizer)
    return {**task._asdict(), "first": first, "later": later}


def _timed(optimizer: SubsetOptimizer) -> tuple[float, SubsetDecision]:
    began = time.perf_counter()
    asked = optimizer.ask()
    return time.perf_counter() - began, asked


def _value(asked: SubsetDecision) -> float:
    fraction = asked.fidelities["fraction"]
    away = 0.5 * (1 - fraction)  # stays within the bounds of the function
    x, y = (as_number(name, asked.config[name]) for name in SPACE.names)
    at = torch.tensor([[x - away, y + away]])
    return float(Branin().evaluate_true(at)) / 50 + 0.1 * (fraction**-0.3 - 1)


def text(rows: Sequence[Row]) -> str:
    """Return the median seconds by the number of evaluations, and the longest."""
    lines = [f"{'evaluations':<14}{'iterations':>12}{'first of a run':>22}{'later':>22}"]
    for count in sorted({row["evaluations"] for row in rows}):
        mine = [row for row in rows if row["evaluations"] == count]
        cells = "".join(f"{_cell([row[part] for row in mine]):>22}" for part in ("first", "later"))
        lines.append(f"{count:<14}{len(mine):>12}{cells}")
    return "\n".join([*lines, "Seconds of the clock on one thread: median (longest)."])


def _cell(seconds: Sequence[float]) -> str:
    return f"{statistics.median(seconds):.2f} ({max(seconds):.2f})"


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print the table."""
    parser = sweep_parser(NAME, "seconds of an iteration of SubsetOptimizer", seeds=5)
    parser.add_argument("--counts", nargs="+", type=int, default=list(COUNTS))
    options = parser.parse_args(arguments)
    print(text(measured(NAME, tasks_of(Task, options, options.counts), measure, options)))
