"""Functions with values in [0, 1], and earlier tasks whose function gaps are given.

Appendix D.1 of the paper: the value of a task at each of its inputs is that of the target, plus a draw
from ``U[-d_i, d_i]`` of the task's gap, plus noise.
"""

from collections.abc import Mapping
from functools import cache
from itertools import product
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from benchmarks.meta.families import Study
from benchmarks.meta.methods import robust
from benchmarks.meta.rivals import Method, gp_ts, gp_ucb, random
from botorch_costly import ByEvidence, ByGaps
from botorch_costly.acquisition import LogBeta
from botorch_costly.numerics.stationary import Stationary, covariance

NOISE = 0.03  # standard deviation, of tasks and target
_SIDE = {1: 1000, 2: 32}  # points along each axis
_JITTER = 1e-8
DISSIMILAR = 0.5  # gap from which on a task is not like the target


class Setting(NamedTuple):
    """What is drawn."""

    gaps: tuple[float, ...] = (0.05, 0.05, 4.0, 4.0)  # of the tasks, in units of the target's range
    counts: tuple[int, ...] = (20, 20, 20, 20)  # their observations
    dim: int = 1
    lengthscale: float = 0.1
    smooth: bool = False  # whether task minus target is a smooth function, not a draw at each input
    unrelated: int = 0  # further tasks, functions of their own, with the observations of the last
    first: int = 0  # random evaluations that all methods begin with
    length: int = 50  # evaluations


class World(NamedTuple):
    """A target and its earlier tasks."""

    points: Tensor  # the domain, shape: (m, d)
    truth: Tensor  # of the target, in [0, 1], shape: (m,)
    noise: Tensor  # of the target's evaluations, in their order, shape: (length,)
    studies: list[Study]
    spread: (
        float  # range of the target before it was mapped to [0, 1], in prior standard deviations
    )


def dissimilar(setting: Setting) -> Tensor:
    """Return which tasks are not like the target, bool of shape ``(tasks,)``."""
    far = [gap >= DISSIMILAR for gap in setting.gaps] + [True] * setting.unrelated
    return torch.tensor(far)


def draw(setting: Setting, seed: int) -> World:
    """Return the world of a seed."""
    draws = torch.Generator().manual_seed(seed)
    points = domain(setting.dim)
    truth, spread = _function(setting, draws)
    sorts = zip(setting.gaps, setting.counts, strict=True)
    studies = [_study(setting, points, truth, gap, count, draws) for gap, count in sorts]
    for _ in range(setting.unrelated):
        other, _ = _function(setting, draws)
        studies.append(_study(setting, points, other, 0.0, setting.counts[-1], draws))
    return World(points, truth, NOISE * _normal(setting.length, draws), studies, spread)


def _study(
    setting: Setting, points: Tensor, truth: Tensor, gap: float, count: int, draws: Generator
) -> Study:
    """Return noisy values at random inputs, each at most ``gap`` from the truth but for the noise."""
    rows = torch.randperm(len(points), generator=draws)[:count]
    if setting.smooth:
        apart = (2 * _function(setting, draws)[0] - 1)[rows]
    else:
        apart = 2 * torch.rand(count, generator=draws, dtype=truth.dtype) - 1
    return Study(points[rows], truth[rows] + gap * apart + NOISE * _normal(count, draws))


@cache
def domain(dim: int) -> Tensor:
    """Return the points of the grid, ``m x dim``."""
    axis = torch.linspace(0, 1, _SIDE[dim], dtype=torch.float64).tolist()
    return torch.tensor(list(product(axis, repeat=dim)), dtype=torch.float64)


@cache
def _root(dim: int, lengthscale: float) -> Tensor:
    """Return the root of the covariance of all points."""
    points = domain(dim)
    kernel = Stationary("rbf", points.new_full((dim,), lengthscale), points.new_ones(()))
    cov = covariance(kernel, points, points)
    return torch.linalg.cholesky(cov + _JITTER * torch.eye(len(points), dtype=cov.dtype))


def _function(setting: Setting, draws: Generator) -> tuple[Tensor, float]:
    """Return the values of a function at all points, mapped to [0, 1], and their range before it."""
    root = _root(setting.dim, setting.lengthscale)
    values = root @ _normal(len(root), draws)
    spread = values.max() - values.min()
    return (values - values.min()) / spread, float(spread)


def _normal(count: int, draws: Generator) -> Tensor:
    return torch.randn(count, generator=draws, dtype=torch.float64)


RATES = (0.01, 0.1, 10.0)  # eta, beside 1
POWERS = (0.0, 0.35, 0.7, 1.4)  # epsilon'
DECAYS = (0.5, 0.9, 1.0)  # beside 0.7

METHODS: Mapping[str, Method] = {
    "random": random,
    "GP-UCB": gp_ucb,
    "GP-TS": gp_ts,
    "RM-GP-UCB": robust(ByGaps()),
    "RM-GP-UCB, even weights": robust(ByGaps(rate=0.0)),
    "RM-GP-UCB, largest gap": robust(ByGaps(largest=True)),
    "RM-GP-UCB, authors' beta": robust(ByGaps(beta=LogBeta(0.2, 2.0))),  # in one dimension
    "RM-GP-TS": robust(ByGaps(thompson=True)),
    "RM-GP-TS, summed": robust(ByGaps(thompson=True, summed=True)),
    "TransferOptimizer": robust(ByEvidence()),
    **{f"RM-GP-UCB, eta {rate:g}": robust(ByGaps(rate=rate)) for rate in RATES},
    **{f"RM-GP-UCB, decay {decay:g}": robust(ByGaps(decay=decay)) for decay in DECAYS},
    # The share falls by the gaps alone.
    **{f"RM-GP-UCB, power {power:g}": robust(ByGaps(decay=1.0, power=power)) for power in POWERS},
}
"""Policies by name."""

MAIN, NONE = "two alike, two not", "none alike"
NONE_AFTER = "none alike, three random first"  # all methods begin alike, as in the paper
_SIX = ("random", "GP-UCB", "GP-TS", "RM-GP-UCB", "RM-GP-TS", "TransferOptimizer")
_SOME = ("GP-UCB", "RM-GP-UCB", "RM-GP-TS", "TransferOptimizer")
_READINGS = ("RM-GP-UCB, authors' beta", "RM-GP-TS, summed")
_RATES = tuple(f"RM-GP-UCB, eta {rate:g}" for rate in RATES)
_DECAYS = tuple(f"RM-GP-UCB, decay {decay:g}" for decay in DECAYS)
_POWERS = tuple(f"RM-GP-UCB, power {power:g}" for power in POWERS)


class Cell(NamedTuple):
    """Methods that are played in a setting, on as many seeds."""

    setting: Setting
    methods: tuple[str, ...]
    seeds: int = 10


CELLS: Mapping[str, Cell] = {
    MAIN: Cell(
        Setting(),
        (*_SIX, *_READINGS, "RM-GP-UCB, even weights", "RM-GP-UCB, largest gap", *_RATES, *_DECAYS),
        seeds=50,
    ),
    "three random first": Cell(Setting(first=3), _SOME),
    "gaps .05 and .5": Cell(Setting(gaps=(0.05, 0.05, 0.5, 0.5)), _SOME),
    "gaps .05 and 1.5": Cell(Setting(gaps=(0.05, 0.05, 1.5, 1.5)), _SOME),
    "gaps .05 and 1.5, smooth": Cell(Setting(gaps=(0.05, 0.05, 1.5, 1.5), smooth=True), _SOME),
    "all alike": Cell(Setting(gaps=(0.05,) * 4), (*_SOME, *_READINGS)),
    NONE: Cell(
        Setting(gaps=(4.0,) * 4),
        (*_SOME, *_READINGS, "RM-GP-UCB, even weights", *_POWERS),
        seeds=20,
    ),
    NONE_AFTER: Cell(Setting(gaps=(4.0,) * 4, first=3), ("GP-UCB", "RM-GP-UCB"), seeds=20),
    "none alike, smooth": Cell(Setting(gaps=(1.5,) * 4, smooth=True), (*_SOME, *_POWERS)),
    "5 observations": Cell(Setting(counts=(5,) * 4), _SOME),
    "50 observations": Cell(Setting(counts=(50,) * 4), _SOME),
    "100 observations": Cell(Setting(counts=(100,) * 4), _SOME),
    "5, 35, 5, 35 observations": Cell(Setting(counts=(5, 35, 5, 35)), _SOME, seeds=50),
    "short lengthscale": Cell(Setting(lengthscale=0.05), _SIX),
    "two dimensions": Cell(Setting(dim=2, lengthscale=0.2, counts=(40,) * 4), _SIX),
    "1,000 tasks": Cell(
        Setting(
            gaps=(0.1,) * 50, counts=(100,) * 50, dim=2, lengthscale=0.2, smooth=True, unrelated=950
        ),
        _SIX,
        seeds=3,
    ),
}
"""Cells by name."""
