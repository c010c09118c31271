"""Milliseconds of an iteration on the same evaluations: ``python -m benchmarks entropy-search-time``.

Evaluations are random ones of Branin's function. Walkers start from where they were an evaluation
before, as in a run.
"""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

import torch

from benchmarks.harness.record import Row
from benchmarks.harness.sweep import measured, sweep_parser, tasks_of
from benchmarks.information.beliefs import PROBLEMS
from benchmarks.information.methods import METHODS, OURS, TIMED, Player, seconds_of

NAME = "entropy-search-time"
COUNTS = (5, 10, 20, 30)


class Task(NamedTuple):
    """An iteration, and the key of its row."""

    evaluations: int
    method: str
    seed: int


def measure(task: Task) -> Row:
    """Return the milliseconds of belief and choice after so many evaluations."""
    problem = PROBLEMS["branin"](task.seed)
    generator = torch.Generator().manual_seed(task.seed)
    X = torch.rand(task.evaluations, problem.dim, generator=generator, dtype=torch.float64)
    y = problem.value(X)
    player = Player({**METHODS, **TIMED}[task.method], problem, task.seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(task.seed)
        player.believe(X[:-1], y[:-1])
        fit, model = seconds_of(player.believe, X, y)
        acquisition, _ = seconds_of(player.choose, model, X)
    return {**task._asdict(), "belief, ms": 1e3 * fit, "choice, ms": 1e3 * acquisition}


def text(rows: Sequence[Row]) -> str:
    """Return the median milliseconds of belief, choice and both, and how many times ours they are."""
    head = "".join(f"{f'{count} evaluations':>28}" for count in COUNTS)
    lines = [f"{'':<28}{head}"]
    for method in dict.fromkeys(row["method"] for row in rows):
        cells = [_cell(rows, method, count) for count in COUNTS]
        lines.append(f"{method:<28}" + "".join(f"{cell:>28}" for cell in cells))
    lines.append("Median milliseconds of the processor, belief + choice, and both by those of ES.")
    return "\n".join(lines)


def _cell(rows: Sequence[Row], method: str, count: int) -> str:
    theirs, ours = (_medians(rows, name, count) for name in (method, OURS))
    if theirs is None:
        return ""
    ratio = "" if ours is None else f" ({sum(theirs) / sum(ours):.1f})"
    return f"{theirs[0]:.0f} + {theirs[1]:.0f}{ratio}"


def _medians(rows: Sequence[Row], method: str, count: int) -> tuple[float, float] | None:
    mine = [row for row in rows if (row["method"], row["evaluations"]) == (method, count)]
    if not mine:
        return None
    belief, choice = (statistics.median(r[part] for r in mine) for part in _PARTS)
    return belief, choice


_PARTS = ("belief, ms", "choice, ms")


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print the table."""
    about = "milliseconds of an iteration on the same evaluations"
    parser = sweep_parser(NAME, about, seeds=3, methods=[*METHODS, *TIMED])
    options = parser.parse_args(arguments)
    print(text(measured(NAME, tasks_of(Task, options, COUNTS, options.methods), measure, options)))
