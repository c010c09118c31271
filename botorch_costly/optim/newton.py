"""The last steps to a local maximum in a box, by Newton's method.

Near a maximum one Newton step squares the remaining distance: two or three evaluations give the exact
maximum, for which quasi-Newton steps would need a dozen more.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.device import is_near
from botorch_costly.numerics.expansion import Quadratic
from botorch_costly.optim.smooth import SecondOrder

_RADIUS = 0.2  # longest step, in widths of the box
_SHRINK, _GROW = 0.25, 2.0  # factors of the longest step after a rejected and an accepted step
_NEAR = 3e-4  # a step this short, in widths, is the last: the remaining distance is its square


class Maxima(NamedTuple):
    """Local maxima that the starts reached; points on the way where ``reached`` is False."""

    points: Tensor  # shape: (*batch, j, d)
    values: Tensor  # shape: (*batch, j)
    reached: Tensor  # shape: (*batch, j), bool


class Step(NamedTuple):
    """Steps from points to the maxima of their quadratic models."""

    to: Tensor  # shape: (*batch, j, d)
    exists: Tensor  # whether the model has a maximum, shape: (*batch, j), bool


def newton_step(
    model: Quadratic,
    points: Tensor,  # shape: (*batch, j, d)
    bounds: Tensor,  # shape: (2, d)
) -> Step:
    """Return the step to the maximum of the second-order model, clamped into the box.

    Variables at a bound that the gradient pushes against stay there. Where the model has no maximum in
    the other variables, the step follows the gradient, with a length that is safe for the largest
    curvature of the model.

    Args:
        model: Second-order model at each point.
        points: Points in the box.
        bounds: Lower and upper bounds.
    """
    gradient = model.gradient
    blocked = ((points <= bounds[0]) & (gradient < 0)) | ((points >= bounds[1]) & (gradient > 0))
    free = (~blocked).to(points)
    curve = torch.diag_embed(1 - free) - model.hessian * (free.unsqueeze(-1) * free.unsqueeze(-2))
    root, info = torch.linalg.cholesky_ex(curve)
    uphill = (gradient * free).unsqueeze(-1)
    steepest = uphill / curve.abs().sum(-1).amax(-1)[..., None, None]
    exists = info == 0
    step = torch.where(exists[..., None, None], torch.cholesky_solve(uphill, root), steepest)
    step = step.squeeze(-1).nan_to_num(0.0)
    return Step((points + step).clamp(bounds[0], bounds[1]) - points, exists)


def climb_by_newton(
    second_order: SecondOrder,
    start: Tensor,  # shape: (*batch, j, d)
    bounds: Tensor,  # shape: (2, d)
    max_iter: int = 8,
    near: float = _NEAR,
    counts: Tensor | None = None,  # bool, shape: (*batch, j)
) -> Maxima:
    """Climb from starts near local maxima; a step that does not lead up is rejected and shortened.

    Args:
        second_order: Maps ``batch_shape x j x d`` points to values, gradients and Hessians.
        start: Points near local maxima, in the box.
        bounds: Finite ``2 x d`` bounds.
        max_iter: Most steps, after which a start may not have reached its maximum.
        near: A step this short, in widths of the box, is the last.
        counts: Starts that have to arrive before the climb ends; all if omitted.
    """
    points, model, width = start, second_order(start), bounds[1] - bounds[0]
    radius = torch.full_like(model.value, _RADIUS)
    for _ in range(max_iter):
        step, exists = newton_step(model, points, bounds)
        length = (step / width).abs().amax(-1)
        last = exists & (length <= near)
        done = (last if counts is None else last | ~counts).all()
        if is_near(done) and bool(done):
            break
        share = (radius / length.clamp_min(_NEAR)).clamp_max(1.0)
        trial = points + share.unsqueeze(-1) * step
        there = second_order(trial)
        better = there.value >= model.value  # also false where it is NaN
        if not is_near(done):  # freeze the points: waiting would cost more than further steps
            better = better & ~done
        points = torch.where(better.unsqueeze(-1), trial, points)
        model = Quadratic(
            *(_where(better, new, old) for new, old in zip(there, model, strict=True))
        )
        radius = torch.where(better, (radius * _GROW).clamp_max(_RADIUS), share * length * _SHRINK)
    step, exists = newton_step(model, points, bounds)
    last = exists & ((step / width).abs().amax(-1) <= near)
    step = step * last.unsqueeze(-1)
    return Maxima((points + step).clamp(bounds[0], bounds[1]), model.at(step), last)


def _where(mask: Tensor, new: Tensor, old: Tensor) -> Tensor:
    return torch.where(mask.reshape(*mask.shape, *(1 for _ in new.shape[mask.dim() :])), new, old)
