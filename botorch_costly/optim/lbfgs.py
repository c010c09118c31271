"""Projected L-BFGS in a box, for a batch of problems that never wait for each other.

Each iteration evaluates one trial point of every problem. A problem whose trial decreases its value
enough goes there and starts a new search direction; another shortens its step and tries again at
the next iteration. So the line search needs no loop of its own and no evaluation is wasted on
problems that are done with theirs.

The direction solves the quasi-Newton system in the free variables (``optim.two_loops``); the search
goes along its projection on the box, so that a variable which meets its bound does not turn the
others aside (Bertsekas 1982).

Notation: ``k`` problems still running, ``m`` pairs, oldest first, ``d`` variables. What is a number
per problem has shape ``(*batch, k, 1)``, so that everything broadcasts against ``(*batch, k, d)``.
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
from botorch_costly.optim.merging import final, merge, spread
from botorch_costly.optim.projection import NEAR, box_of
from botorch_costly.optim.projection import Box as _Box
from botorch_costly.optim.projection import dot as _dot
from botorch_costly.optim.projection import quasi_newton_direction as _direction
from botorch_costly.optim.smooth import ValueAndGradient
from botorch_costly.optim.two_loops import CURVATURE

_CHECK = 4  # iterations between two checks
_FIRST_ASKED = 24  # iterations after which a device other than a CPU is asked first
_ARMIJO = 1e-4  # share of the predicted decrease that a trial must deliver
_SHRINK, _GROW = (0.1, 0.5), 4.0  # range of a backtracking factor; factor of a growing step
_MOST_GROWTH = 1e8
_MOST_REJECTIONS = 20  # trials in a row, after which rounding is what stops the search
_FIRST_STEP = 0.1  # length of the first step, in widths of the box


class Minimum(NamedTuple):
    """Where each problem ended."""

    point: Tensor  # shape: (*batch, n, d)
    value: Tensor  # shape: (*batch, n)
    gradient_norm: Tensor  # shape: (*batch, n): largest entry of the projected gradient
    iterations: Tensor  # shape: (*batch, n): evaluations after the first
    converged: Tensor  # shape: (*batch, n), bool: met a tolerance (a stall is not convergence)
    into: Tensor  # shape: (*batch, n): number of the problem whose result it is, its own unless merged
    running: Tensor  # shape: (*batch, n), bool: neither converged nor stalled nor merged


class _Run(NamedTuple):
    """The problems still in work; fields with shape (*batch, k, 1) unless noted."""

    point: Tensor  # shape: (*batch, k, d)
    value: Tensor
    gradient: Tensor  # shape: (*batch, k, d)
    direction: Tensor  # shape: (*batch, k, d)
    step: Tensor  # share of the direction tried next, in (0, 1]
    scale: Tensor  # γ = s'y / y'y of the newest pair
    growth: Tensor  # lengthens the direction while the curvature along it is negative
    rejections: Tensor
    iterations: Tensor
    norm: Tensor
    running: Tensor  # bool
    met: Tensor  # bool
    pairs: Tensor  # shape: (*batch, k, 2, m, d): steps s, changes of gradients y; 0 where none yet
    hessian: Tensor | None = None  # guessed at the start, shape: (*batch, k, d, d)


class _Rule(NamedTuple):
    gradient_tolerance: float
    value_tolerance: float


def minimize_batch(
    value_and_gradient: ValueAndGradient,
    start: Tensor,  # shape: (*batch, n, d)
    bounds: Tensor,  # shape: (2, d)
    *,
    max_iter: int = 100,
    history: int = 8,
    gradient_tolerance: float = 1e-6,
    value_tolerance: float = 0.0,
    merge_within: float = 0.0,
    leave: int = 0,
    check_every: int | None = None,
    asks: bool = True,
    hessian: Tensor | None = None,  # shape: (*batch, n, d, d)
    should_stop: Callable[[], bool] | None = None,
) -> Minimum:
    """Minimize from every start at once, each problem at its own pace.

    A problem is done when its projected gradient is small, when a step gains almost nothing, or
    when it stalls. Trials with a value or gradient that is not finite are rejected. Finished
    problems are frozen, and taken out of the batch once enough of them have finished.

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
        bounds: ``2 x d`` lower and upper bounds, infinite where there is none. On the CPU they are
            checked without waiting for a device.
        max_iter: Most evaluations of each problem after the first.
        history: Number of curvature pairs.
        gradient_tolerance: Bound on the largest entry of ``x - clamp(x - gradient)``.
        value_tolerance: Bound on the decrease of a step of positive curvature, relative to
            ``max(1, |value|)``; 0 turns this criterion off.
        merge_within: A problem that comes nearer than this to one with a lower value stops and
            takes its result, since both would most likely end in one minimum; 0 merges nothing.
        leave: How many problems of each batch entry may be left unfinished, for a cheaper method
            that takes the last steps.
        check_every: Iterations between two checks of which problems are left, and whether the search
            is over; each check waits for the device, and nothing else does. If omitted there is a
            check in every fourth, and a device other than a CPU is waited for in iterations 24, 48, 96
            and so on: a search that is over stands still until then.
        asks: Whether a device other than a CPU is waited for at all. If not, ``max_iter`` iterations
            are made in any case, and ``running`` says whether these were enough.
        hessian: A positive definite guess at the Hessians where the search begins, from which the
            first step is Newton's; the pairs correct it from there on.
        should_stop: Asked at each check but the first whether to return what was reached so far, be
            it for lack of time; problems it cuts short have not converged.

    Returns:
        The minimum of each problem, with the shapes in :class:`Minimum`. A start whose value is
        not finite is returned as it is, not converged.

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
    check_count("leave", leave)
    every = _CHECK if check_every is None else check_count("check_every", check_every, minimum=1)
    check_nonnegative("gradient_tolerance", gradient_tolerance)
    check_nonnegative("value_tolerance", value_tolerance)
    check_nonnegative("merge_within", merge_within)
    box = box_of(start, bounds)
    rule = _Rule(gradient_tolerance, value_tolerance)

    start = start.detach().clamp(box.lower, box.upper)
    guess = None if hessian is None else _check_hessian(start, hessian)
    run = _begin(start, *_evaluate(value_and_gradient, start), box, history, rule, guess)
    all_problems = torch.arange(start.shape[-2], device=start.device).expand(start.shape[:-1])
    result, place, into = _report(run, all_problems), all_problems, all_problems
    for iteration in range(max_iter):
        if iteration % every == 0:
            if merge_within > 0:
                run, into = _merged(run, place, into, merge_within)
            if iteration > 0 and should_stop is not None and should_stop():
                break
            if is_near(start) or (asks and (check_every is not None or _is_asked(iteration))):
                left = int(_left(run))  # waits for the device
                if left <= leave:
                    break
                if left <= 0.75 * place.shape[-1]:
                    result = _write(result, run, place)
                    run, place = _compact(run, place, left)
            else:
                run = run._replace(running=run.running & (_left(run) > leave))
        trial = (run.point + run.step * run.direction).clamp(box.lower, box.upper)
        value, gradient = _evaluate(value_and_gradient, trial)
        with torch.inference_mode():  # a fifth of the time of small problems is bookkeeping
            run = _advance(run, trial, value, gradient, box, rule)
    if not asks and merge_within > 0:
        run, into = _merged(run, place, into, merge_within)
    result = _write(result, run, place)
    if merge_within > 0:
        _, into = merge(result.point, result.value.unsqueeze(-1), all_problems, into, merge_within)
        result = _follow(result, into)
    return result


def _is_asked(iteration: int) -> bool:
    """Return whether a device is waited for in an iteration: seldom, and ever less often."""
    times, rest = divmod(iteration, _FIRST_ASKED)
    return times > 0 and rest == 0 and is_power_of_two(times)


def _left(run: _Run) -> Tensor:  # shape: ()
    """Return how many problems are left in the batch entry with most of them."""
    return run.running.squeeze(-1).sum(-1).max()


def _merged(run: _Run, place: Tensor, into: Tensor, within: float) -> tuple[_Run, Tensor]:
    """Let only the lowest go on of problems that are near each other."""
    gone, into = merge(run.point, run.value, place, into, within)
    return run._replace(running=run.running & ~gone), into


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
    value, gradient = value_and_gradient(points)
    fits = value.shape == points.shape[:-1] and gradient.shape == points.shape
    received = (tuple(value.shape), tuple(gradient.shape))
    expected = f"values and gradients of shapes {(tuple(points.shape[:-1]), tuple(points.shape))}"
    check(fits, "value_and_gradient", expected, received, InvalidShapeError)
    return value[..., None].to(points), gradient.to(points)


def _finite(value: Tensor, gradient: Tensor) -> Tensor:
    # One sum stands for all numbers: it is NaN or infinite if any of them is.
    return (value + gradient.sum(-1, keepdim=True)).abs() < torch.inf


def _begin(
    point: Tensor,  # shape: (*batch, n, d)
    value: Tensor,  # shape: (*batch, n, 1)
    gradient: Tensor,  # shape: (*batch, n, d)
    box: _Box,
    history: int,
    rule: _Rule,
    hessian: Tensor | None,  # shape: (*batch, n, d, d)
) -> _Run:
    length = torch.linalg.vector_norm(gradient, dim=-1, keepdim=True)
    widest = box.near.amax() / NEAR
    tiny = torch.finfo(point.dtype).tiny
    if hessian is None:
        scale = _FIRST_STEP * widest / length.clamp(min=tiny)
    else:  # the number that it is along the gradient
        bent = (hessian @ gradient[..., None]).squeeze(-1)
        scale = length.square() / _dot(gradient, bent).clamp(min=tiny)
    pairs = point.new_zeros(*point.shape[:-1], 2, history, point.shape[-1])
    one, zero = torch.ones_like(value), torch.zeros_like(value)
    direction, norm = _direction(point, gradient, scale, one, pairs, box, hessian)
    finite = _finite(value, gradient)
    met = finite & (norm <= rule.gradient_tolerance)
    return _Run(
        point, value, gradient, direction, one, scale, one, zero, zero, norm, finite & ~met, met,
        pairs, hessian,
    )  # fmt: skip


def _advance(
    run: _Run,
    trial: Tensor,  # shape: (*batch, k, d)
    value: Tensor,  # shape: (*batch, k, 1)
    gradient: Tensor,  # shape: (*batch, k, d)
    box: _Box,
    rule: _Rule,
) -> _Run:
    """Judge the trial of every problem: accept it and turn, or shorten the step.

    Nothing that the direction depends on changes where the trial is rejected, so that computing
    it anew for all problems gives those the direction they had.
    """
    step, rise = trial - run.point, value - run.value
    predicted = _dot(run.gradient, step)  # of the rise, by the slope alone
    # Near the minimum the decrease drowns in the rounding of the value, which the slack forgives.
    slack = run.value.abs() * (4 * torch.finfo(value.dtype).eps)
    enough = rise <= torch.add(slack, predicted, alpha=_ARMIJO)
    pair = torch.stack([step, gradient - run.gradient], -2)
    sy, yy = (pair * pair[..., 1:, :]).sum(-1).split(1, -1)
    # One difference stands for all numbers: it is NaN or infinite if a slope or the value is.
    accepted = run.running & enough & (yy - rise < torch.inf)
    curved = accepted & (sy > -CURVATURE * predicted)
    pairs = torch.cat([run.pairs[..., 1:, :], pair[..., None, :]], -2)
    pairs = torch.where(curved[..., None, None], pairs, run.pairs)
    scale = torch.where(curved, sy / yy, run.scale)
    growth = torch.where(accepted, (run.growth * _GROW).clamp(max=_MOST_GROWTH), run.growth)
    growth = growth.masked_fill(curved, 1.0)

    point = torch.where(accepted, trial, run.point)
    gradient = torch.where(accepted, gradient, run.gradient)
    direction, norm = _direction(point, gradient, scale, growth, pairs, box, run.hessian)
    met = norm <= rule.gradient_tolerance
    if rule.value_tolerance > 0:
        least = rule.value_tolerance * run.value.abs().clamp(min=1.0)
        met = met | (curved & (-rise < least))  # on a tail a small gain is no sign of an end
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
    """Minimize the parabola through slope and rejected value, within safe limits."""
    share = predicted / (predicted - rise)  # twice the minimizer, as a share of the step
    return step * (0.5 * share.nan_to_num(0.0)).clamp(*_SHRINK)


def _report(run: _Run, place: Tensor) -> Minimum:
    def flat(number: Tensor) -> Tensor:
        return number.squeeze(-1)

    iterations = flat(run.iterations).long()
    ends = run.point, flat(run.value), flat(run.norm), iterations, flat(run.met), place
    return Minimum(*ends, flat(run.running))


def _follow(result: Minimum, into: Tensor) -> Minimum:
    """Give each problem the result of the one it went into."""
    into = final(into)
    ends = (field.gather(into.dim() - 1, spread(into, field)) for field in result)
    return Minimum(*ends)._replace(iterations=result.iterations)


def _write(result: Minimum, run: _Run, place: Tensor) -> Minimum:
    """Put what the running problems reached into the places they came from."""
    dim = place.dim() - 1
    return Minimum(
        *(
            old.scatter(dim, spread(place, new), new)
            for old, new in zip(result, _report(run, place), strict=True)
        )
    )


def _compact(run: _Run, place: Tensor, left: int) -> tuple[_Run, Tensor]:
    """Return ``left`` problems of each batch entry, those still running first."""
    order = run.running.squeeze(-1).int().argsort(dim=-1, descending=True, stable=True)[..., :left]
    dim = place.dim() - 1
    fields = {
        name: field.gather(dim, spread(order, field))
        for name, field in run._asdict().items()
        if field is not None
    }
    return _Run(**fields), place.gather(dim, order)
