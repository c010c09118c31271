"""Climb a smooth function from many starts at once, exactly and without waste.

Two starts that come near each other most likely end in one maximum: only the higher goes on. Where the
function has a Hessian, quasi-Newton steps only have to come near the maxima, and Newton steps do the
rest. Everything here happens in the unit cube.
"""

from typing import NamedTuple

import torch
from torch import Tensor

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
    zeros = start.new_zeros(start.shape[-1])
    cube, second_order = torch.stack([zeros, torch.ones_like(zeros)]), function.second_order
    within = min(_MERGE_WITHIN, 0.5 * bandwidth)

    def descend(start: Tensor, tolerance: float, leave: int = 0) -> Minimum:
        return minimize_batch(
            function.with_gradient(start, sign=-1.0),
            start,
            cube,
            max_iter=max_iter,
            value_tolerance=tolerance,
            merge_within=within,
            leave=leave,
        )

    if second_order is None:
        end = descend(start, _VALUE_TOLERANCE)
        return Ends(end.point, -end.value, end.into)
    with torch.inference_mode():  # autograd's bookkeeping is a tenth of the time of small problems
        rough = descend(start.float(), _NEAR_ENOUGH, _FEW)  # its rounding will not be seen
        leaders, slot = _leaders(rough)
        leaders = leaders.to(start)
        most = leaders.shape[-2] if start.dim() == 2 else _FROM_A_BATCH
        best, others = leaders[..., :most, :], leaders[..., most:, :]
        summit = climb_by_newton(second_order, best, cube)
        ends = summit.points, summit.values
        if others.numel() or not bool(summit.reached.all()):  # those on a summit stay there
            end = descend(torch.cat([summit.points, others], -2), _VALUE_TOLERANCE)
            ends = end.point, -end.value
        index = slot.unsqueeze(-1).expand_as(start)
        found = ends[0].gather(-2, index), ends[1].gather(-1, slot), rough.into
    return Ends(*(part.clone() for part in found))


def _leaders(rough: Minimum) -> tuple[Tensor, Tensor]:  # shapes: (*batch, r, d), (*batch, n)
    """Return where the starts that were not merged are, best first, and the place of each in that list.

    A start that was merged has the place of the one it was merged into. In a batch, entries with fewer
    starts left are filled up with some that were merged.
    """
    numbers = torch.arange(rough.into.shape[-1], device=rough.into.device)
    leads = rough.into == numbers
    by_value = rough.value.nan_to_num(torch.inf).argsort(dim=-1, stable=True)
    first = leads.gather(-1, by_value).int().argsort(dim=-1, descending=True, stable=True)
    order = by_value.gather(-1, first)
    rank = torch.zeros_like(order).scatter(-1, order, numbers.expand_as(order))
    order = order[..., : int(leads.sum(-1).max())]
    point = rough.point.gather(-2, order.unsqueeze(-1).expand(*order.shape, rough.point.shape[-1]))
    return point, rank.gather(-1, rough.into)
