"""Searches by Hessians that are guessed from differences of gradients.

Where a call costs about as much for many points as for one, as with small models, a step of Newton's
method by differences costs little more than a gradient, and there are fewer of them.
"""

import torch
from torch import Tensor

from botorch_costly.device import is_near
from botorch_costly.numerics.expansion import Quadratic
from botorch_costly.optim.lbfgs import minimize_batch
from botorch_costly.optim.newton import climb_by_newton
from botorch_costly.optim.smooth import ValueAndGradient

_STEP = 1e-4  # of a difference, in widths of the box
_LEAST = 1e-2  # curvature, of the largest one at a point
_NEWTON, _NEAR = 6, 1e-3  # most steps, and the last one, in widths of the box
_STEPS = 20  # most of quasi-Newton searches


def bent(
    value_and_gradient: ValueAndGradient,
    start: Tensor,  # shape: (n, d)
    bounds: Tensor,  # shape: (2, d)
) -> Tensor:  # shape: (n, d, d)
    """Return positive definite guesses at the Hessians at points of a box.

    A negative curvature counts as a positive one of the same size, so that a first step leads downhill.
    All points that differences are taken of are asked about at once.

    Args:
        value_and_gradient: Maps ``k x d`` points to ``k`` values and ``k x d`` gradients.
        start: Points.
        bounds: Lower and upper ones, finite.

    Example:
        >>> bowl = lambda x: ((x * x).sum(-1), 2 * x)
        >>> box = torch.tensor([[-1.0, -1.0], [1.0, 1.0]])
        >>> bent(bowl, torch.zeros(1, 2), box).round(decimals=3)
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
    """Return where searches for minima in a box end, in a few Newton steps by differences of gradients.

    Each step takes one call for all starts, of ``d + 1`` points for each. If the best of them is not at
    an end after six steps, quasi-Newton steps go on.

    Args:
        value_and_gradient: Maps ``k x d`` points to ``k`` values and ``k x d`` gradients.
        start: Where the searches begin.
        bounds: Lower and upper ones, finite.
        gradient_tolerance: Of the quasi-Newton steps, as in ``minimize_batch``.
    """

    def second_order(points: Tensor) -> Quadratic:
        value, gradient, hessian = _expanded(value_and_gradient, points, bounds)
        return Quadratic(-value, -gradient, -hessian)

    end = climb_by_newton(second_order, start, bounds, _NEWTON, _NEAR)
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
    """Return what ``descend`` does in quasi-Newton steps, which take one point each but the first."""
    return minimize_batch(
        value_and_gradient,
        start,
        bounds,
        max_iter=_STEPS,
        gradient_tolerance=gradient_tolerance,
        check_every=1 if is_near(start) else None,
        hessian=bent(value_and_gradient, start, bounds),
    ).point


def _expanded(value_and_gradient: ValueAndGradient, start: Tensor, bounds: Tensor) -> Quadratic:
    """Return values, gradients and positive definite guesses at Hessians."""
    dim = start.shape[-1]
    middle = bounds.mean(0)
    step = (
        _STEP
        * (bounds[1] - bounds[0])
        * torch.where(start > middle, -torch.ones_like(start), torch.ones_like(start))
    )
    moved = start.unsqueeze(-2) + torch.diag_embed(step)  # coordinate by coordinate, into the box
    points = torch.cat([start.unsqueeze(-2), moved], -2)
    value, slope = value_and_gradient(points.reshape(-1, dim))
    value, slope = value.reshape(points.shape[:-1]), slope.reshape(points.shape)
    found = (slope[:, 1:] - slope[:, :1]) / step.unsqueeze(-1)
    found = (0.5 * (found + found.mT)).nan_to_num(0.0, 0.0, 0.0)
    size, turn = torch.linalg.eigh(found)
    size = size.abs()
    least = (_LEAST * size.amax(-1, keepdim=True)).clamp_min(torch.finfo(size.dtype).eps)
    hessian = turn @ (size.clamp_min(least).unsqueeze(-1) * turn.mT)
    return Quadratic(value[:, 0], slope[:, 0], hessian)
