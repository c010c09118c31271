"""The rival of a lone local optimum: the best point far from it."""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.device import is_near, moved
from botorch_costly.errors import NumericalError, check_positive
from botorch_costly.optim.smooth import Acquisition, SmoothFunction
from botorch_costly.optim.starts import (
    box_of,
    clamped_to_unit_cube,
    draw_starts,
    from_unit_cube,
    to_unit_cube,
)
from botorch_costly.optim.suppression import Optima


class Rival(NamedTuple):
    """The best evaluated point that is farther from the candidate than the bandwidth."""

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

    If the candidate is the only local optimum, a query rule has no other optimum to compare it with. It
    would never query again, and the belief would forget everything.

    The evaluated points are a Sobol set and ``candidates``, such as the starts and ends of the search;
    the points at which the ray from the candidate to each of these leaves the ball

    .. math:: \{x : \|x - x_t\| \le h\};

    and the points at which the axes leave it. If the function falls off around its lone optimum, the
    best point outside the ball is on the sphere.

    Args:
        acq_function: Maps ``b x 1 x d`` to ``b``.
        optima: Local optima; the candidate is the first.
        bounds: ``2 x d`` finite lower and upper bounds.
        bandwidth: Least distance from the candidate, in the unit cube.
        candidates: ``m x d`` further points, in the unit of the bounds.
        num_candidates: Number of Sobol points.
        generator: Random generator for the Sobol points; seed 0 if omitted.

    Returns:
        The rival, or None if no point of the box is that far from the candidate, as with a bandwidth of
        at least 1 and a candidate in a corner of a one-dimensional box.

    Raises:
        NumericalError: If the acquisition function is finite at none of the points.
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
    points, box = optima.points, box_of(bounds, optima.points)
    candidate = to_unit_cube(points[..., 0, :], box).clamp(0.0, 1.0)
    farthest = (candidate < 0.5).to(candidate)  # the opposite corner of the cube
    within_reach = bandwidth < 0.5 * len(candidate) ** 0.5  # the corner is that far away at least
    if not within_reach and torch.linalg.vector_norm(farthest - candidate) <= bandwidth:
        return None
    sobol = moved(draw_starts(num_candidates, "sobol", bounds, generator), points)
    around = [sobol, farthest[None]]
    if candidates is not None:
        around.append(clamped_to_unit_cube("candidates", candidates, box))
    unit, far = _beyond(candidate, torch.cat(around), bandwidth)
    points = from_unit_cube(unit, box)
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
) -> tuple[Tensor, Tensor]:  # shapes: (c, d), and (c,), bool: farther away than the bandwidth
    # Slightly outside the sphere, so that rounding cannot move a point inside.
    radius = bandwidth * (1 + torch.finfo(around.dtype).eps ** 0.5)
    axes = torch.eye(len(candidate), dtype=around.dtype, device=around.device)
    directions = around - candidate
    length = torch.linalg.vector_norm(directions, dim=-1, keepdim=True)
    # The box is convex, so the segment from the candidate to a point of the box lies in it.
    on_sphere = candidate + directions * (radius / length)
    on_axes = torch.cat([candidate + radius * axes, candidate - radius * axes]).clamp(0.0, 1.0)
    crossed = (length > radius).squeeze(-1)
    if is_near(around):
        points = torch.cat([around, on_sphere[crossed], on_axes])
        points = points[torch.linalg.vector_norm(points - candidate, dim=-1) > bandwidth]
        return points, torch.ones_like(points[:, 0], dtype=torch.bool)
    # The number of points must not depend on their values, which a device would have to be waited for.
    points = torch.cat([around, torch.where(crossed.unsqueeze(-1), on_sphere, candidate), on_axes])
    return points, torch.linalg.vector_norm(points - candidate, dim=-1) > bandwidth
