"""Errors of what searches would choose when budgets are spent, on trainings that are run live.

Budgets are seconds of training and validation. An error is that of the configuration a method would
choose, trained once more on all of the data, which is not charged.
"""

import math
import statistics
import time
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from benchmarks.harness.record import Row, grouped
from benchmarks.harness.sweep import measured, sweep_parser, tasks_of
from benchmarks.subsets.live.networks import CNN, RESIDUAL, SMALL_CNN, SMALL_RESIDUAL
from benchmarks.subsets.live.program import METHODS, Program
from benchmarks.subsets.svm_grid import FRACTION, SPACE, Size, trained

_SIZE = Size()
_MACHINES = partial(trained, size=_SIZE)
PROGRAMS: dict[str, Program] = {
    "svm": Program(SPACE, FRACTION, _MACHINES, (5, 10, 20, 40, 80), _SIZE.checked),
    "cnn": CNN,
    "residual": RESIDUAL,
    "cnn, small": SMALL_CNN,
    "residual, small": SMALL_RESIDUAL,
}
_WIDTH = 25  # of a column
_LEAST = 0.5  # of a wrong answer: the error of a training without any


class Task(NamedTuple):
    """A run of a method, and the key of its row."""

    program: str
    method: str
    seed: int


def measure(task: Task) -> Row:
    """Return the error on all of the data of what is chosen at each budget."""
    program = PROGRAMS[task.program]
    method, paid, asked, deciding = METHODS[task.method](program, task.seed), 0.0, 0, 0.0
    errors: list[float] = []
    while len(errors) < len(program.budgets):
        began = time.process_time()
        config, fraction = method.ask()
        deciding += time.process_time() - began
        outcome = program.trained(config, fraction, 1_000 * task.seed + asked)
        while len(errors) < len(program.budgets):
            if paid + outcome.seconds <= program.budgets[len(errors)]:
                break
            errors.append(program.trained(method.choice(), 1.0, task.seed).error)
        paid, asked = paid + outcome.seconds, asked + 1
        method.tell(-math.log(max(outcome.error, _LEAST / program.checked)), outcome.seconds)
    at = {f"at {budget}": error for budget, error in zip(program.budgets, errors, strict=True)}
    return {**task._asdict(), **at, "evaluations": asked, "deciding": deciding / asked}


def text(rows: Sequence[Row]) -> str:
    """Return the errors of each method at each budget, and the seconds of a decision, by program."""
    tables = grouped(rows, "program").items()
    return "\n\n".join("\n".join(_table(name, mine)) for name, mine in tables)


def _table(name: str, rows: Sequence[Row]) -> list[str]:
    budgets = [key for key in rows[0] if key.startswith("at ")]
    head = "".join(f"{f'{budget[3:]} s':>{_WIDTH}}" for budget in budgets)
    lines = [f"{name:<18}{'seeds':>6}{head}  deciding"]
    for method in METHODS:
        mine = [row for row in rows if row["method"] == method]
        if mine:
            cells = "".join(_cell([row[budget] for row in mine]) for budget in budgets)
            deciding = statistics.fmean(row["deciding"] for row in mine)
            lines.append(f"{method:<18}{len(mine):>6}{cells}{deciding:>8.2f} s")
    return [
        *lines,
        "Error on all of the data of what is chosen: mean, and of the first three seeds.",
    ]


def _cell(errors: Sequence[float]) -> str:
    each = " ".join(f"{error:.3f}".lstrip("0") for error in errors[:3])
    return f"{statistics.fmean(errors):.4f} ({each})".rjust(_WIDTH)


def run(arguments: list[str], name: str, about: str, programs: list[str], more: list[str]) -> None:
    """Measure what is missing, store the rows and print the tables; more programs are run on request."""
    parser = sweep_parser(name, about, seeds=3, programs=[*programs, *more], methods=METHODS)
    parser.set_defaults(programs=programs)
    options = parser.parse_args(arguments)
    wanted = tasks_of(Task, options, options.programs, options.methods)
    print(text(measured(name, wanted, measure, options)))


def machines(arguments: list[str]) -> None:
    """Train support vector machines on MNIST, free to choose: ``python -m benchmarks svm-live``."""
    run(arguments, "svm-live", "support vector machines on parts of MNIST, live", ["svm"], [])


def networks(arguments: list[str]) -> None:
    """Train networks on parts of CIFAR-10: ``python -m benchmarks fabolas-networks``."""
    small, whole = ["cnn, small", "residual, small"], ["cnn", "residual"]
    run(arguments, "fabolas-networks", "networks on parts of CIFAR-10, live", small, whole)
