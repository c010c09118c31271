"""Projected L-BFGS in a box, for a batch of problems that do not wait for each other.

Each iteration evaluates one trial point of every problem. If the value decreases enough, the problem
moves there and computes a new direction; otherwise its step is shortened for the next iteration. So the
line search needs no inner loop, and no problem waits for the line search of another.

The direction solves the quasi-Newton system in the free variables (``optim.quasi_newton``). The search
follows its projection on the box, so that a variable that reaches its bound does not deflect the others
(Bertsekas 1982).

Notation: ``k`` problems still running, ``m`` pairs, oldest first, ``d`` variables. A scalar of each
problem has shape ``(*batch, k, 1)``, so that it broadcasts against ``(*batch, k, d)``.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.device import is_near
from botorch_costly.errors import (
    InvalidShapeError,
    check,
    check_count,
    check_nonnegative,
    is_power_of_two,
)
from botorch_costly.optim.quasi_newton import (
    CURVATURE,
    NEAR,
    Box,
    box_of,
    dot,
    quasi_newton_direction,
)
from botorch_costly.optim.smooth import ValueAndGradient, evaluated

_CHECK = 4  # iterations between two checks
_FIRST_WAIT = 24  # first iteration that waits for a device other than a CPU
_ARMIJO = 1e-4  # share of the predicted decrease that a trial must achieve
_SHRINK, _GROW = (0.1, 0.5), 4.0  # range of the backtracking factor; growth factor of a step
_MOST_GROWTH = 1e8
_MOST_REJECTIONS = 20  # after so many in a row, rounding prevents any further decrease
_FIRST_STEP = 0.1  # length of the first step, in widths of the box


class Minimum(NamedTuple):
    """Last point of each problem, and how its search ended."""

    point: Tensor  # shape: (*batch, n, d)
    value: Tensor  # shape: (*batch, n)
    gradient_norm: Tensor  # shape: (*batch, n): largest entry of the projected gradient
    iterations: Tensor  # shape: (*batch, n): evaluations after the first
    converged: Tensor  # shape: (*batch, n), bool: met a tolerance (a stall is not convergence)


class _Run(NamedTuple):
    """State of the running problems; fields have shape (*batch, k, 1) unless noted."""

    point: Tensor  # shape: (*batch, k, d)
    value: Tensor
    gradient: Tensor  # shape: (*batch, k, d)
    direction: Tensor  # shape: (*batch, k, d)
    step: Tensor  # fraction of the direction to try next, in (0, 1]
    scale: Tensor  # γ = s'y / y'y of the newest pair
    growth: Tensor  # lengthens the direction while the curvature along it is negative
    rejections: Tensor
    iterations: Tensor
    norm: Tensor
    running: Tensor  # bool
    met: Tensor  # bool: met a tolerance
    pairs: Tensor  # shape: (*batch, k, 2, m, d): steps s, changes of gradients y; 0 where none yet
    hessian: Tensor | None = None  # estimate at the start, shape: (*batch, k, d, d)


class _Tolerances(NamedTuple):
    gradient: float
    value: float


def minimize_batch(
    value_and_gradient: ValueAndGradient,
    start: Tensor,  # shape: (*batch, n, d)
    bounds: Tensor,  # shape: (2, d)
    *,
    max_iter: int = 100,
    history: int = 8,
    gradient_tolerance: float = 1e-6,
    value_tolerance: float = 0.0,
    check_every: int | None = None,
    hessian: Tensor | None = None,  # shape: (*batch, n, d, d)
    should_stop: Callable[[], bool] | None = None,
) -> Minimum:
    """Minimize from all starts in one batch, each problem at its own pace.

    A problem ends when its projected gradient is small, when a step gains almost nothing, or when it
    stalls. Trials with a value or gradient that is not finite are rejected. Finished problems are
    frozen, and removed from the batch once enough of them have finished.

    References:
        - Liu & Nocedal, *On the limited memory BFGS method* (1989).
        - Byrd, Nocedal & Schnabel, *Representations of quasi-Newton matrices* (1994), section 2.
        - Bertsekas, *Projected Newton methods for optimization problems with simple constraints*
          (1982): the active set.

    Args:
        value_and_gradient: Maps ``batch_shape x k x d`` points to ``batch_shape x k`` values and
            ``batch_shape x k x d`` gradients. The objective may differ between the entries of
            ``batch_shape``, but not along ``k``, which shrinks as problems finish.
        start: ``batch_shape x n x d`` starts; clamped into the box.
        bounds: ``2 x d`` lower and upper bounds, infinite where there is none. Bounds on the CPU are
            checked without waiting for a device.
        max_iter: Most evaluations of each problem after the first.
        history: Number of curvature pairs.
        gradient_tolerance: Bound on the largest entry of ``x - clamp(x - gradient)``.
        value_tolerance: Bound on the decrease of a step of positive curvature, relative to
            ``max(1, |value|)``; 0 disables this criterion.
        check_every: Iterations between two checks of which problems are still running. Only these
            checks wait for the device. By default there is a check in every fourth iteration, and the
            search waits for a device other than a CPU in iterations 24, 48, 96 and so on; a search
            that has ended earlier does not change until then.
        hessian: Positive definite estimates of the Hessians at the starts. The first step is then a
            Newton step, and the pairs correct the estimate from there on.
        should_stop: Called at each check but the first; if it returns True, the search ends, for
            example at a deadline, and problems that were still running have not converged.

    Returns:
        The minimum of each problem, with the shapes in :class:`Minimum`. A start whose value is
        not finite is returned unchanged, and not as converged.

    Raises:
        InvalidShapeError: If shapes do not fit each other.
        InvalidArgumentError: If an option is out of range or a lower bound above its upper one.

    Example:
        >>> from botorch_costly.optim.smooth import by_autograd
        >>> bowl = by_autograd(lambda x: (x - 2.0).square().sum(-1))
        >>> box = torch.tensor([[-1.0, -1.0], [1.0, 3.0]])
        >>> minimize_batch(bowl, torch.zeros(1, 2), box).point
        tensor([[1.0000, 2.0000]])
    """
    check_count("max_iter", max_iter)
    check_count("history", history, minimum=1)
    every = _CHECK if check_every is None else check_count("check_every", check_every, minimum=1)
    check_nonnegative("gradient_tolerance", gradient_tolerance)
    check_nonnegative("value_tolerance", value_tolerance)
    box = box_of(start, bounds)
    tolerances = _Tolerances(gradient_tolerance, value_tolerance)

    start = start.detach().clamp(box.lower, box.upper)
    hessian = None if hessian is None else _check_hessian(start, hessian)
    run = _begin(start, *_evaluate(value_and_gradient, start), box, history, tolerances, hessian)
    all_problems = torch.arange(start.shape[-2], device=start.device).expand(start.shape[:-1])
    result, index = _report(run), all_problems
    for iteration in range(max_iter):
        if iteration % every == 0:
            if iteration > 0 and should_stop is not None and should_stop():
                break
            if is_near(start) or check_every is not None or _waits_in(iteration):
                running = int(run.running.squeeze(-1).sum(-1).max())  # waits for the device
                if running == 0:
                    break
                if running <= 0.75 * index.shape[-1]:
                    result = _write(result, run, index)
                    run, index = _compact(run, index, running)
        trial = (run.point + run.step * run.direction).clamp(box.lower, box.upper)
        value, gradient = _evaluate(value_and_gradient, trial)
        with torch.inference_mode():  # a fifth of the time of small problems is bookkeeping
            run = _advance(run, trial, value, gradient, box, tolerances)
    return _write(result, run, index)


def _waits_in(iteration: int) -> bool:
    """Return whether the search waits for a device in this iteration: less and less often."""
    times, remainder = divmod(iteration, _FIRST_WAIT)
    return times > 0 and remainder == 0 and is_power_of_two(times)


def _check_hessian(start: Tensor, hessian: Tensor) -> Tensor:
    shape = (*start.shape, start.shape[-1])
    fits = hessian.shape == shape
    check(fits, "hessian", f"shape {shape}", tuple(hessian.shape), InvalidShapeError)
    hessian = hessian.detach().to(start)
    positive = not bool(torch.linalg.cholesky_ex(hessian).info.any())
    check(positive, "hessian", "positive definite matrices", hessian)
    return hessian


def _evaluate(
    value_and_gradient: ValueAndGradient,
    points: Tensor,  # shape: (*batch, k, d)
) -> tuple[Tensor, Tensor]:  # shapes: (*batch, k, 1), (*batch, k, d)
    value, gradient = evaluated(value_and_gradient, points)
    return value[..., None], gradient


def _begin(
    point: Tensor,  # shape: (*batch, n, d)
    value: Tensor,  # shape: (*batch, n, 1)
    gradient: Tensor,  # shape: (*batch, n, d)
    box: Box,
    history: int,
    tolerances: _Tolerances,
    hessian: Tensor | None,  # shape: (*batch, n, d, d)
) -> _Run:
    length = torch.linalg.vector_norm(gradient, dim=-1, keepdim=True)
    widest = box.near.amax() / NEAR
    tiny = torch.finfo(point.dtype).tiny
    if hessian is None:
        scale = _FIRST_STEP * widest / length.clamp(min=tiny)
    else:  # the inverse curvature along the gradient
        product = (hessian @ gradient[..., None]).squeeze(-1)
        scale = length.square() / dot(gradient, product).clamp(min=tiny)
    pairs = point.new_zeros(*point.shape[:-1], 2, history, point.shape[-1])
    ones, zeros = torch.ones_like(value), torch.zeros_like(value)
    direction, norm = quasi_newton_direction(point, gradient, scale, ones, pairs, box, hessian)
    # The sum is NaN or infinite if any of the numbers is.
    finite = (value + gradient.sum(-1, keepdim=True)).abs() < torch.inf
    met = finite & (norm <= tolerances.gradient)
    return _Run(
        point, value, gradient, direction, ones, scale, ones, zeros, zeros, norm, finite & ~met, met,
        pairs, hessian,
    )  # fmt: skip


def _advance(
    run: _Run,
    trial: Tensor,  # shape: (*batch, k, d)
    value: Tensor,  # shape: (*batch, k, 1)
    gradient: Tensor,  # shape: (*batch, k, d)
    box: Box,
    tolerances: _Tolerances,
) -> _Run:
    """Accept the trial of each problem and update its direction, or shorten its step.

    Where a trial is rejected, all arguments of the direction are unchanged, and recomputing it for the
    whole batch gives the same direction.
    """
    step, rise = trial - run.point, value - run.value
    predicted = dot(run.gradient, step)  # first-order prediction of the rise
    # Near the minimum the decrease is smaller than the rounding error of the value.
    slack = run.value.abs() * (4 * torch.finfo(value.dtype).eps)
    enough = rise <= torch.add(slack, predicted, alpha=_ARMIJO)
    pair = torch.stack([step, gradient - run.gradient], -2)
    sy, yy = (pair * pair[..., 1:, :]).sum(-1).split(1, -1)
    # The difference is NaN or infinite if a slope or the value is.
    accepted = run.running & enough & (yy - rise < torch.inf)
    curved = accepted & (sy > -CURVATURE * predicted)
    pairs = torch.cat([run.pairs[..., 1:, :], pair[..., None, :]], -2)
    pairs = torch.where(curved[..., None, None], pairs, run.pairs)
    scale = torch.where(curved, sy / yy, run.scale)
    growth = torch.where(accepted, (run.growth * _GROW).clamp(max=_MOST_GROWTH), run.growth)
    growth = growth.masked_fill(curved, 1.0)

    point = torch.where(accepted, trial, run.point)
    gradient = torch.where(accepted, gradient, run.gradient)
    direction, norm = quasi_newton_direction(
        point, gradient, scale, growth, pairs, box, run.hessian
    )
    met = norm <= tolerances.gradient
    if tolerances.value > 0:
        least = tolerances.value * run.value.abs().clamp(min=1.0)
        # On a flat tail, where curvature is negative, a small gain does not mean convergence.
        met = met | (curved & (-rise < least))
    rejections = (run.rejections + 1).masked_fill(accepted, 0.0)
    return _Run(
        point=point,
        value=torch.where(accepted, value, run.value),
        gradient=gradient,
        direction=direction,
        step=_shorter(run.step, predicted, rise).masked_fill(accepted, 1.0),
        scale=scale,
        growth=growth,
        rejections=rejections,
        iterations=run.iterations + run.running,
        norm=norm,
        running=run.running & ~met & (rejections < _MOST_REJECTIONS),
        met=torch.where(run.running, met, run.met),
        pairs=pairs,
        hessian=run.hessian,
    )


def _shorter(step: Tensor, predicted: Tensor, rise: Tensor) -> Tensor:
    """Return the step that minimizes the parabola through slope and rejected value, within limits."""
    share = predicted / (predicted - rise)  # twice the minimizer, as a fraction of the step
    return step * (0.5 * share.nan_to_num(0.0)).clamp(*_SHRINK)


def _report(run: _Run) -> Minimum:
    numbers = run.value, run.norm, run.iterations.long(), run.met
    return Minimum(run.point, *(number.squeeze(-1) for number in numbers))


def _write(result: Minimum, run: _Run, index: Tensor) -> Minimum:
    """Return the result, updated with the current state of the problems in the batch."""
    pairs = zip(result, _report(run), strict=True)
    return Minimum(
        *(old.scatter(index.dim() - 1, _expand_as(index, new), new) for old, new in pairs)
    )


def _compact(run: _Run, index: Tensor, count: int) -> tuple[_Run, Tensor]:
    """Keep ``count`` problems of each batch entry, those still running first."""
    order = run.running.squeeze(-1).int().argsort(dim=-1, descending=True, stable=True)[..., :count]
    dim = index.dim() - 1
    fields = {
        name: field.gather(dim, _expand_as(order, field))
        for name, field in run._asdict().items()
        if field is not None
    }
    return _Run(**fields), index.gather(dim, order)


def _expand_as(index: Tensor, like: Tensor) -> Tensor:
    """Expand ``(*batch, k)`` by the trailing dimensions of ``like``, ``(*batch, k, ...)``."""
    trailing = like.shape[index.dim() :]
    return index.reshape(*index.shape, *(1 for _ in trailing)).expand(*index.shape, *trailing)
