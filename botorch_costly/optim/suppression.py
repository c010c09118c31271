"""Of many converged points, the distinct optima."""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.errors import InvalidShapeError, check
from botorch_costly.numerics.mean_shift import mean_shift


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
    check(bool(values.isfinite().all()), "values", "finite numbers", "NaN or infinity")
    modes = mean_shift(points, bandwidth)
    clusters = torch.arange(modes.sizes.shape[-1], device=points.device)
    member = modes.labels[..., None, :] == clusters[:, None]  # (*batch, m, n)
    best, index = values[..., None, :].masked_fill(~member, -torch.inf).max(-1)
    # A mode whose points are all nearer to other modes has no member that represents it.
    exists = member.any(-1)
    order = best.argsort(dim=-1, descending=True, stable=True)
    order = order[..., : int(exists.sum(-1).max())]
    exists, index = exists.gather(-1, order), index.gather(-1, order)
    chosen = points.gather(-2, index[..., None].expand(*index.shape, points.shape[-1]))
    return Optima(
        chosen.masked_fill(~exists[..., None], torch.nan),
        best.gather(-1, order),
    )
