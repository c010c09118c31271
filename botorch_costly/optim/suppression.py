"""The distinct optima among many converged points."""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.device import is_near, read
from botorch_costly.errors import InvalidShapeError, check, check_positive
from botorch_costly.numerics.mean_shift import Modes, mean_shift, mean_shift_unasked


class Optima(NamedTuple):
    """Distinct local optima, best first; a batch is padded with NaN points of value -inf."""

    points: Tensor  # shape: (*batch, m, d)
    values: Tensor  # shape: (*batch, m)


def suppress(
    points: Tensor,  # shape: (*batch, n, d)
    values: Tensor,  # shape: (*batch, n)
    bandwidth: float,
) -> Optima:
    """Merge points that lie closer than the bandwidth, and sort the remaining points by value.

    Mean shift with a flat kernel makes the clusters. The member with the highest value represents a
    cluster, since at its mean the function may be lower than at any member.

    References:
        - *Cost-efficient online hyperparameter optimization*, appendix, implementation details.
        - Cheng, *Mean shift, mode seeking, and clustering* (1995).

    Args:
        points: ``batch_shape x n x d`` converged points, finite.
        values: ``batch_shape x n`` values to be maximized, finite.
        bandwidth: Radius of the flat kernel, in the unit of the points.

    Returns:
        The optima, ``batch_shape x m x d`` and ``batch_shape x m``.

    Raises:
        InvalidShapeError: If the shapes do not fit each other.
        InvalidArgumentError: If a value or point is not finite or the bandwidth not positive.

    Example:
        >>> points = torch.tensor([[0.10], [0.12], [0.90]])
        >>> suppress(points, torch.tensor([1.0, 2.0, 3.0]), bandwidth=0.2).values
        tensor([3., 2.])
    """
    shape = tuple(points.shape[:-1])
    check(values.shape == shape, "values", f"shape {shape}", tuple(values.shape), InvalidShapeError)
    check_positive("bandwidth", bandwidth)
    finite = values.isfinite().all()
    if is_near(points):
        check(bool(finite), "values", "finite numbers", "NaN or infinity")
    else:
        every = torch.ones_like(values, dtype=torch.bool)
        optima, number, right = suppress_unasked(points, values, bandwidth, every)
        finite, finite_points, number, right = read(finite, points.isfinite().all(), number, right)
        check(bool(finite), "values", "finite numbers", "NaN or infinity")
        check(bool(finite_points), "points", "finite numbers", "NaN or infinity")
        if bool(right):
            return Optima(optima.points[..., :number, :], optima.values[..., :number])
    optima, exists = _represented(points, values, mean_shift(points, bandwidth))
    most = int(exists.sum(-1).max())
    return Optima(optima.points[..., :most, :], optima.values[..., :most])


class Suppressed(NamedTuple):
    """Optima before their number is read, which would wait for the device."""

    optima: Optima  # padded to the number of points
    number: Tensor  # optima in the batch entry with most of them, shape: ()
    right: Tensor  # bool, shape: (): if False, the optima are wrong; call ``suppress``


def suppress_unasked(
    points: Tensor,  # shape: (*batch, n, d)
    values: Tensor,  # shape: (*batch, n)
    bandwidth: float,
    counts: Tensor,  # bool, shape: (*batch, n)
) -> Suppressed:
    """Suppress like ``suppress``, among the points with ``counts``, without waiting for a device."""
    modes, right = mean_shift_unasked(points, bandwidth, counts)
    values = values.masked_fill(~counts, -torch.inf)
    optima, exists = _represented(points, values, modes, counts)
    return Suppressed(optima, exists.sum(-1).max(), right)


def _represented(
    points: Tensor,  # shape: (*batch, n, d)
    values: Tensor,  # shape: (*batch, n)
    modes: Modes,
    counts: Tensor | None = None,  # bool, shape: (*batch, n)
) -> tuple[Optima, Tensor]:
    """Return the best member of each cluster, best first, and whether the cluster has a member."""
    clusters = torch.arange(modes.sizes.shape[-1], device=points.device)
    member = modes.labels[..., None, :] == clusters[:, None]  # (*batch, m, n)
    if counts is not None:
        member = member & counts[..., None, :]
    best, index = values[..., None, :].masked_fill(~member, -torch.inf).max(-1)
    # A mode has no member if all its points are nearer to other modes.
    exists = member.any(-1)
    order = best.argsort(dim=-1, descending=True, stable=True)
    exists, index = exists.gather(-1, order), index.gather(-1, order)
    chosen = points.gather(-2, index[..., None].expand(*index.shape, points.shape[-1]))
    chosen = chosen.masked_fill(~exists[..., None], torch.nan)
    return Optima(chosen, best.gather(-1, order)), exists
