"""Climb an acquisition function from many starts at once, exactly and without waste.

Two starts that come near each other most likely end in one maximum: only the higher goes on. Where the
function knows its Hessian, quasi-Newton steps only have to come near the maxima, and Newton's do the
rest. Everything here happens in the unit cube.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.numerics.expansion import Quadratic
from botorch_costly.optim.lbfgs import Minimum, ValueAndGradient, as_loss, minimize_batch
from botorch_costly.optim.newton import SecondOrder, climb_by_newton

Acquisition = Callable[[Tensor], Tensor]

# Cancellation in a posterior variance leaves about this much noise in a value (relative to 1), in
# which a search for a smaller gradient would wander until its last iteration.
_VALUE_TOLERANCE = 1e-10
_NEAR_ENOUGH = 1e-5  # gain of a last step, from which Newton's method takes over,
_FEW = 4  # or when only so many starts are still climbing
_FROM_A_BATCH = 8  # best starts of each entry, which Newton's method takes: all pay for the most
_MERGE_WITHIN = 0.1  # far less than what tells two optima apart


class Ends(NamedTuple):
    """Where each start ended, those that were merged with the start they went into."""

    points: Tensor  # in the unit cube, shape: (*batch, n, d)
    values: Tensor  # shape: (*batch, n): may hold numbers that are not finite
    into: Tensor  # whom each start follows, itself unless it was merged, shape: (*batch, n)


class InCube(NamedTuple):
    """An acquisition function in the unit of its box, asked about points of the unit cube.

    It may know its gradient (``with_gradient``) and its Hessian (``second_order``, if ``is_smooth``),
    the latter in closed form: whoever asks for it keeps no graphs.
    """

    function: Acquisition
    lower: Tensor  # shape: (d,)
    width: Tensor  # shape: (d,)

    @property
    def is_smooth(self) -> bool:
        """Whether there is a Hessian."""
        return getattr(self.function, "is_smooth", False)

    @property
    def is_cube(self) -> bool:
        """Whether the box is the unit cube."""
        return bool((self.lower == 0).all() & (self.width == 1).all())

    def loss(self, like: Tensor) -> ValueAndGradient:
        """Return the negative values and their gradients as a function, in the precision of ``like``."""
        lower, width = self.lower.to(like), self.width.to(like)
        descend = as_loss(self.function, like)
        if self.is_cube:
            return descend

        def value_and_gradient(unit: Tensor) -> tuple[Tensor, Tensor]:
            value, gradient = descend(lower + width * unit)
            return value, width * gradient

        return value_and_gradient

    def second_order(self) -> SecondOrder:
        """Return values, gradients and Hessians as a function."""
        function, lower, width = self.function, self.lower, self.width
        ascend: SecondOrder = function.second_order  # type: ignore[attr-defined]
        if self.is_cube:
            return ascend

        def second_order(unit: Tensor) -> Quadratic:
            value, gradient, hessian = ascend(lower + width * unit)
            return Quadratic(value, width * gradient, width * width[:, None] * hessian)

        return second_order


def climb(function: InCube, start: Tensor, bandwidth: float, max_iter: int) -> Ends:
    """Climb from every start to a local maximum.

    Args:
        function: To be maximized.
        start: In the unit cube, ``batch_shape x n x d``.
        bandwidth: Optima closer than this count as one.
        max_iter: Most evaluations by L-BFGS.
    """
    cube = torch.stack([torch.zeros_like(function.lower), torch.ones_like(function.lower)])
    within = min(_MERGE_WITHIN, 0.5 * bandwidth)

    def descend(start: Tensor, tolerance: float, leave: int = 0) -> Minimum:
        return minimize_batch(
            function.loss(start),
            start,
            cube,
            max_iter=max_iter,
            value_tolerance=tolerance,
            merge_within=within,
            leave=leave,
        )

    if not function.is_smooth:
        end = descend(start, _VALUE_TOLERANCE)
        return Ends(end.point, -end.value, end.into)
    with torch.inference_mode():  # a tenth of the time of small problems is the keeping of books
        rough = descend(start.float(), _NEAR_ENOUGH, _FEW)  # its rounding will not be seen
        leaders, slot = _leaders(rough)
        leaders = leaders.to(start)
        most = leaders.shape[-2] if start.dim() == 2 else _FROM_A_BATCH
        best, others = leaders[..., :most, :], leaders[..., most:, :]
        summit = climb_by_newton(function.second_order(), best, cube)
        ends = summit.points, summit.values
        if others.numel() or not bool(summit.reached.all()):  # those on a summit stay there
            end = descend(torch.cat([summit.points, others], -2), _VALUE_TOLERANCE)
            ends = end.point, -end.value
        index = slot.unsqueeze(-1).expand_as(start)
        found = ends[0].gather(-2, index), ends[1].gather(-1, slot), rough.into
    return Ends(*(part.clone() for part in found))


def _leaders(rough: Minimum) -> tuple[Tensor, Tensor]:  # shapes: (*batch, r, d), (*batch, n)
    """Return where the starts that were not merged are, best first, and whom each start follows.

    In a batch, entries with fewer of them are filled up with some that were merged.
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
