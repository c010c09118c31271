"""Regret on a target after earlier tasks: ``python -m benchmarks meta``.

Each task of a family in turn is the target. A row holds all targets of a method and a seed. With
``--twists`` the earlier tasks mislead: all of them negated, shuffled, or random; or they are told in
units of their own.
"""

import time
from typing import NamedTuple

import torch

from benchmarks.harness.figures import save
from benchmarks.harness.record import Row
from benchmarks.harness.sweep import measured, sweep_parser, tasks_of
from benchmarks.meta.families import FAMILIES, MISLEADING, TWISTS, Family, twisted
from benchmarks.meta.methods import METHODS
from benchmarks.meta.rivals import Method, Setting
from benchmarks.meta.table import AT, figure_of, text
from botorch_costly.models import TaskEnsemble
from botorch_costly.tuners.transfer.belief import TargetData

NAME = "meta"
_LONG = 50  # evaluations where the tasks mislead


class Run(NamedTuple):
    """A method on all targets of a family, and the key of its row."""

    family: str
    twist: str
    method: str
    seed: int


def measure(run: Run) -> Row:
    """Return regrets by target: the least after some evaluations, and the sum of all."""
    family = FAMILIES[run.family]()
    studies = twisted(family.earlier(run.seed), run.twist, run.seed)
    tasks = TaskEnsemble([one.points for one in studies], [one.values for one in studies]).fit()
    length = _LONG if run.twist in MISLEADING else AT[-1]
    began = time.perf_counter()
    played = [
        _play(METHODS[run.method], family, tasks, target, run.seed, length)
        for target in family.targets
    ]
    seconds = (time.perf_counter() - began) / (length * len(played))
    least = torch.stack(played).cummin(-1).values
    at = {f"at {k}": _listed(least[:, k - 1]) for k in AT}
    return {**run._asdict(), **at, "sum": _listed(torch.stack(played).sum(-1)), "seconds": seconds}


def _play(
    method: Method, family: Family, tasks: TaskEnsemble, target: int, seed: int, length: int
) -> torch.Tensor:
    """Return the regret of each evaluation, ``(length,)``."""
    study, others = family.whole[target], [k for k in range(tasks.count) if k != target]
    draws = torch.Generator().manual_seed(1_000 * seed + target)
    order = torch.randperm(len(study.points), generator=draws)
    policy = method(Setting(tasks.subset(others), study.points, order, draws))
    chosen: list[int] = []
    for _ in range(min(length, len(study.points))):
        with torch.no_grad():
            values = policy(TargetData(study.points[chosen], study.values[chosen]))
        values[chosen] = -torch.inf
        chosen.append(int(values.argmax()))
    # The regrets; where all has been evaluated, nothing is lost any more.
    regrets = torch.zeros(length, dtype=torch.float64)
    regrets[: len(chosen)] = study.regrets()[list(chosen)]
    return regrets


def _listed(values: torch.Tensor) -> list[float]:
    return [round(float(value), 5) for value in values]


def main(arguments: list[str]) -> None:
    """Measure, store the rows, draw the figure and print the table."""
    about = "regret on a target after earlier tasks, and which targets are harmed"
    known = {"families": FAMILIES, "methods": METHODS, "twists": TWISTS}
    options = sweep_parser(NAME, about, seeds=10, **known).parse_args(arguments)
    wanted = tasks_of(Run, options, options.families, options.twists, options.methods)
    rows = measured(NAME, wanted, measure, options)
    save(figure_of(rows), options.results / f"{NAME}.png")
    print(text(rows))
