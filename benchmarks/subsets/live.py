"""Support vector machines on MNIST, trained live and free to choose: ``python -m benchmarks svm-live``.

Budgets are seconds of training and validation. An error is that of the configuration a method would
choose, trained once more on all pictures, which is not charged.
"""

import math
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import torch

from benchmarks.harness.command_line import add_seeds, parser_for, seeds_of
from benchmarks.harness.missing import measure_missing
from benchmarks.harness.record import Row, rows_of
from benchmarks.subsets.methods import promise
from benchmarks.subsets.svm import FRACTION, SPACE, Size, trained
from botorch_costly import SubsetDecision, SubsetOptimizer

NAME = "svm-live"
BUDGETS = (5, 10, 20, 40, 80)
SIZE = Size()
_FIRST, _POOL = 4, 2_000
_DECIDING = 0.5  # seconds

Config = Mapping[str, Any]


class Method(Protocol):
    """A method that chooses configurations and fractions."""

    def ask(self) -> tuple[Config, float]:
        """Return a configuration, and the fraction of the pictures to train on."""

    def tell(self, told: float, seconds: float) -> None:
        """Hear what came of what was asked for."""

    def choice(self) -> Config:
        """Return the configuration that it would choose now."""


class OnAll:
    """Random configurations on all pictures; the best one is chosen."""

    def __init__(self, seed: int) -> None:
        self.generator = torch.Generator().manual_seed(seed)
        self.points = torch.zeros(0, SPACE.dim, dtype=torch.float64)
        self.told: list[float] = []

    def ask(self) -> tuple[Config, float]:
        """Return the next one."""
        self.points = torch.cat([self.points, self._next().unsqueeze(0)])
        return SPACE.decode(self.points[-1]), 1.0

    def _next(self) -> torch.Tensor:
        return SPACE.sample(1, self.generator)[0]

    def tell(self, told: float, seconds: float) -> None:
        """Remember it."""
        self.told.append(told)

    def choice(self) -> Config:
        """Return the best; before there is any, the middle."""
        if not self.told:
            return SPACE.decode(torch.full((SPACE.dim,), 0.5, dtype=torch.float64))
        return SPACE.decode(self.points[max(range(len(self.told)), key=self.told.__getitem__)])


class Improvement(OnAll):
    """The largest log expected improvement of many random configurations."""

    def _next(self) -> torch.Tensor:
        if len(self.told) < _FIRST:
            return super()._next()
        pool = SPACE.sample(_POOL, self.generator)
        return pool[promise(self.points, self.told, pool).argmax()]


class Ours:
    """``SubsetOptimizer`` as it comes, told that deciding takes half a second."""

    def __init__(self, seed: int) -> None:
        self._optimizer = SubsetOptimizer(SPACE, FRACTION, overhead=_DECIDING, seed=seed)
        self._asked: SubsetDecision | None = None

    def ask(self) -> tuple[Config, float]:
        """Return what it asks for."""
        self._asked = self._optimizer.ask()
        return self._asked.config, self._asked.fidelities["fraction"]

    def tell(self, told: float, seconds: float) -> None:
        """Tell it."""
        assert self._asked is not None
        self._optimizer.tell(self._asked, told, cost=seconds)

    def choice(self) -> Config:
        """Return the incumbent; before there is any, the middle."""
        return self._optimizer.incumbent or OnAll(0).choice()


METHODS: dict[str, Callable[[int], Method]] = {
    "random on all": OnAll,
    "LogEI on all": Improvement,
    "SubsetOptimizer": Ours,
}


class Task(NamedTuple):
    """A run of a method, and the key of its row."""

    method: str
    seed: int


def measure(task: Task, size: Size = SIZE, budgets: Sequence[float] = BUDGETS) -> Row:
    """Return the error on all pictures of what is chosen at each budget."""
    method, paid, asked, deciding = METHODS[task.method](task.seed), 0.0, 0, 0.0
    errors: list[float] = []
    while len(errors) < len(budgets):
        began = time.process_time()
        config, fraction = method.ask()
        deciding += time.process_time() - began
        outcome = trained(config, fraction, 1_000 * task.seed + asked, size)
        while len(errors) < len(budgets) and paid + outcome.seconds > budgets[len(errors)]:
            errors.append(trained(method.choice(), 1.0, task.seed, size).error)
        paid, asked = paid + outcome.seconds, asked + 1
        method.tell(-math.log(max(outcome.error, 0.5 / size.checked)), outcome.seconds)
    at = {f"at {budget}": error for budget, error in zip(budgets, errors, strict=True)}
    return {**task._asdict(), **at, "evaluations": asked, "deciding": deciding / asked}


def text(rows: Sequence[Row]) -> str:
    """Return the errors of each method at each budget, seed by seed, and the seconds of a decision."""
    lines = [f"{'':<18}{'seeds':>6}" + "".join(f"{f'{b} s':>22}" for b in BUDGETS) + "  deciding"]
    for method in METHODS:
        mine = [row for row in rows if row["method"] == method]
        if mine:
            cells = "".join(_cell([row[f"at {budget}"] for row in mine]) for budget in BUDGETS)
            deciding = statistics.fmean(row["deciding"] for row in mine)
            lines.append(f"{method:<18}{len(mine):>6}{cells}{deciding:>8.2f} s")
    lines.append(
        "Error on all pictures of what is chosen: mean, and of each of the first three seeds."
    )
    return "\n".join(lines)


def _cell(errors: Sequence[float]) -> str:
    each = " ".join(f"{error:.3f}".lstrip("0") for error in errors[:3])
    return f"{statistics.fmean(errors):.4f} ({each})".rjust(22)


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print the table."""
    parser = parser_for(NAME, "support vector machines on parts of MNIST, trained live")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--again", action="store_true", help="measure what is stored, too")
    add_seeds(parser, seeds=3)
    options = parser.parse_args(arguments)
    wanted = [Task(method, seed) for seed in seeds_of(options) for method in options.methods]
    measure_missing(NAME, wanted, measure, Task, options)
    print(text(rows_of(NAME, options.results)))
