"""Climb a smooth function from many starts at once, to exact maxima.

Two starts that come near each other most likely end in one maximum, so only the higher of them continues.
If the function has a Hessian, quasi-Newton steps stop near the maxima, and Newton steps follow. All
points are in the unit cube.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from botorch_costly.device import is_near
from botorch_costly.optim.lbfgs import Minimum, minimize_batch
from botorch_costly.optim.newton import climb_by_newton
from botorch_costly.optim.smooth import SmoothFunction
from botorch_costly.optim.starts import unit_cube

# Cancellation in a posterior variance leaves about this much noise in a value (relative to 1). A search
# for a smaller gradient would wander in it until its last iteration.
_VALUE_TOLERANCE = 1e-10
_NEAR_ENOUGH = 1e-5  # Newton's method takes over once a step gains less than this,
_FEW = 4  # or once so few starts are still climbing
_FROM_A_BATCH = 8  # at most so many starts of each batch entry take Newton steps, the best ones
_MERGE_WITHIN = 0.1  # far less than the distance between two optima
# Iterations without waiting for a device: 700 searches needed at most 24 and 32.
_STEPS_UNASKED, _STEPS_AGAIN = 24, 40


class MergedMaxima(NamedTuple):
    """Maximum that each start reached; a merged start has the maximum of the one it was merged into."""

    points: Tensor  # in the unit cube, shape: (*batch, n, d)
    values: Tensor  # shape: (*batch, n): may hold numbers that are not finite
    into: Tensor  # shape: (*batch, n): index of the start that the maximum is from


def climb(function: SmoothFunction, start: Tensor, bandwidth: float, max_iter: int) -> MergedMaxima:
    """Climb from every start to a local maximum.

    Args:
        function: Function to maximize over the unit cube; with a Hessian, no graph is kept.
        start: Starts in the unit cube, ``batch_shape x n x d``.
        bandwidth: Optima closer than this count as one.
        max_iter: Most evaluations by L-BFGS.
    """
    second_order = function.second_order
    within = min(_MERGE_WITHIN, 0.5 * bandwidth)
    descend = partial(_descend, function, max_iter=max_iter, merge_within=within)
    if second_order is None:
        end = descend(start, value_tolerance=_VALUE_TOLERANCE)
        return MergedMaxima(end.point, -end.value, end.into)
    with torch.inference_mode():  # autograd's bookkeeping is a tenth of the time of small problems
        # Single precision will do, since Newton steps in double precision follow.
        rough = descend(start.float(), value_tolerance=_NEAR_ENOUGH, leave=_FEW)
        leaders, slot, count = _leaders(rough)
        leaders = leaders[..., : int(count), :].to(start)
        most = leaders.shape[-2] if start.dim() == 2 else _FROM_A_BATCH
        best, others = leaders[..., :most, :], leaders[..., most:, :]
        maxima = climb_by_newton(second_order, best, unit_cube(start))
        points, values = maxima.points, maxima.values
        if others.numel() or not bool(maxima.reached.all()):  # starts that have arrived do not move
            end = descend(torch.cat([points, others], -2), value_tolerance=_VALUE_TOLERANCE)
            points, values = end.point, -end.value
    # Not in inference mode, so that the result can be used with autograd.
    return _of_each_start(points, values, slot, rough.into)


class Attempt(NamedTuple):
    """A climb that may not have arrived; reading ``arrived`` waits for the device."""

    maxima: MergedMaxima
    arrived: Tensor  # bool, shape: ()
    again: Callable[[], "Attempt"]  # continues the climb


def attempt(
    function: SmoothFunction, start: Tensor, bandwidth: float, max_iter: int
) -> Attempt | None:
    """Climb like ``climb`` without waiting for the device; return None on a CPU.

    The number of quasi-Newton steps is fixed, enough for nearly every search, and Newton steps follow
    from all starts. If these do not arrive, a second attempt continues with quasi-Newton steps. If
    that fails, too, or the function has no Hessian, ``climb`` itself runs, which waits for the device.
    The arguments are those of ``climb``, without a batch.
    """
    second_order = function.second_order
    if is_near(start):
        return None

    def wait() -> Attempt:
        maxima = climb(function, start, bandwidth, max_iter)
        return Attempt(maxima, torch.ones((), dtype=torch.bool, device=start.device), wait)

    if second_order is None:
        return wait()
    within = min(_MERGE_WITHIN, 0.5 * bandwidth)
    descend = partial(_descend, function, merge_within=within, asks=False)
    with torch.inference_mode():
        steps = min(_STEPS_UNASKED, max_iter)
        rough = descend(start.float(), max_iter=steps, value_tolerance=_NEAR_ENOUGH, leave=_FEW)
        leaders, slot, count = _leaders(rough)
        leads = torch.arange(len(start), device=start.device) < count
        in_time = _still_running(rough) <= _FEW
        newton = climb_by_newton(second_order, leaders.to(start), unit_cube(start), counts=leads)
        arrived = in_time & (newton.reached | ~leads).all()
        maxima = _of_each_start(newton.points, newton.values, slot, rough.into)

    def again() -> Attempt:
        with torch.inference_mode():
            # Merged starts begin at the best point, so that they are merged again at once.
            begin = torch.where(leads.unsqueeze(-1), newton.points, newton.points[:1])
            steps = min(_STEPS_AGAIN, max_iter)
            end = descend(begin, max_iter=steps, value_tolerance=_VALUE_TOLERANCE)
            maxima = _of_each_start(end.point, -end.value, slot, rough.into)
            return Attempt(maxima, in_time & (_still_running(end) == 0), wait)

    return Attempt(maxima, arrived, again)


def _of_each_start(points: Tensor, values: Tensor, slot: Tensor, into: Tensor) -> MergedMaxima:
    """Return the maximum of each start, the one numbered by its ``slot``."""
    index = slot.unsqueeze(-1).expand(*slot.shape, points.shape[-1])
    return MergedMaxima(points.gather(-2, index), values.gather(-1, slot), into.clone())


def _descend(function: SmoothFunction, start: Tensor, **options: Any) -> Minimum:
    """Minimize the negative of a function in the unit cube."""
    loss = function.with_gradient(start, sign=-1.0)
    return minimize_batch(loss, start, unit_cube(start, "cpu"), **options)


def _still_running(end: Minimum) -> Tensor:  # shape: ()
    """Return the number of searches that neither ended nor were merged."""
    unmerged = end.into == torch.arange(end.into.shape[-1], device=end.into.device)
    return (end.running & unmerged).sum()


def _leaders(rough: Minimum) -> tuple[Tensor, Tensor, Tensor]:
    """Sort the points, those not merged first, and return each start's index in this order.

    Returns:
        Points, shape ``(*batch, n, d)``: those not merged, best first, then the others. The index of
        each start's point, shape ``(*batch, n)``; a merged start has the index of its target.
        The number of points not merged, in the batch entry with most of them.
    """
    numbers = torch.arange(rough.into.shape[-1], device=rough.into.device)
    leads = rough.into == numbers
    by_value = rough.value.nan_to_num(torch.inf).argsort(dim=-1, stable=True)
    first = leads.gather(-1, by_value).int().argsort(dim=-1, descending=True, stable=True)
    order = by_value.gather(-1, first)
    rank = torch.zeros_like(order).scatter(-1, order, numbers.expand_as(order))
    point = rough.point.gather(-2, order.unsqueeze(-1).expand(*order.shape, rough.point.shape[-1]))
    return point, rank.gather(-1, rough.into), leads.sum(-1).max()
