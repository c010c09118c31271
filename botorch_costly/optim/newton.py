"""The last steps to a local maximum in a box, by Newton's method.

Near a maximum one Newton step squares the remaining distance: two or three evaluations give the exact
maximum, for which steps by the gradient would need a dozen more.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.device import is_near, moved
from botorch_costly.numerics.expansion import Quadratic
from botorch_costly.optim.smooth import SecondOrder

_RADIUS = 0.3  # longest step, in widths of the box
_SHRINK, _GROW = 0.25, 2.0  # factors of the longest step after a rejected and an accepted step
_SHIFTS = (0.0, 0.01, 0.03, 0.1, 0.3, 1.2)  # of Hessians without a maximum; their norm is 1
_STILL = 1e-6  # on level ground and at a saddle a climb ends, as one by L-BFGS does
_NEAR = 3e-4  # a step this short, in widths, is the last: the remaining distance is its square


class Maxima(NamedTuple):
    """Local maxima that the starts reached; points on the way where ``reached`` is False."""

    points: Tensor  # shape: (*batch, j, d)
    values: Tensor  # shape: (*batch, j)
    reached: Tensor  # shape: (*batch, j), bool


class Step(NamedTuple):
    """Steps from points towards the maxima of their quadratic models."""

    to: Tensor  # shape: (*batch, j, d)
    exists: Tensor  # whether the model has a maximum, shape: (*batch, j), bool
    slope: Tensor  # largest part of the gradient that leads into the box, shape: (*batch, j)


def newton_step(
    model: Quadratic,
    points: Tensor,  # shape: (*batch, j, d)
    bounds: Tensor,  # shape: (2, d)
    shifts: Tensor | None = None,  # shape: (s, 1, 1)
) -> Step:
    """Return the step to the maximum of the second-order model, which may lead out of the box.

    Variables at a bound that the gradient pushes against stay there. Where the model has no maximum in
    the other variables, the step is 0; or, with shifts, that of the model whose Hessian is shifted
    by a multiple of the identity, the first one that has a maximum (Levenberg 1944). All are tried at
    once, so that a device need not be asked.

    Args:
        model: Second-order model at each point.
        points: Points in the box.
        bounds: Lower and upper bounds.
        shifts: Ascending multiples of the identity, the first one 0, in units of the Hessian's norm.
    """
    lower, upper = bounds
    free = (points + model.gradient.sign()).clamp(lower, upper) != points
    uphill = (model.gradient * free)[..., None, :, None]
    eye = torch.eye(points.shape[-1], dtype=points.dtype, device=points.device)
    curves = torch.where(free.unsqueeze(-1) & free.unsqueeze(-2), -model.hessian, eye).unsqueeze(-3)
    if shifts is None:
        roots, info = torch.linalg.cholesky_ex(curves)
        steps = torch.where(info[..., None, None] == 0, torch.cholesky_solve(uphill, roots), 0.0)
    else:
        size = torch.linalg.vector_norm(curves, dim=(-2, -1), keepdim=True)
        roots, info = torch.linalg.cholesky_ex(torch.addcmul(curves, shifts * eye, size))
        first = info.argmin(-1)[..., None, None, None]
        steps = torch.cholesky_solve(uphill.expand(*roots.shape[:-1], 1), roots)
        steps = steps.gather(-3, first.expand(*first.shape[:-2], points.shape[-1], 1))
    slope = torch.linalg.vector_norm(uphill[..., 0, :, 0], torch.inf, -1)
    return Step(steps[..., 0, :, 0], info[..., 0] == 0, slope)


def climb_by_newton(
    second_order: SecondOrder,
    start: Tensor,  # shape: (*batch, j, d)
    bounds: Tensor,  # shape: (2, d)
    max_iter: int = 8,
    near: float | Tensor = _NEAR,
) -> Maxima:
    """Climb from starts near local maxima; a step that does not lead up is rejected and shortened.

    References:
        - Levenberg, *A method for the solution of certain non-linear problems in least squares* (1944).
        - Bertsekas, *Projected Newton methods for optimization problems with simple constraints*
          (1982).

    Args:
        second_order: Maps ``batch_shape x j x d`` points to values, gradients and Hessians.
        start: Points near local maxima, in the box.
        bounds: Finite ``2 x d`` bounds.
        max_iter: Most steps, after which a start may not have reached its maximum.
        near: A step this short, in widths of the box, is the last.
    """
    shifts = moved(torch.tensor(_SHIFTS, dtype=start.dtype), start)[:, None, None]
    lower, upper = bounds
    points, model, width = start, second_order(start), upper - lower
    radius = torch.full_like(model.value, _RADIUS)
    for iteration in range(max_iter + 1):
        step, exists, slope = newton_step(model, points, bounds, shifts)
        length = torch.linalg.vector_norm(step / width, torch.inf, -1)
        last = exists & (length <= near)
        reached = last | (slope <= _STILL)
        done = reached.all()
        if iteration == max_iter or (is_near(done) and bool(done)):
            break
        share = (radius / length).clamp_max_(1.0)
        trial = torch.addcmul(points, share.unsqueeze(-1), step).clamp_(lower, upper)
        there = second_order(trial)
        better = there.value >= model.value  # also false where it is NaN
        if not is_near(done):  # freeze the points: waiting would cost more than further steps
            better = better & ~done
        points = torch.where(better.unsqueeze(-1), trial, points)
        model = Quadratic(
            *(_where(better, new, old) for new, old in zip(there, model, strict=True))
        )
        shorter = (_SHRINK * length).mul_(share)
        radius = torch.where(better, (radius * _GROW).clamp_max_(_RADIUS), shorter)
    end = torch.where(last.unsqueeze(-1), (points + step).clamp_(lower, upper), points)
    return Maxima(end, model.at(end - points), reached)


def _where(mask: Tensor, new: Tensor, old: Tensor) -> Tensor:
    return torch.where(mask.reshape(*mask.shape, *(1 for _ in new.shape[mask.dim() :])), new, old)
