"""The ends of an earlier study's trainings, extrapolated where they were stopped before."""

import torch
from torch import Tensor

from botorch_costly.models.growth import GrowthModel, fit_growth, prior_of_growth, thinned
from botorch_costly.numerics.growth import SHARES, Marks
from botorch_costly.tuners.earlier.unit import Unit

_CHUNK = 150  # trainings that are extrapolated together


def ends_of(points: Tensor, values: Tensor, shares: Tensor) -> tuple[Tensor, Tensor]:
    """Return the configurations of a study, and the values at the ends of their trainings.

    The value of a training that went to its end is its last one. Others are extrapolated by the model of
    growth, fitted to the study.

    Args:
        points: Configurations of all observations, ``n x d``, float64.
        values: Their values, larger is better, shape ``(n,)``.
        shares: Shares of a whole training after which they were measured, shape ``(n,)``.

    Returns:
        Different configurations ``m x d``, and numbers in the order of their ends, shape ``(m,)``.
    """
    trainings = _by_training(points)
    curves = [_sorted(shares[mine], values[mine]) for mine in trainings]
    x = torch.stack([points[mine[0]] for mine in trainings])
    unit = Unit.of(torch.stack([y[0] for _, y in curves]), values)
    ends = torch.stack([unit(y[-1]) for _, y in curves])
    partial = [i for i, (s, _) in enumerate(curves) if s[-1] < 1]
    if not partial:
        return x, ends
    marks, y = thinned(*_rows(x, curves, unit, range(len(x))))
    theta = fit_growth(marks, y, prior_of_growth(points.shape[-1], x).mean)
    lasts = [(s[-1:], v[-1:]) for s, v in curves]
    for begin in range(0, len(partial), _CHUNK):
        chunk = partial[begin : begin + _CHUNK]
        own, theirs = _rows(x, lasts, unit, chunk)
        rows = Marks(*(torch.cat(pair) for pair in zip(marks, own, strict=True)))
        model = GrowthModel.conditioned(rows, torch.cat([y, theirs]), theta)
        mean, _ = model.mean_and_variance(own._replace(share=torch.ones_like(own.share)))
        ends[chunk] = model.log_shares.exp() @ mean
    return x, ends


def _by_training(points: Tensor) -> list[Tensor]:
    """Return the numbers of the observations of each configuration."""
    _, which = torch.unique(points, dim=0, return_inverse=True)
    return list(which.argsort(stable=True).split(which.bincount().tolist()))


def _sorted(shares: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    order = shares.argsort(stable=True)
    return shares[order], values[order]


def _rows(
    x: Tensor, curves: list[tuple[Tensor, Tensor]], unit: Unit, numbers: range | list[int]
) -> tuple[Marks, Tensor]:
    """Return the values of some trainings at their rungs and at last, in units of growth."""
    rows = []
    for i in numbers:
        shares, values = curves[i]
        rungs = {int((shares <= share).sum()) - 1 for share in SHARES}
        rows += [(x[i], shares[k], values[k]) for k in sorted(rungs) if k >= 0]
    points, shares, values = map(torch.stack, zip(*rows, strict=True))
    return Marks(points, shares, points[:, :0]), unit(values)
