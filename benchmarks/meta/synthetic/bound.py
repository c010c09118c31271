"""The sum of regrets of RM-GP-UCB below its bound, Theorem 1, drawn.

All is in prior standard deviations of the target. The norm of the target in the space of the kernel is
about the root of the number of points, for it is drawn from the process. Weights differ from round to
round, so the error of the tasks is that of the worst of them.
"""

import statistics
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from benchmarks.harness.figures import new_figure
from benchmarks.harness.record import Row
from benchmarks.meta.synthetic.world import CELLS, MAIN, NOISE, NONE, Setting, domain, draw
from botorch_costly import plotting
from botorch_costly.numerics.information_gain import GREEDY_SHARE, greedy_information_gain
from botorch_costly.numerics.stationary import Stationary, covariance
from botorch_costly.numerics.transfer_bounds import (
    task_error,
    transfer_regret_bound,
    width_of_bounds,
)

_TAU, _DECAY = 1.0, 0.7
_EVERY = 8  # points of which gains are computed: neighbours are alike
_COLORS = {MAIN: plotting.BLUE, NONE: plotting.VERMILION}


def bounds(setting: Setting, seed: int, shares: Sequence[float]) -> list[float]:
    """Return the bound of the sum of regrets after each evaluation, in prior standard deviations.

    Args:
        setting: Setting of the cell.
        seed: Seed of the target.
        shares: First shares of the tasks; later ones fall by the decay at least.
    """
    spread = draw(setting, seed).spread
    noise = (NOISE * spread) ** 2
    length, tasks = setting.length, len(setting.gaps)
    last = shares[-1] * _DECAY ** torch.arange(1, length - len(shares) + 1, dtype=torch.float64)
    share = torch.cat([torch.tensor(shares, dtype=torch.float64), last])
    gaps, counts = torch.tensor(setting.gaps) * spread, torch.tensor(setting.counts)
    error = max(
        task_error(weights, gaps, counts, noise) for weights in torch.eye(tasks, dtype=gaps.dtype)
    )
    gains = _gains(setting, noise) / GREEDY_SHARE
    norm = len(domain(setting.dim)) ** 0.5
    return [
        transfer_regret_bound(
            share[:t],
            error,
            _TAU,
            width_of_bounds(norm, noise, float(gains[t - 1])),
            noise,
            float(gains[t - 1]),
        )
        for t in range(1, length + 1)
    ]


def _gains(setting: Setting, noise: float) -> Tensor:
    points = domain(setting.dim)[::_EVERY]
    kernel = Stationary(
        "rbf", points.new_full((setting.dim,), setting.lengthscale), points.new_ones(())
    )
    cov = covariance(kernel, points, points)
    return greedy_information_gain(cov, noise, [0] * setting.length)


def figure_of(rows: Sequence[Row]) -> Any:
    """Return a figure of mean sums of regrets and bounds, where two tasks are alike and where none is."""
    figure = new_figure(6, 4)
    ax = figure.subplots()
    for cell, color in _COLORS.items():
        setting = CELLS[cell].setting
        some = [
            row
            for row in rows
            if row["cell"] == cell and row["method"] == "RM-GP-UCB" and "sums" in row
        ]
        if not some:
            continue
        rounds = range(1, setting.length + 1)
        found = [bounds(setting, row["seed"], row["share"]) for row in some]
        spreads = [draw(setting, row["seed"]).spread for row in some]
        sums = [
            [s * spread for s in row["sums"]] for row, spread in zip(some, spreads, strict=True)
        ]
        ax.plot(rounds, _means(sums), color=color, label=cell)
        ax.plot(rounds, _means(found), "--", color=color)
    ax.plot([], [], "--", color=plotting.BLACK, label="Theorem 1")
    ax.set_yscale("log")
    ax.set(xlabel="evaluations", ylabel="sum of regrets, in prior standard deviations")
    ax.legend(frameon=False, fontsize="small")
    return figure


def _means(runs: Sequence[Sequence[float]]) -> list[float]:
    return [statistics.fmean(column) for column in zip(*runs, strict=True)]
