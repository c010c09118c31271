"""A model of the advantages that trials have had over the configuration beside them, column by column."""

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

_SMOOTHNESS = Smoothness(lengthscale=0.7, forgetting=0.7)
_PRIOR = ScalePrior(scale=0.3)
_RECENT = 0.6  # correlation in time from which a difference is used to fit scales
_CENTRE = 0.1  # prior advantage of the middle of a range over its end
_RANGE = (-1.0, 1.5)  # of advantages: the depth of a failure says nothing of the best


class Row(NamedTuple):
    """The comparison of a trial with a reference."""

    point: Tensor
    reference: Tensor
    time: float
    value: float


class TwinBelief:
    """A Gaussian process of differences; its scales are fitted to recent trials.

    Args:
        numbers: 1 for the columns of numbers and 0 for the others, shape ``(d,)``. Wherever the best
            value of a number lies, a step towards the middle of its range helps more often than one away.
    """

    def __init__(self, numbers: Tensor) -> None:
        self._rows: list[Row] = []
        self._numbers = numbers

    def observe(self, row: Row) -> None:
        """Add a comparison; it replaces an earlier one of the same trial."""
        low, high = _RANGE
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
        """Return the mean and standard deviation of each point's advantage, each of shape ``(m,)``."""
        references = reference.expand_as(points)
        queried = Differences(points, references, torch.full((len(points),), time).double())
        rows, values = _stacked(self._rows, points.shape[-1])
        residuals = values - self._prior_mean(rows)
        retained = (-_SMOOTHNESS.forgetting * (time - rows.times).abs()).exp()
        is_recent = retained >= _RECENT
        recent = Differences(*(column[is_recent] for column in rows))
        scales = fit_scales(covariances(recent, recent, _SMOOTHNESS), residuals[is_recent], _PRIOR)
        mean, variance = posterior(rows, residuals, queried, scales, _SMOOTHNESS)
        return mean + self._prior_mean(queried), variance.sqrt()

    def _prior_mean(self, rows: Differences) -> Tensor:
        """Return the prior mean of differences."""
        after, before = ((2 * points - 1).square() for points in (rows.points, rows.references))
        return _CENTRE * ((before - after) * self._numbers).sum(-1)


def _stacked(rows: list[Row], d: int) -> tuple[Differences, Tensor]:
    if not rows:
        none = torch.zeros(0, d, dtype=torch.float64)
        return Differences(none, none, none.new_zeros(0)), none.new_zeros(0)
    points = torch.stack([row.point for row in rows])
    references = torch.stack([row.reference for row in rows])
    times = torch.tensor([row.time for row in rows], dtype=torch.float64)
    return Differences(points, references, times), times.new_tensor([r.value for r in rows])
