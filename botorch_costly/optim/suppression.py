"""Of many converged points, the distinct optima."""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.device import is_near, read
from botorch_costly.errors import InvalidShapeError, check, check_positive
from botorch_costly.numerics.mean_shift import Modes, mean_shift, mean_shift_unasked


class Optima(NamedTuple):
    """Distinct local optima, best first; in a batch, NaN points of value -inf fill the rows."""

    points: Tensor  # shape: (*batch, m, d)
    values: Tensor  # shape: (*batch, m)


def suppress(
    points: Tensor,  # shape: (*batch, n, d)
    values: Tensor,  # shape: (*batch, n)
    bandwidth: float,
) -> Optima:
    """Merge points that lie closer than the bandwidth, and sort what is left by value.

    Clusters are those of mean shift with a flat kernel. A cluster is represented by its member with
    the highest value. The mean of a cluster is no optimum of anything: between two converged points
    the function may be lower than at both.

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
        found = suppress_unasked(points, values, bandwidth, every)
        whole = points.isfinite().all()
        finite, whole, number, right = read(finite, whole, found.number, found.right)
        check(bool(finite), "values", "finite numbers", "NaN or infinity")
        check(bool(whole), "points", "finite numbers", "NaN or infinity")
        if bool(right):
            optima = found.optima
            return Optima(optima.points[..., :number, :], optima.values[..., :number])
    optima, exists = _represented(points, values, mean_shift(points, bandwidth))
    most = int(exists.sum(-1).max())
    return Optima(optima.points[..., :most, :], optima.values[..., :most])


class Suppressed(NamedTuple):
    """Optima of which a device has not been asked how many there are."""

    optima: Optima  # as many as there were points
    number: Tensor  # of optima in the batch entry with most of them, shape: ()
    right: Tensor  # whether they are; if not, ``suppress`` has to be asked, bool, shape: ()


def suppress_unasked(
    points: Tensor,  # shape: (*batch, n, d)
    values: Tensor,  # shape: (*batch, n)
    bandwidth: float,
    counts: Tensor,  # bool, shape: (*batch, n)
) -> Suppressed:
    """Return what ``suppress`` does, of the points that count, without waiting for a device."""
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
    """Return the member with the highest value of each cluster, best first, and whether there is one."""
    clusters = torch.arange(modes.sizes.shape[-1], device=points.device)
    member = modes.labels[..., None, :] == clusters[:, None]  # (*batch, m, n)
    if counts is not None:
        member = member & counts[..., None, :]
    best, index = values[..., None, :].masked_fill(~member, -torch.inf).max(-1)
    # A mode whose points are all nearer to other modes has no member that represents it.
    exists = member.any(-1)
    order = best.argsort(dim=-1, descending=True, stable=True)
    exists, index = exists.gather(-1, order), index.gather(-1, order)
    chosen = points.gather(-2, index[..., None].expand(*index.shape, points.shape[-1]))
    chosen = chosen.masked_fill(~exists[..., None], torch.nan)
    return Optima(chosen, best.gather(-1, order)), exists
