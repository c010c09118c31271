"""Searches with Hessians estimated from finite differences of gradients.

With small models, a call costs about as much for many points as for one. A Newton step by differences
then costs little more than a gradient, and few steps are needed.
"""

import torch
from torch import Tensor

from botorch_costly.device import is_near
from botorch_costly.numerics.expansion import Quadratic
from botorch_costly.optim.lbfgs import minimize_batch
from botorch_costly.optim.newton import climb_by_newton
from botorch_costly.optim.smooth import ValueAndGradient

_DIFFERENCE = 1e-4  # step of a finite difference, in widths of the box
_LEAST_CURVATURE = 1e-2  # relative to the largest curvature at a point
_NEWTON_STEPS = 6  # at most
_LAST_STEP = 1e-3  # a Newton step this short is the last, in widths of the box
_QUASI_NEWTON_STEPS = 20  # at most


def hessian_estimates(
    value_and_gradient: ValueAndGradient,
    start: Tensor,  # shape: (n, d)
    bounds: Tensor,  # shape: (2, d)
) -> Tensor:  # shape: (n, d, d)
    """Return positive definite estimates of the Hessians at points of a box.

    A negative curvature is replaced by a positive one of the same size, so that a Newton step leads
    downhill. One call evaluates the gradients of all differences.

    Args:
        value_and_gradient: Maps ``k x d`` points to ``k`` values and ``k x d`` gradients.
        start: Points in the box.
        bounds: Finite lower and upper bounds.

    Example:
        >>> bowl = lambda x: ((x * x).sum(-1), 2 * x)
        >>> box = torch.tensor([[-1.0, -1.0], [1.0, 1.0]])
        >>> hessian_estimates(bowl, torch.zeros(1, 2), box).round(decimals=3)
        tensor([[[2., 0.],
                 [0., 2.]]])
    """
    return _expanded(value_and_gradient, start, bounds).hessian


def descend(
    value_and_gradient: ValueAndGradient,
    start: Tensor,  # shape: (n, d)
    bounds: Tensor,  # shape: (2, d)
    *,
    gradient_tolerance: float,
) -> Tensor:  # shape: (n, d)
    """Minimize in a box by a few Newton steps with Hessians from differences of gradients.

    A step evaluates ``d + 1`` points for each start, all in one call. If the best search has not arrived
    after six steps, quasi-Newton steps continue all of them, with the ``gradient_tolerance`` of
    ``minimize_batch``. Returns the last points. The other arguments are those of ``hessian_estimates``.
    """

    def second_order(points: Tensor) -> Quadratic:
        value, gradient, hessian = _expanded(value_and_gradient, points, bounds)
        return Quadratic(-value, -gradient, -hessian)

    end = climb_by_newton(second_order, start, bounds, _NEWTON_STEPS, _LAST_STEP)
    if bool(end.reached[end.values.argmax()]):
        return end.points
    return descend_by_pairs(
        value_and_gradient, end.points, bounds, gradient_tolerance=gradient_tolerance
    )


def descend_by_pairs(
    value_and_gradient: ValueAndGradient,
    start: Tensor,  # shape: (n, d)
    bounds: Tensor,  # shape: (2, d)
    *,
    gradient_tolerance: float,
) -> Tensor:  # shape: (n, d)
    """Minimize as ``descend`` does, with quasi-Newton steps alone: after the first, one point a step."""
    return minimize_batch(
        value_and_gradient,
        start,
        bounds,
        max_iter=_QUASI_NEWTON_STEPS,
        gradient_tolerance=gradient_tolerance,
        check_every=1 if is_near(start) else None,
        hessian=hessian_estimates(value_and_gradient, start, bounds),
    ).point


def _expanded(value_and_gradient: ValueAndGradient, start: Tensor, bounds: Tensor) -> Quadratic:
    """Return values, gradients and positive definite estimates of the Hessians."""
    inward = torch.where(start > bounds.mean(0), -torch.ones_like(start), torch.ones_like(start))
    step = _DIFFERENCE * (bounds[1] - bounds[0]) * inward
    moved = start.unsqueeze(-2) + torch.diag_embed(step)  # one coordinate each
    points = torch.cat([start.unsqueeze(-2), moved], -2)
    value, slope = value_and_gradient(points.reshape(-1, start.shape[-1]))
    value, slope = value.reshape(points.shape[:-1]), slope.reshape(points.shape)
    hessian = (slope[:, 1:] - slope[:, :1]) / step.unsqueeze(-1)
    hessian = (0.5 * (hessian + hessian.mT)).nan_to_num(0.0, 0.0, 0.0)
    curvatures, vectors = torch.linalg.eigh(hessian)
    curvatures = curvatures.abs()
    least = (_LEAST_CURVATURE * curvatures.amax(-1, keepdim=True)).clamp_min(
        torch.finfo(curvatures.dtype).eps
    )
    hessian = vectors @ (curvatures.clamp_min(least).unsqueeze(-1) * vectors.mT)
    return Quadratic(value[:, 0], slope[:, 0], hessian)
