"""Points that stand for the whole space: where an optimum may be."""

import warnings
from collections.abc import Mapping
from typing import Any

import torch
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.models.model import Model
from linear_operator.utils.cholesky import psd_safe_cholesky
from linear_operator.utils.warnings import NumericalWarning
from torch import Tensor

from botorch_costly.errors import InvalidShapeError, check, check_count
from botorch_costly.numerics.ensemble_sampling import walk
from botorch_costly.numerics.gumbel import without_replacement
from botorch_costly.randomness import check_generator

MEASURES = ("improvement", "draws", "uniform")
_SCREENED = 20  # uniform draws for each point
_STEPS = 20  # of the walk
_TRIES = 6  # of a Cholesky factor, each with ten times the jitter
_POOL = 1000  # uniform draws among which a draw of the posterior is largest


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

    By improvement, some of many uniform draws are kept, in proportion to their expected improvement. Then
    they walk as an ensemble, so that no point is bound to where it was first drawn.

    By draws, each point is where a draw of the posterior is best, of many uniform points and those by
    improvement. Where several draws are best at the same point, points by improvement take the places
    that are left. Each member of an ensemble needs a Cholesky factor of about a thousand rows.

    References:
        - P. Hennig, C. J. Schuler. Entropy search for information-efficient global optimization. JMLR 13,
          2012, section 2.2.
        - J. M. Hernandez-Lobato, M. W. Hoffman, Z. Ghahramani. Predictive entropy search for efficient
          global optimization of black-box functions. NeurIPS 2014: optima of draws.

    Args:
        model: A single-outcome model, or an ensemble.
        bounds: Lower and upper bounds of the columns, ``2 x d``.
        num: How many points.
        best_f: The value to be improved on.
        generator: The source of the draws.
        maximize: Whether larger values are better.
        measure: ``"improvement"``, ``"draws"`` or ``"uniform"``.
        fixed: Columns that have one value in all points, such as the share of the data.

    Returns:
        The points, ``num x d``.

    Raises:
        InvalidShapeError: If the bounds are not two rows.
        InvalidArgumentError: If ``num`` is less than 1, or the measure unknown.
    """
    shape = tuple(bounds.shape)
    check(len(shape) == 2 and shape[0] == 2, "bounds", "2 x d", shape, InvalidShapeError)
    check(measure in MEASURES, "measure", f"one of {MEASURES}", measure)
    check_count("num", num, minimum=1)
    cube = _Cube(bounds, fixed or {}, generator)
    if measure == "uniform" or not cube.free:
        return cube.completed(cube.uniform(num))
    improvement = LogExpectedImprovement(
        model, torch.as_tensor(best_f).to(bounds), maximize=maximize
    )
    walked = _by_improvement(improvement, cube, num)
    if measure == "improvement":
        return cube.completed(walked)
    rows = cube.completed(torch.cat([walked, cube.uniform(_POOL)]))
    return rows[_best_of_draws(model, rows, num, generator, maximize=maximize)]


class _Cube:
    """The columns that are free, as a unit cube."""

    def __init__(
        self, bounds: Tensor, fixed: Mapping[int, float], generator: torch.Generator
    ) -> None:
        self.generator, self._bounds = check_generator(generator), bounds
        self._fixed = dict(fixed)
        self.free = [column for column in range(bounds.shape[1]) if column not in self._fixed]

    def completed(self, x: Tensor) -> Tensor:
        """Return all columns of points of the cube, ``(*batch, free) -> (*batch, d)``."""
        rows = self._bounds.new_empty(*x.shape[:-1], self._bounds.shape[1])
        low, high = self._bounds[:, self.free]
        rows[..., self.free] = low + (high - low) * x
        for column, value in self._fixed.items():
            rows[..., column] = value
        return rows

    def uniform(self, count: int) -> Tensor:
        """Return uniform draws, ``count x free``."""
        size, drawer = (count, len(self.free)), self.generator
        drawn = torch.rand(size, generator=drawer, device=drawer.device, dtype=self._bounds.dtype)
        return drawn.to(self._bounds.device)


def _by_improvement(improvement: LogExpectedImprovement, cube: _Cube, num: int) -> Tensor:
    """Return points of the cube in proportion to the expected improvement, ``num x free``."""

    @torch.no_grad()
    def log_density(x: Tensor) -> Tensor:
        inside = ((x >= 0) & (x <= 1)).all(-1)
        value = improvement(cube.completed(x.clamp(0, 1)).unsqueeze(-2))
        return torch.where(inside, value, -torch.inf)

    walkers = num + num % 2
    screened = cube.uniform(_SCREENED * walkers)
    coins = cube.uniform(len(screened))[:, 0]
    kept = without_replacement(log_density(screened), walkers, coins)
    return walk(log_density, screened[kept], _STEPS, cube.generator).points[-1][:num]


@torch.no_grad()
def _best_of_draws(
    model: Model, rows: Tensor, num: int, generator: torch.Generator, *, maximize: bool
) -> Tensor:  # shape: (num,)
    """Return at which rows draws of the posterior are best, each once, then the first of the rest."""
    posterior: Any = model.posterior(rows)
    mean = posterior.mean.reshape(-1, len(rows))
    cov = posterior.distribution.covariance_matrix.reshape(-1, *[len(rows)] * 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)  # so many rows are nearly dependent
        root = psd_safe_cholesky(cov, max_tries=_TRIES)
    size = (*mean.shape, num)
    z = torch.randn(size, generator=generator, device=generator.device, dtype=mean.dtype)
    values = mean.unsqueeze(-1) + root @ z.to(mean)
    best = (values if maximize else -values).argmax(-2).flatten()
    some = torch.randperm(len(best), generator=generator, device=generator.device)[:num]
    found = best[some.to(best.device)].unique()
    rest = torch.arange(len(rows), device=found.device)
    return torch.cat([found, rest[~torch.isin(rest, found)]])[:num]
