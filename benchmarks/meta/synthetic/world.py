"""Functions with values in [0, 1], and earlier tasks whose function gaps are given.

Appendix D.1 of the paper: the value of a task at each of its inputs is that of the target, plus a draw
from ``U[-d_i, d_i]`` of the task's gap, plus noise.
"""

from functools import cache
from itertools import product
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from benchmarks.meta.families import Study
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


def dissimilar(setting: Setting) -> Tensor:
    """Return which tasks are not like the target, bool of shape ``(tasks,)``."""
    far = [gap >= DISSIMILAR for gap in setting.gaps] + [True] * setting.unrelated
    return torch.tensor(far)


def draw(setting: Setting, seed: int) -> World:
    """Return the world of a seed."""
    draws = torch.Generator().manual_seed(seed)
    points = domain(setting.dim)
    truth = _function(setting, draws)
    sorts = zip(setting.gaps, setting.counts, strict=True)
    studies = [_study(setting, points, truth, gap, count, draws) for gap, count in sorts]
    for _ in range(setting.unrelated):
        other = _function(setting, draws)
        studies.append(_study(setting, points, other, 0.0, setting.counts[-1], draws))
    return World(points, truth, NOISE * _normal(setting.length, draws), studies)


def _study(
    setting: Setting, points: Tensor, truth: Tensor, gap: float, count: int, draws: Generator
) -> Study:
    """Return noisy values at random inputs, each at most ``gap`` from the truth but for the noise."""
    rows = torch.randperm(len(points), generator=draws)[:count]
    if setting.smooth:
        apart = (2 * _function(setting, draws) - 1)[rows]
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


def _function(setting: Setting, draws: Generator) -> Tensor:
    """Return the values of a function at all points, in [0, 1]."""
    root = _root(setting.dim, setting.lengthscale)
    values = root @ _normal(len(root), draws)
    return (values - values.min()) / (values.max() - values.min())


def _normal(count: int, draws: Generator) -> Tensor:
    return torch.randn(count, generator=draws, dtype=torch.float64)
