"""What twins have taught: how much better than the present configuration others are, column by column."""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.numerics.differences import (
    Differences,
    ScalePrior,
    Smoothness,
    covariances,
    fit_scales,
    posterior,
)
from botorch_costly.tuners.twins.constants import CONSTANTS

_SMOOTHNESS = Smoothness(CONSTANTS.lengthscale, CONSTANTS.forgetting)
_PRIOR = ScalePrior(scale=CONSTANTS.prior_scale)


class Row(NamedTuple):
    """A twin that was compared."""

    point: Tensor
    reference: Tensor
    time: float
    value: float


class TwinBelief:
    """A Gaussian process of differences, whose scales are those of the latest twins.

    Args:
        numbers: Which columns are numbers, 1 or 0, shape ``(d,)``. Wherever the best is in their ranges,
            a step towards the middle is right more often than one away from it.
    """

    def __init__(self, numbers: Tensor) -> None:
        self._rows: list[Row] = []
        self._numbers = numbers

    def observe(self, row: Row) -> None:
        """Enter a difference; it takes the place of an earlier one of the same twins."""
        low, high = CONSTANTS.lowest_advantage, CONSTANTS.highest_advantage
        self._rows = [
            r for r in self._rows if r.time != row.time or not torch.equal(r.point, row.point)
        ]
        self._rows.append(row._replace(value=min(max(row.value, low), high)))

    def better(
        self,
        points: Tensor,  # shape: (m, d)
        reference: Tensor,  # shape: (d,)
        time: float,
    ) -> tuple[Tensor, Tensor]:
        """Return mean and standard deviation of what points are better by, each of shape ``(m,)``."""
        references = reference.expand_as(points)
        asked = Differences(points, references, torch.full((len(points),), time).double())
        rows, values = _stacked(self._rows, points.shape[-1])
        left = values - self._expected(rows)
        retained = (-_SMOOTHNESS.forgetting * (time - rows.times).abs()).exp()
        recent = retained >= CONSTANTS.recent_correlation
        few = Differences(*(part[recent] for part in rows))
        scales = fit_scales(covariances(few, few, _SMOOTHNESS), left[recent], _PRIOR)
        mean, variance = posterior(rows, left, asked, scales, _SMOOTHNESS)
        return mean + self._expected(asked), variance.sqrt()

    def _expected(self, rows: Differences) -> Tensor:
        """Return the prior mean of differences."""
        away, before = ((2 * points - 1).square() for points in (rows.points, rows.references))
        return CONSTANTS.centre_advantage * ((before - away) * self._numbers).sum(-1)


def _stacked(rows: list[Row], d: int) -> tuple[Differences, Tensor]:
    if not rows:
        none = torch.zeros(0, d, dtype=torch.float64)
        return Differences(none, none, none.new_zeros(0)), none.new_zeros(0)
    points = torch.stack([row.point for row in rows])
    references = torch.stack([row.reference for row in rows])
    times = torch.tensor([row.time for row in rows], dtype=torch.float64)
    return Differences(points, references, times), times.new_tensor([r.value for r in rows])
