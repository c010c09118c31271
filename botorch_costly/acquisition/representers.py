"""Representer points for entropy search: points at which the optimum may be."""

import math
import warnings
from collections.abc import Mapping
from typing import Any

import torch
from botorch.models.model import Model
from botorch.utils.transforms import is_ensemble
from linear_operator.utils.cholesky import psd_safe_cholesky
from linear_operator.utils.warnings import NumericalWarning
from torch import Tensor

from botorch_costly.errors import InvalidShapeError, check, check_count
from botorch_costly.numerics.ensemble_sampling import LogDensity, walk
from botorch_costly.numerics.gumbel import without_replacement
from botorch_costly.numerics.improvement import log_expected_improvement
from botorch_costly.randomness import check_generator

MEASURES = ("improvement", "draws", "uniform")
_SCREENED = 20  # uniform draws for each point
_STEPS = 20  # steps of the walk
_TRIES = 6  # attempts at a Cholesky factor, each with ten times the jitter
_LEAST_VARIANCE = 1e-12  # that of BoTorch
_POOL = 1000  # uniform points at which posterior draws are evaluated


def representers(
    model: Model,
    bounds: Tensor,
    num: int,
    best_f: float | Tensor,
    generator: torch.Generator,
    *,
    maximize: bool = True,
    measure: str = "improvement",
    fixed: Mapping[int, float] | None = None,
) -> Tensor:
    """Draw points in proportion to the expected improvement, as optima of posterior draws, or uniformly.

    The measure ``"improvement"`` resamples uniform draws in proportion to their expected improvement. The
    points then walk as an ensemble, and leave the positions of the uniform draws.

    The measure ``"draws"`` takes the optima of posterior draws, among uniform points and those by
    improvement. If draws share an optimum, points by improvement fill up. Each member of an ensemble
    needs a Cholesky factor of about a thousand rows.

    References:
        - P. Hennig, C. J. Schuler. Entropy search for information-efficient global optimization. JMLR 13,
          2012, section 2.2.
        - J. M. Hernandez-Lobato, M. W. Hoffman, Z. Ghahramani. Predictive entropy search for efficient
          global optimization of black-box functions. NeurIPS 2014: optima of draws.

    Args:
        model: A single-outcome model, or an ensemble.
        bounds: Lower and upper bounds of the columns, ``2 x d``.
        num: Number of points.
        best_f: The threshold of the improvement.
        generator: Random generator for all draws.
        maximize: Whether larger values are better.
        measure: ``"improvement"``, ``"draws"`` or ``"uniform"``.
        fixed: Value of each column that is the same in all points, such as the fraction of the data.

    Returns:
        The points, ``num x d``.

    Raises:
        InvalidShapeError: If the bounds are not two rows.
        InvalidArgumentError: If ``num`` is less than 1, or the measure is unknown.
    """
    shape = tuple(bounds.shape)
    check(len(shape) == 2 and shape[0] == 2, "bounds", "2 x d", shape, InvalidShapeError)
    check(measure in MEASURES, "measure", f"one of {MEASURES}", measure)
    check_count("num", num, minimum=1)
    cube = _Cube(bounds, fixed or {}, generator)
    if measure == "uniform" or not cube.free:
        return cube.completed(cube.uniform(num))
    best = torch.as_tensor(best_f).to(bounds)

    @torch.no_grad()
    def log_density(x: Tensor) -> Tensor:
        inside = ((x >= 0) & (x <= 1)).all(-1)
        rows = cube.completed(x.clamp(0, 1))
        return log_improvement(model, rows, best, maximize=maximize).where(inside, -torch.inf)

    walked = _drawn(log_density, cube, num)
    if measure == "improvement":
        return cube.completed(walked)
    rows = cube.completed(torch.cat([walked, cube.uniform(_POOL)]))
    return rows[_best_of_draws(model, rows, num, generator, maximize=maximize)]


class _Cube:
    """The free columns as a unit cube."""

    def __init__(
        self, bounds: Tensor, fixed: Mapping[int, float], generator: torch.Generator
    ) -> None:
        self.generator, self._bounds = check_generator(generator), bounds
        self._fixed = dict(fixed)
        self.free = [column for column in range(bounds.shape[1]) if column not in self._fixed]

    def completed(self, x: Tensor) -> Tensor:
        """Return points of the cube with all columns, ``(*batch, free) -> (*batch, d)``."""
        rows = self._bounds.new_empty(*x.shape[:-1], self._bounds.shape[1])
        low, high = self._bounds[:, self.free]
        rows[..., self.free] = low + (high - low) * x
        for column, value in self._fixed.items():
            rows[..., column] = value
        return rows

    def uniform(self, count: int) -> Tensor:
        """Draw uniform points, ``count x free``."""
        size, generator, dtype = (count, len(self.free)), self.generator, self._bounds.dtype
        points = torch.rand(size, generator=generator, device=generator.device, dtype=dtype)
        return points.to(self._bounds.device)


def _drawn(log_density: LogDensity, cube: _Cube, num: int) -> Tensor:
    """Draw points of the cube in proportion to a density, ``num x free``."""
    walkers = num + num % 2
    screened = cube.uniform(_SCREENED * walkers)
    coins = cube.uniform(len(screened))[:, 0]
    starts = screened[without_replacement(log_density(screened), walkers, coins)]
    return walk(log_density, starts, _STEPS, cube.generator).points[-1][:num]


def log_improvement(
    model: Model, rows: Tensor, best: Tensor, *, maximize: bool = True
) -> Tensor:  # shapes: (n, d) -> (n,)
    """Return the logarithm of the expected improvement, as BoTorch's ``LogExpectedImprovement``.

    That class converts its whole model whenever it is called, which takes longer than a few rows.
    """
    outputs = model.num_outputs
    check(outputs == 1, "model", "one outcome", f"{outputs}", InvalidShapeError)
    posterior: Any = model.posterior(rows.unsqueeze(-2))
    mean, sd = posterior.mean, posterior.variance.clamp_min(_LEAST_VARIANCE).sqrt()
    if not maximize:
        mean, best = -mean, -best
    value = log_expected_improvement(mean, sd, best).squeeze(-1).squeeze(-1)
    return value.logsumexp(-1) - math.log(value.shape[-1]) if is_ensemble(model) else value


@torch.no_grad()
def _best_of_draws(
    model: Model, rows: Tensor, num: int, generator: torch.Generator, *, maximize: bool
) -> Tensor:  # shape: (num,)
    """Return the rows at which posterior draws are best, each once, filled up with the first others."""
    posterior: Any = model.posterior(rows)
    mean = posterior.mean.reshape(-1, len(rows))
    cov = posterior.distribution.covariance_matrix.reshape(-1, *[len(rows)] * 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)  # many rows are nearly dependent
        root = psd_safe_cholesky(cov, max_tries=_TRIES)
    size = (*mean.shape, num)
    z = torch.randn(size, generator=generator, device=generator.device, dtype=mean.dtype)
    values = mean.unsqueeze(-1) + root @ z.to(mean)
    best = (values if maximize else -values).argmax(-2).flatten()
    shuffled = torch.randperm(len(best), generator=generator, device=generator.device)[:num]
    optima = best[shuffled.to(best.device)].unique()
    indices = torch.arange(len(rows), device=optima.device)
    return torch.cat([optima, indices[~torch.isin(indices, optima)]])[:num]
