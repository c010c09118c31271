"""Modes of a cloud of points by mean shift with a flat kernel, for all seeds at once.

A seed shifts to the mean of the points within the bandwidth until a shift is less than 1e-3 bandwidths.
Of seeds that end within a bandwidth of each other, the one with the largest neighbourhood is kept.

Conventions: a point at exactly the bandwidth counts as inside; the size of a mode is counted around the
last but one position, whose neighbourhood's mean is the center (as in scikit-learn).

Notation: ``n`` points, ``s`` seeds, ``m`` modes, ``d`` dimensions.
"""

from itertools import repeat
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.errors import (
    InvalidArgumentError,
    InvalidShapeError,
    check,
    check_count,
    check_positive,
)

_STOP = 1e-3  # shift of a converged seed, relative to the bandwidth
_PASSES_UNSYNCED = 8  # on a device that is not synchronized; usually one to three are enough


class Modes(NamedTuple):
    """Modes of each cloud, largest first, padded beyond ``number`` by NaN centers of size 0."""

    centers: Tensor  # shape: (*batch, m, d)
    sizes: Tensor  # (weighted) number of points around the center, shape: (*batch, m)
    labels: Tensor  # index of the nearest center of each point, shape: (*batch, n)
    number: Tensor  # number of modes, shape: (*batch,)


def mean_shift(
    points: Tensor,
    bandwidth: float,
    seeds: Tensor | None = None,
    max_iter: int = 300,
    weights: Tensor | None = None,
) -> Modes:
    r"""Find the modes of each cloud of a batch and the nearest mode of each point.

    .. math:: z \leftarrow \sum_i w_i x_i \, [\|x_i - z\| \le h] \,/\, \sum_i w_i [\|x_i - z\| \le h]

    Modes are sorted by size and then by the center's coordinates, all descending, as in scikit-learn.

    References:
        - Fukunaga & Hostetler, *The estimation of the gradient of a density function* (1975).
        - Cheng, *Mean shift, mode seeking, and clustering* (1995).
        - Comaniciu & Meer, *Mean shift: a robust approach toward feature space analysis* (2002).

    Args:
        points: ``batch_shape x n x d`` clouds.
        bandwidth: Radius of the flat kernel, in the unit of the points.
        seeds: ``s x d`` or ``batch_shape x s x d`` positions to start from; by default the points.
        max_iter: Most shifts of a seed after its first.
        weights: ``n`` or ``batch_shape x n`` non-negative weights. A point of weight 0 is excluded (it
            is no seed, but is labelled), so that clouds of different sizes can share a batch.

    Returns:
        The modes, with shapes as in :class:`Modes`.

    Raises:
        InvalidShapeError: If the shapes do not fit each other.
        InvalidArgumentError: If a number is not finite, the bandwidth not positive, a weight
            negative, or no point of a cloud lies within the bandwidth of any seed.

    Example:
        >>> cloud = torch.tensor([[0.0], [0.1], [0.2], [5.0]])
        >>> modes = mean_shift(cloud, bandwidth=1.0)
        >>> modes.centers.squeeze(-1), modes.labels
        (tensor([0.1000, 5.0000]), tensor([0, 0, 0, 1]))
    """
    check_positive("bandwidth", bandwidth)
    check_count("max_iter", max_iter)
    _check_cloud(points, seeds, weights)
    batch = points.shape[:-2]
    if weights is not None:
        weights = weights.expand(points.shape[:-1])
    position = points if seeds is None else seeds.expand(*batch, *seeds.shape[-2:])
    centers, sizes, _ = _shift(points, weights, bandwidth, position, max_iter, syncs=True)
    if seeds is None and weights is not None:
        sizes = sizes * (weights > 0)
    expected = f"a point within bandwidth {bandwidth} of some seed in every cloud"
    fits = bool((sizes > 0).any(-1).all())
    check(fits, "seeds", expected, "seeds with empty neighbourhoods")
    return _merge(points, bandwidth, centers, sizes, syncs=True)[0]


def mean_shift_unasked(points: Tensor, bandwidth: float, counts: Tensor) -> tuple[Modes, Tensor]:
    """Return modes and whether they are those of ``mean_shift``, without synchronizing a device.

    They are, unless a seed shifts more than eight times, or merging chains of near centers takes more
    than eight passes. Arguments are not validated.

    Args:
        points: ``batch_shape x n x d`` clouds, finite where ``counts`` is true.
        bandwidth: Radius of the flat kernel, in the unit of the points.
        counts: Mask of the points that exist, ``batch_shape x n``; at least one in every cloud.

    Returns:
        As many modes as points, padded beyond ``number``; and a bool, shape ``()``.
    """
    points, weights = points.nan_to_num(0.0, 0.0, 0.0), counts.to(points)
    shifted = _shift(points, weights, bandwidth, points, _PASSES_UNSYNCED, syncs=False)
    centers, sizes, converged = shifted
    modes, merged = _merge(points, bandwidth, centers, sizes * weights, syncs=False)
    return modes, (converged | ~counts).all() & merged


def _check_cloud(points: Tensor, seeds: Tensor | None, weights: Tensor | None) -> None:
    shape = tuple(points.shape)
    fits = points.dim() >= 2 and points.numel() > 0 and points.is_floating_point()
    check(fits, "points", "a floating-point batch_shape x n x d tensor", shape, InvalidShapeError)
    check(bool(points.isfinite().all()), "points", "finite numbers", "NaN or infinity")
    if seeds is not None:
        fits = seeds.dim() >= 2 and seeds.numel() > 0 and seeds.shape[-1] == shape[-1]
        fits = fits and seeds.shape[:-2] in ((), points.shape[:-2]) and seeds.dtype == points.dtype
        expected = f"s x {shape[-1]} seeds, one set or one per cloud, in {points.dtype}"
        check(fits, "seeds", expected, tuple(seeds.shape), InvalidShapeError)
        check(bool(seeds.isfinite().all()), "seeds", "finite numbers", "NaN or infinity")
    if weights is not None:
        fits = weights.shape in (points.shape[:-1], points.shape[-2:-1])
        expected = f"{shape[-2]} weights, one set or one per cloud"
        check(fits, "weights", expected, tuple(weights.shape), InvalidShapeError)
        valid = bool((weights.isfinite() & (weights >= 0)).all())
        check(valid, "weights", "finite numbers >= 0", "others", InvalidArgumentError)


def _distances(
    a: Tensor,  # shape: (*batch, p, d)
    b: Tensor,  # shape: (*batch, q, d)
) -> Tensor:  # shape: (*batch, p, q)
    # The expansion |a|^2 + |b|^2 - 2ab would lose the digits that decide which points are inside.
    return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist")


def _shift(
    points: Tensor,  # shape: (*batch, n, d)
    weights: Tensor | None,  # shape: (*batch, n)
    bandwidth: float,
    position: Tensor,  # shape: (*batch, s, d)
    max_iter: int,
    *,
    syncs: bool,
) -> tuple[Tensor, Tensor, Tensor]:  # shapes: (*batch, s, d), (*batch, s), (*batch, s)
    """Shift every seed until it converges; return positions, sizes and which seeds have converged.

    A seed with an empty neighbourhood ends with size 0. Without synchronization all shifts are made.
    """
    sizes = position.new_zeros(position.shape[:-1])
    shifting = torch.ones_like(sizes, dtype=torch.bool)
    for _ in range(max_iter + 1):
        inside = (_distances(position, points) <= bandwidth).to(points)
        if weights is not None:
            inside = inside * weights[..., None, :].to(points)
        mass = inside.sum(-1)
        sizes = torch.where(shifting, mass, sizes)
        shifting = shifting & (mass > 0)
        mean = inside @ points / mass[..., None]
        step = torch.linalg.vector_norm(mean - position, dim=-1)
        position = torch.where(shifting[..., None], mean, position)
        shifting = shifting & (step > _STOP * bandwidth)
        if syncs and not shifting.any():
            break
    return position, sizes, ~shifting


def _merge(
    points: Tensor,  # shape: (*batch, n, d)
    bandwidth: float,
    centers: Tensor,  # shape: (*batch, s, d)
    sizes: Tensor,  # shape: (*batch, s)
    *,
    syncs: bool,
) -> tuple[Modes, Tensor]:
    """Keep the largest of the centers within a bandwidth; also return whether all are decided."""
    order = _by_size(centers, sizes)
    centers, sizes = centers.take_along_dim(order[..., None], -2), sizes.gather(-1, order)
    near = _distances(centers, centers) <= bandwidth
    chosen, decided = _first_of_each(near, sizes > 0, syncs=syncs)
    number = chosen.sum(-1)
    # A stable sort puts the chosen centers first and leaves them in order.
    front = chosen.int().argsort(dim=-1, descending=True, stable=True)
    front = front[..., : int(number.max())] if syncs else front
    centers, sizes = centers.take_along_dim(front[..., None], -2), sizes.gather(-1, front)
    exists = chosen.gather(-1, front)
    distance = _distances(points, centers).masked_fill(~exists[..., None, :], torch.inf)
    modes = Modes(
        centers.masked_fill(~exists[..., None], torch.nan),
        sizes.masked_fill(~exists, 0.0),
        distance.argmin(-1),
        number,
    )
    return modes, decided


def _by_size(
    centers: Tensor,  # shape: (*batch, s, d)
    sizes: Tensor,  # shape: (*batch, s)
) -> Tensor:  # shape: (*batch, s)
    """Sort by (size, first coordinate, second coordinate, ...), descending."""
    # Stable sorts from the least to the most significant key.
    keys = [*reversed(centers.unbind(-1)), sizes]
    order = keys[0].argsort(dim=-1, descending=True, stable=True)
    for key in keys[1:]:
        by_key = key.gather(-1, order).argsort(dim=-1, descending=True, stable=True)
        order = order.gather(-1, by_key)
    return order


def _first_of_each(
    near: Tensor,  # shape: (*batch, s, s), bool, symmetric
    candidate: Tensor,  # shape: (*batch, s), bool
    *,
    syncs: bool,
) -> tuple[Tensor, Tensor]:  # shapes: (*batch, s) and (), bool
    """Choose a center unless an earlier chosen one is near; also return whether all are decided.

    Each pass decides all centers without undecided earlier neighbours, so that a few passes replace a
    loop over the centers.
    """
    earlier = near.tril(-1)
    chosen = torch.zeros_like(candidate)
    undecided = candidate
    for _ in repeat(None) if syncs else range(_PASSES_UNSYNCED):
        if syncs and not undecided.any():
            break
        waits = (earlier & undecided[..., None, :]).any(-1)
        first = undecided & ~waits
        chosen = chosen | first
        undecided = undecided & ~(near & first[..., None, :]).any(-1)
    return chosen, ~undecided.any()
