"""Local maxima on a finite set of points: a chain, a lattice or any graph.

A plateau is a connected set of points with equal values. It is a local maximum if no neighbour of any of
its points is higher; one of its points then represents it.

A NaN is no local maximum, and on a chain neither are its neighbours.
"""

from itertools import product

import torch
from torch import Tensor

from botorch_costly.device import is_near
from botorch_costly.errors import InvalidShapeError, check, check_count, check_nonnegative


def chain_local_maxima(
    values: Tensor,  # shape: (*batch, n)
) -> Tensor:  # shape: (*batch, n), bool
    """Mark the local maxima of functions on ordered points.

    An end is a local maximum if its only neighbour is lower. Of a plateau higher than its surroundings
    the middle is marked, the first of two; so a constant function has one local maximum.

    Args:
        values: Values of the functions, ``batch_shape x n``.

    Returns:
        ``batch_shape x n``, True at the local maxima.

    Raises:
        InvalidShapeError: If there is no point.

    Example:
        >>> chain_local_maxima(torch.tensor([3.0, 1.0, 2.0, 2.0, 2.0, 0.0])).int()
        tensor([1, 0, 0, 1, 0, 0], dtype=torch.int32)
    """
    _check_values(values)
    n = values.shape[-1]
    left, right = values[..., :-1], values[..., 1:]
    # Beyond both ends of the chain the function counts as lower.
    climbs = values.new_ones(values.shape, dtype=torch.bool)  # higher than the point before it
    drops = torch.ones_like(climbs)  # higher than the point after it
    torch.gt(right, left, out=climbs[..., 1:])
    torch.gt(left, right, out=drops[..., :-1])
    maxima = climbs & drops
    if n == 1:
        return maxima
    level = left == right
    if is_near(values) and not level.any():  # another device would have to be waited for
        return maxima
    return maxima | _middles_of_plateaus(level, climbs, drops)


def _middles_of_plateaus(
    level: Tensor,  # shape: (*batch, n - 1), bool: a point is as high as the next one
    climbs: Tensor,  # shape: (*batch, n), bool
    drops: Tensor,  # shape: (*batch, n), bool
) -> Tensor:  # shape: (*batch, n), bool
    """Mark the middle of every run of equal values that is higher than its surroundings."""
    n = climbs.shape[-1]
    index = torch.arange(n, device=level.device).expand(climbs.shape)
    after, before = torch.zeros_like(climbs), torch.zeros_like(climbs)
    after[..., :-1], before[..., 1:] = level, level
    # First and last point of each point's run.
    first = index.masked_fill(before, 0).cummax(-1).values
    last = index.masked_fill(after, n - 1).flip(-1).cummin(-1).values.flip(-1)
    high = climbs.gather(-1, first) & drops.gather(-1, last)
    return (before | after) & high & (index == (first + last) // 2)


def highest(
    values: Tensor,  # shape: (*batch, n)
    tolerance: float,
) -> Tensor:  # shape: (*batch,)
    """Return the index of the first point that is within the tolerance of the maximum.

    With a tolerance, rounding does not decide between equally good points, such as two at equal
    distance from a single observation.

    Args:
        values: Finite values, ``batch_shape x n``.
        tolerance: Largest difference from the maximum, in units of the values.

    Example:
        >>> highest(torch.tensor([0.0, 1.0, 1.0 + 1e-6]), 1e-5)
        tensor(1)
    """
    good = values >= values.amax(-1, keepdim=True) - tolerance
    return good.to(torch.uint8).argmax(-1)


def lattice_neighbours(
    shape: tuple[int, ...], *, diagonals: bool = False
) -> Tensor:  # shape: (n, k)
    """List the neighbours of each point of a lattice with row-major indices.

    Args:
        shape: Number of points along each axis.
        diagonals: Whether points that differ by one step along several axes are neighbours, too.

    Returns:
        ``n x k`` indices, -1 beyond the edge of the lattice; ``k`` is twice the number of axes, or
        ``3 ** len(shape) - 1`` with diagonals.

    Raises:
        InvalidArgumentError: If an axis has no point.

    Example:
        >>> lattice_neighbours((3,))
        tensor([[-1,  1],
                [ 0,  2],
                [ 1, -1]])
    """
    check(len(shape) > 0, "shape", "at least one axis", shape)
    for length in shape:
        check_count("shape", length, minimum=1)
    steps = [step for step in product((-1, 0, 1), repeat=len(shape)) if any(step)]
    if not diagonals:
        steps = [step for step in steps if sum(map(abs, step)) == 1]
    n = torch.Size(shape).numel()
    points = torch.stack(torch.unravel_index(torch.arange(n), shape), -1)
    targets = points[:, None] + torch.tensor(steps)  # (n, k, axes)
    inside = ((targets >= 0) & (targets < torch.tensor(shape))).all(-1)
    strides = torch.empty(shape, device="meta").stride()
    return (targets * torch.tensor(strides)).sum(-1).masked_fill(~inside, -1)


def grid_local_maxima(
    values: Tensor,  # shape: (*batch, n)
    neighbours: Tensor,  # shape: (n, k)
) -> Tensor:  # shape: (*batch, n), bool
    """Mark the local maxima of functions on the points of a graph.

    Of a plateau higher than its surroundings the point with the lowest index is marked.

    Args:
        values: Values of the functions, ``batch_shape x n``.
        neighbours: ``n x k`` indices of a symmetric relation, -1 where a point has fewer than ``k``
            neighbours.

    Returns:
        ``batch_shape x n``, True at the local maxima.

    Raises:
        InvalidShapeError: If there is no point or the list does not fit the values.
        InvalidArgumentError: If an index is out of range.

    Example:
        >>> values = torch.tensor([[1.0, 0.0, 2.0], [0.0, 0.0, 2.0]])
        >>> grid_local_maxima(values.flatten(), lattice_neighbours((2, 3))).view(2, 3).int()
        tensor([[1, 0, 1],
                [0, 0, 0]], dtype=torch.int32)
    """
    _check_values(values)
    n = values.shape[-1]
    fits = neighbours.dim() == 2 and neighbours.shape[0] == n
    fits = fits and neighbours.dtype == torch.long
    check(fits, "neighbours", f"{n} x k indices", tuple(neighbours.shape), InvalidShapeError)
    inside = bool(((neighbours >= -1) & (neighbours < n)).all())
    check(inside, "neighbours", f"indices in -1..{n - 1}", "others")
    exists, index = neighbours >= 0, neighbours.clamp(min=0)
    around = values[..., index]  # (*batch, n, k)
    beaten = (exists & (around > values[..., None])).any(-1)
    level = exists & (around == values[..., None])
    maxima = ~beaten & ~values.isnan()
    if not level.any():
        return maxima
    plateau = _plateaus(level, index)
    beaten_somewhere = torch.zeros_like(plateau).scatter_reduce(
        -1, plateau, beaten.long(), reduce="amax"
    )
    points = torch.arange(n, device=values.device)
    return maxima & (plateau == points) & (beaten_somewhere == 0)


def _plateaus(
    level: Tensor,  # shape: (*batch, n, k), bool
    index: Tensor,  # shape: (n, k)
) -> Tensor:  # shape: (*batch, n): the lowest index of each point's plateau
    label = torch.arange(level.shape[-2], device=level.device).expand(level.shape[:-1])
    while True:
        lowest = label[..., index].where(level, label[..., None]).amin(-1).minimum(label)
        # Labels are points: taking the label of the label doubles the distance per iteration.
        lowest = lowest.gather(-1, lowest)
        if torch.equal(lowest, label):
            return label
        label = lowest


def far_rival_on_grid(
    values: Tensor,  # shape: (*batch, n)
    candidate: Tensor,  # shape: (*batch,)
    points: Tensor,  # shape: (n, d)
    bandwidth: float,
) -> tuple[Tensor, Tensor]:  # shapes: (*batch,), (*batch,)
    """Find the best point farther from the candidate than the bandwidth.

    Args:
        values: Finite values, ``batch_shape x n``.
        candidate: Index of each candidate, ``batch_shape``.
        points: ``n x d`` coordinates, in the unit of the bandwidth.
        bandwidth: Least distance from the candidate.

    Returns:
        The index of the rival, and whether a rival exists; if not, the index is the candidate's.

    Raises:
        InvalidShapeError: If the shapes do not fit each other.
        InvalidArgumentError: If the bandwidth is negative.

    Example:
        >>> values, points = torch.tensor([1.0, 5.0, 4.0, 0.0]), torch.linspace(0, 1, 4)[:, None]
        >>> far_rival_on_grid(values, torch.tensor(1), points, bandwidth=0.5)
        (tensor(3), tensor(True))
    """
    _check_values(values)
    check_nonnegative("bandwidth", bandwidth)
    shape = tuple(values.shape)
    fits = points.dim() == 2 and points.shape[0] == shape[-1]
    check(fits, "points", f"{shape[-1]} x d", tuple(points.shape), InvalidShapeError)
    received = tuple(candidate.shape)
    check(received == shape[:-1], "candidate", f"shape {shape[:-1]}", received, InvalidShapeError)
    # Not by matrix products, whose rounding errors would decide ties.
    centers = points[candidate].reshape(-1, points.shape[-1])
    distance = torch.cdist(centers, points, compute_mode="donot_use_mm_for_euclid_dist")
    near = (distance <= bandwidth).reshape(shape)
    exists = ~near.all(-1)
    index = values.masked_fill(near, -torch.inf).argmax(-1)
    return torch.where(exists, index, candidate), exists


def _check_values(values: Tensor) -> None:
    fits = values.dim() >= 1 and values.shape[-1] > 0
    check(fits, "values", "batch_shape x n with n > 0", tuple(values.shape), InvalidShapeError)
