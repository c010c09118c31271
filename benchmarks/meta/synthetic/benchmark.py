"""Regret, weights and share where gaps are known: ``python -m benchmarks meta-synthetic``.

The setting of section 6.1 and appendix D.1. A row is a run, with all of it by evaluation.

References:
    Z. Dai, Y. Chen, H. Yu, B. K. H. Low, P. Jaillet. On provably robust meta-Bayesian optimization.
    UAI 2022, Figures 1, 3, 4 and 5.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import torch

from benchmarks.harness.command_line import seeds_of
from benchmarks.harness.figures import save
from benchmarks.harness.record import Row
from benchmarks.harness.sweep import measured, sweep_parser
from benchmarks.meta import rivals
from benchmarks.meta.methods import Robust
from benchmarks.meta.synthetic.table import figure_of, text
from benchmarks.meta.synthetic.world import CELLS, METHODS, Setting, World, dissimilar, draw
from botorch_costly.models import TaskEnsemble
from botorch_costly.tuners.transfer.belief import TargetData

NAME = "meta-synthetic"
_FEW = 4  # tasks of which each has its own weight in a row
_KEPT = 20  # evaluations of which weights and share are stored


class Run(NamedTuple):
    """A method in a cell, and the key of its row."""

    cell: str
    method: str
    seed: int


def measure(run: Run) -> Row:
    """Return the least regret after each evaluation, and share and weights before each."""
    setting = CELLS[run.cell].setting
    world, tasks = _world(setting, run.seed)
    draws = torch.Generator().manual_seed(1_000 + run.seed)
    order = torch.randperm(len(world.points), generator=draws)
    policy = METHODS[run.method](rivals.Setting(tasks, world.points, order, draws))
    chosen = order[: setting.first].tolist()
    shares, weights = [], []
    while len(chosen) < setting.length:
        with torch.no_grad():
            values = policy(
                TargetData(world.points[chosen], (world.truth[chosen] + world.noise[: len(chosen)]))
            )
        if isinstance(policy, Robust) and len(chosen) <= _KEPT:
            shares.append(float(policy.weighting.share))
            weights.append(_by_group(policy.weighting.weights, setting))
        values[chosen] = -torch.inf
        chosen.append(int(values.argmax()))
    regrets = 1 - world.truth[chosen]
    least = regrets.cummin(-1).values
    return {
        **run._asdict(),
        "regret": _rounded(least.tolist()),
        "sum": round(float(regrets.sum()), 4),
        "share": _rounded(shares),
        "weights": [_rounded(some) for some in weights],
    }


@lru_cache(maxsize=2)
def _world(setting: Setting, seed: int) -> tuple[World, TaskEnsemble]:
    """Return what all methods of a cell and seed meet."""
    world = draw(setting, seed)
    points, values = zip(*world.studies, strict=True)
    return world, TaskEnsemble(points, values, kernel="rbf").fit()


def _by_group(weights: torch.Tensor, setting: Setting) -> list[float]:
    """Return each weight; of many tasks, the sums of absolute weights of those alike and of the rest."""
    if len(weights) <= _FEW:
        return [float(weight) for weight in weights]
    far = dissimilar(setting)
    return [float(weights[~far].abs().sum()), float(weights[far].abs().sum())]


def _rounded(values: Sequence[float]) -> list[float]:
    return [round(value, 4) for value in values]


def main(arguments: list[str]) -> None:
    """Measure, store the rows, draw the figure and print the table."""
    about = "regret, weights and share where the gaps of the tasks are known"
    options = sweep_parser(NAME, about, seeds=50, cells=CELLS).parse_args(arguments)
    wanted = [
        Run(cell, method, seed)
        for cell in options.cells
        for seed in seeds_of(options)[: CELLS[cell].seeds]
        for method in CELLS[cell].methods
    ]
    rows = measured(NAME, wanted, measure, options)
    save(figure_of(rows), options.results / f"{NAME}.png")
    print(text(rows))
