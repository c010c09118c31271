"""Climb a smooth function from many starts at once, exactly and without waste.

Two starts that come near each other most likely end in one maximum: only the higher goes on. Where the
function has a Hessian, quasi-Newton steps only have to come near the maxima, and Newton steps do the
rest. Everything here happens in the unit cube.
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

# Cancellation in a posterior variance leaves about this much noise in a value (relative to 1), in
# which a search for a smaller gradient would wander until its last iteration.
_VALUE_TOLERANCE = 1e-10
_NEAR_ENOUGH = 1e-5  # gain of a last step, from which Newton's method takes over,
_FEW = 4  # or when only so many starts are still climbing
_FROM_A_BATCH = 8  # best starts of each entry, which Newton's method takes: all pay for the most
_MERGE_WITHIN = 0.1  # far less than what tells two optima apart
# Iterations that a device is not asked about: 24 and 32 were the most of 700 searches.
_STEPS_UNASKED, _STEPS_AGAIN = 24, 40


class Ends(NamedTuple):
    """Where each start ended; a start that was merged has the end of the one it was merged into."""

    points: Tensor  # in the unit cube, shape: (*batch, n, d)
    values: Tensor  # shape: (*batch, n): may hold numbers that are not finite
    into: Tensor  # number of the start whose end it has, its own unless merged, shape: (*batch, n)


def climb(function: SmoothFunction, start: Tensor, bandwidth: float, max_iter: int) -> Ends:
    """Climb from every start to a local maximum.

    Args:
        function: To be maximized over the unit cube. A Hessian is in closed form: no graph is kept.
        start: In the unit cube, ``batch_shape x n x d``.
        bandwidth: Optima closer than this count as one.
        max_iter: Most evaluations by L-BFGS.
    """
    second_order = function.second_order
    within = min(_MERGE_WITHIN, 0.5 * bandwidth)
    descend = partial(_descend, function, max_iter=max_iter, merge_within=within)
    if second_order is None:
        end = descend(start, value_tolerance=_VALUE_TOLERANCE)
        return Ends(end.point, -end.value, end.into)
    with torch.inference_mode():  # autograd's bookkeeping is a tenth of the time of small problems
        # Its rounding will not be seen.
        rough = descend(start.float(), value_tolerance=_NEAR_ENOUGH, leave=_FEW)
        leaders, slot, count = _leaders(rough)
        leaders = leaders[..., : int(count), :].to(start)
        most = leaders.shape[-2] if start.dim() == 2 else _FROM_A_BATCH
        best, others = leaders[..., :most, :], leaders[..., most:, :]
        summit = climb_by_newton(second_order, best, _cube(start))
        ends = summit.points, summit.values
        if others.numel() or not bool(summit.reached.all()):  # those on a summit stay there
            again = torch.cat([summit.points, others], -2)
            end = descend(again, value_tolerance=_VALUE_TOLERANCE)
            ends = end.point, -end.value
        index = slot.unsqueeze(-1).expand_as(start)
        found = ends[0].gather(-2, index), ends[1].gather(-1, slot), rough.into
    return Ends(*(part.clone() for part in found))


class Attempt(NamedTuple):
    """A climb of which a device has not been asked whether it arrived."""

    ends: Ends
    arrived: Tensor  # bool, shape: ()
    again: Callable[[], "Attempt"]  # goes on where it did not


def attempt(
    function: SmoothFunction, start: Tensor, bandwidth: float, max_iter: int
) -> Attempt | None:
    """Return what ``climb`` does, on a device without waiting for it; None on a CPU.

    Where there is no Hessian, it is waited for. Else quasi-Newton steps are as many as nearly every
    search needs, and Newton steps are made from all starts. If these did not arrive, a second attempt
    goes on with quasi-Newton steps, and after it ``climb`` itself, which asks, begins anew.

    Args:
        function: To be maximized over the unit cube.
        start: In the unit cube, ``n x d``.
        bandwidth: Optima closer than this count as one.
        max_iter: Most evaluations by L-BFGS of the climb that asks.
    """
    second_order = function.second_order
    if is_near(start):
        return None

    def in_earnest() -> Attempt:
        ends = climb(function, start, bandwidth, max_iter)
        arrived = torch.ones((), dtype=torch.bool, device=start.device)
        return Attempt(ends, arrived, in_earnest)

    if second_order is None:
        return in_earnest()
    within = min(_MERGE_WITHIN, 0.5 * bandwidth)
    descend = partial(_descend, function, merge_within=within, asks=False)

    def done(points: Tensor, values: Tensor, slot: Tensor, into: Tensor) -> Ends:
        index = slot.unsqueeze(-1).expand_as(start)
        found = points.gather(-2, index), values.gather(-1, slot), into
        return Ends(*(part.clone() for part in found))

    with torch.inference_mode():
        steps = min(_STEPS_UNASKED, max_iter)
        rough = descend(start.float(), max_iter=steps, value_tolerance=_NEAR_ENOUGH, leave=_FEW)
        leaders, slot, count = _leaders(rough)
        numbers = torch.arange(len(start), device=start.device)
        leads, in_time = numbers < count, _still_running(rough) <= _FEW
        summit = climb_by_newton(second_order, leaders.to(start), _cube(start), counts=leads)
        arrived = in_time & (summit.reached | ~leads).all()
        ends = done(summit.points, summit.values, slot, rough.into)

    def again() -> Attempt:
        with torch.inference_mode():
            # What leads nowhere begins where the best does, and is merged into it at once.
            begin = torch.where(leads.unsqueeze(-1), summit.points, summit.points[:1])
            steps = min(_STEPS_AGAIN, max_iter)
            end = descend(begin, max_iter=steps, value_tolerance=_VALUE_TOLERANCE)
            ends = done(end.point, -end.value, slot, rough.into)
            return Attempt(ends, in_time & (_still_running(end) == 0), in_earnest)

    return Attempt(ends, arrived, again)


def _descend(function: SmoothFunction, start: Tensor, **options: Any) -> Minimum:
    """Minimize the negative of a function in the unit cube."""
    loss = function.with_gradient(start, sign=-1.0)
    return minimize_batch(loss, start, _cube(start, "cpu"), **options)


def _cube(start: Tensor, device: str | torch.device | None = None) -> Tensor:
    """Return the bounds of the unit cube, ``2 x d``, where the starts are or elsewhere."""
    zeros = torch.zeros(start.shape[-1], dtype=start.dtype, device=device or start.device)
    return torch.stack([zeros, torch.ones_like(zeros)])


def _still_running(end: Minimum) -> Tensor:  # shape: ()
    """Return how many searches were cut short."""
    own = end.into == torch.arange(end.into.shape[-1], device=end.into.device)
    return (end.running & own).sum()


def _leaders(rough: Minimum) -> tuple[Tensor, Tensor, Tensor]:
    """Return where the starts that were not merged are, and the place of each in that list.

    A start that was merged has the place of the one it was merged into.

    Returns:
        Points, shape ``(*batch, n, d)``: those not merged, best first, then the others. Places, shape
        ``(*batch, n)``. The number of those not merged, in the batch entry with most of them.
    """
    numbers = torch.arange(rough.into.shape[-1], device=rough.into.device)
    leads = rough.into == numbers
    by_value = rough.value.nan_to_num(torch.inf).argsort(dim=-1, stable=True)
    first = leads.gather(-1, by_value).int().argsort(dim=-1, descending=True, stable=True)
    order = by_value.gather(-1, first)
    rank = torch.zeros_like(order).scatter(-1, order, numbers.expand_as(order))
    point = rough.point.gather(-2, order.unsqueeze(-1).expand(*order.shape, rough.point.shape[-1]))
    return point, rank.gather(-1, rough.into), leads.sum(-1).max()
