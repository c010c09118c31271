"""The rival of a local optimum that stands alone: the best point far from it."""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.device import is_near, moved
from botorch_costly.errors import InvalidShapeError, NumericalError, check, check_positive
from botorch_costly.optim.smooth import Acquisition, SmoothFunction
from botorch_costly.optim.starts import box_at, check_bounds, drawn_from, outside
from botorch_costly.optim.suppression import Optima


class Rival(NamedTuple):
    """The best point found farther from the candidate than the bandwidth."""

    point: Tensor  # shape: (d,)
    value: Tensor  # shape: ()


def far_rival(
    acq_function: Acquisition | SmoothFunction,
    optima: Optima,
    bounds: Tensor,  # shape: (2, d)
    bandwidth: float = 0.2,
    candidates: Tensor | None = None,  # shape: (m, d)
    *,
    num_candidates: int = 256,
    generator: torch.Generator | None = None,
) -> Rival | None:
    r"""Find the rival of a lone optimum: the best point farther from it than the bandwidth.

    When the candidate is the only local optimum, a rule that compares it with the other optima
    has nothing to compare it with, would never query again and would forget everything.

    The candidates are a Sobol set, the points given (the starts and ends of the search, say), the
    points at which the ray from the candidate to each of them leaves the ball

    .. math:: \{x : \|x - x_t\| \le h\},

    and those at which the axes leave it. Where the function falls off around its lone optimum, the
    best point outside the ball is on the sphere.

    Args:
        acq_function: Maps ``b x 1 x d`` to ``b``.
        optima: Local optima; the candidate is the first.
        bounds: ``2 x d`` finite lower and upper bounds.
        bandwidth: Least distance from the candidate, in the unit cube.
        candidates: ``m x d`` further points, in the unit of the bounds.
        num_candidates: Number of Sobol points.
        generator: Source of the Sobol points; without one they are those of seed 0.

    Returns:
        The rival, or None if no point of the box is that far from the candidate (as with a
        bandwidth of at least 1 and a candidate in a corner of a one-dimensional box): then the
        candidate is, at this resolution, the whole box, and has no rival at all.

    Raises:
        NumericalError: If the acquisition function is finite at no candidate.
        InvalidShapeError: If shapes do not fit each other.
        InvalidArgumentError: If an option is out of range.

    Example:
        >>> from botorch_costly.optim import local_optima
        >>> def peak(X):
        ...     return -(X - 0.5).square().sum((-1, -2))
        >>> bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]])
        >>> rival = far_rival(peak, local_optima(peak, bounds), bounds, bandwidth=0.2)
        >>> round(rival.value.item(), 3)
        -0.04
    """
    check_positive("bandwidth", bandwidth)
    lower, _ = check_bounds(bounds)
    points, box = optima.points, box_at(bounds, optima.points)
    candidate = ((points[..., 0, :] - box.lower) / box.width).clamp(0.0, 1.0)
    farthest = (candidate < 0.5).to(candidate)  # the corner across, half the diagonal away or more
    within_reach = bandwidth < 0.5 * len(lower) ** 0.5
    if not within_reach and torch.linalg.vector_norm(farthest - candidate) <= bandwidth:
        return None
    drawn = moved(drawn_from(num_candidates, "sobol", bounds, generator), points)
    around = [drawn, farthest[None]]
    if candidates is not None:
        fits = candidates.dim() == 2 and candidates.shape[-1] == len(lower)
        expected = f"shape (m, {len(lower)})"
        check(fits, "candidates", expected, tuple(candidates.shape), InvalidShapeError)
        around.append(((candidates.to(points) - box.lower) / box.width).clamp(0.0, 1.0))
    beyond, far = _beyond(candidate, torch.cat(around), bandwidth)
    points = outside(beyond, box)
    with torch.no_grad():
        values = acq_function(points.unsqueeze(-2))
    finite = values.isfinite() & far
    best = values.masked_fill(~finite, -torch.inf).argmax().reshape(1)
    if not finite.any():
        expected = "a finite value far from the candidate"
        raise NumericalError("acq_function", expected, values[far][0].item())
    return Rival(points[best].squeeze(0), values[best].squeeze(0))


def _beyond(
    candidate: Tensor,  # shape: (d,)
    around: Tensor,  # shape: (m, d)
    bandwidth: float,
) -> tuple[Tensor, Tensor]:  # shapes: (c, d), and (c,): which are farther away than the bandwidth
    # A little outside the sphere, so that rounding cannot bring a point back in.
    radius = bandwidth * (1 + torch.finfo(around.dtype).eps ** 0.5)
    axes = torch.eye(len(candidate), dtype=around.dtype, device=around.device)
    directions = around - candidate
    length = torch.linalg.vector_norm(directions, dim=-1, keepdim=True)
    # The box is convex: the ray to a point in it is in it until it gets there.
    on_sphere = candidate + directions * (radius / length)
    on_axes = torch.cat([candidate + radius * axes, candidate - radius * axes]).clamp(0.0, 1.0)
    crossed = (length > radius).squeeze(-1)
    if is_near(around):
        points = torch.cat([around, on_sphere[crossed], on_axes])
        points = points[torch.linalg.vector_norm(points - candidate, dim=-1) > bandwidth]
        return points, torch.ones_like(points[:, 0], dtype=torch.bool)
    # How many there are is not asked for: the others are marked.
    points = torch.cat([around, torch.where(crossed.unsqueeze(-1), on_sphere, candidate), on_axes])
    return points, torch.linalg.vector_norm(points - candidate, dim=-1) > bandwidth
