"""Climb a smooth function from many starts at once, to exact maxima.

The first steps follow the signs of the gradient. Two starts that are near each other then most likely end
in one maximum, so only the higher of them continues: first after a few of these steps, and then by
Newton's method if the function has a Hessian; by L-BFGS if it has none, and where Newton's method does
not arrive. All points are in the unit cube.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.device import is_near
from botorch_costly.optim.lbfgs import minimize_batch
from botorch_costly.optim.merging import followed, leaders_of, merged_into, points_at
from botorch_costly.optim.newton import Maxima, climb_by_newton
from botorch_costly.optim.sign_steps import climb_by_signs, climbers_from
from botorch_costly.optim.smooth import DivisibleFunction, SmoothFunction
from botorch_costly.optim.starts import unit_cube

_SIGN_STEPS = 12
_STEPS_APART = 6  # after which starts are merged for the first time
_FEW = 4  # variables, up to which starts are dense: the first merging is earlier, and within less
_MERGE_WITHIN = 0.6  # in bandwidths, in every variable
_WIDEST = 0.2  # bandwidth up to which starts are merged that early
_NEWTON_STEPS = 5  # enough for most starts; the others take
_MORE_STEPS = 20  # further ones
_STEPS_UNASKED = 24  # of L-BFGS, before it waits for a device
# Cancellation in a posterior variance leaves about this much noise in a value (relative to 1). A search
# for a smaller gradient would wander in it until its last iteration.
_VALUE_TOLERANCE = 1e-10
_CACHE_BYTES = 2**21  # of a core

ClimbOn = Callable[[Tensor], Maxima]  # points, batch_shape x k x d -> points further up


class MergedMaxima(NamedTuple):
    """Maximum that each start reached; a merged start has the maximum of the one it was merged into."""

    points: Tensor  # in the unit cube, shape: (*batch, n, d)
    values: Tensor  # shape: (*batch, n): may hold numbers that are not finite
    into: Tensor  # shape: (*batch, n): index of the start that the maximum is from


def climb(
    function: SmoothFunction, start: Tensor, bandwidth: float, max_iter: int, warm: int = 0
) -> MergedMaxima:
    """Climb from every start to a local maximum.

    On a CPU a large batch of functions is divided into blocks that stay in the cache.

    Args:
        function: Function to maximize over the unit cube; with a Hessian, no graph is kept.
        start: Starts in the unit cube, ``batch_shape x n x d``.
        bandwidth: Optima closer than this count as one.
        max_iter: Most evaluations by L-BFGS.
        warm: Number of starts, the last ones, that are near a maximum already; they take no first steps,
            which are long.
    """
    blocks = [
        _climb_block(part, rows, bandwidth, max_iter, warm)
        for part, rows in _blocks(function, start)
    ]
    return (
        blocks[0] if len(blocks) == 1 else MergedMaxima(*map(torch.cat, zip(*blocks, strict=True)))
    )


def _blocks(function: SmoothFunction, start: Tensor) -> list[tuple[SmoothFunction, Tensor]]:
    """Return smaller batches of functions with their starts, or all of it on another device."""
    if start.dim() != 3 or not is_near(start) or not isinstance(function, DivisibleFunction):
        return [(function, start)]
    size = max(_CACHE_BYTES // function.entry_bytes, 1)
    if size >= len(start):
        return [(function, start)]
    firsts = range(0, len(start), size)
    return [(function.entries(slice(i, i + size)), start[i : i + size]) for i in firsts]


def _climb_block(
    function: SmoothFunction, start: Tensor, bandwidth: float, max_iter: int, warm: int
) -> MergedMaxima:
    second_order, cube = function.second_order, unit_cube(start)
    by_lbfgs = partial(_climb_by_lbfgs, function, max_iter)
    # Autograd's bookkeeping is a tenth of the time of small problems with a closed form.
    with torch.inference_mode(second_order is not None):
        single = second_order is not None
        rough = _rough(function, start, bandwidth, warm, single=single, reads=True)
        if second_order is None:
            end = by_lbfgs(rough.points)
        else:
            end = climb_by_newton(second_order, rough.points, cube, _NEWTON_STEPS)
            by_newton = partial(climb_by_newton, second_order, bounds=cube, max_iter=_MORE_STEPS)
            if not bool(end.reached.all()):
                end = _finished(_finished(end, by_newton), by_lbfgs)
    # Not in inference mode, so that the result can be used with autograd.
    return _of_each_start(end, rough, _within(bandwidth))


class Attempt(NamedTuple):
    """A climb that may not have arrived; reading ``arrived`` waits for the device."""

    maxima: MergedMaxima
    arrived: Tensor  # bool, shape: ()
    again: Callable[[], "Attempt"]  # continues the climb


def attempt(
    function: SmoothFunction, start: Tensor, bandwidth: float, max_iter: int, warm: int = 0
) -> Attempt | None:
    """Climb like ``climb`` without waiting for the device; return None on a CPU.

    The number of Newton steps is fixed, enough for most searches, and all starts take them. If these do
    not arrive, a second attempt takes further ones, and a third one a few of L-BFGS. If the function has
    no Hessian, the only attempt is by L-BFGS, which waits for the device. The arguments are those of
    ``climb``, without a batch.
    """
    if is_near(start):
        return None
    second_order = function.second_order
    with torch.inference_mode(second_order is not None):
        single = second_order is not None
        rough = _rough(function, start, bandwidth, warm, single=single, reads=False)

    def tried(end: Maxima, arrived: Tensor, again: Callable[[Maxima], Attempt]) -> Attempt:
        maxima = _of_each_start(end, rough, _within(bandwidth))
        return Attempt(maxima, arrived, lambda: again(end))

    def by_lbfgs(before: Maxima, most: int = max_iter) -> Attempt:
        with torch.inference_mode(second_order is not None):
            end = _climb_by_lbfgs(function, most, before.points)
            points = torch.where(before.reached.unsqueeze(-1), before.points, end.points)
            values = torch.where(before.reached, before.values, end.values)
            end = Maxima(points, values, end.reached)
        return tried(end, end.reached.all(), by_lbfgs)

    def by_newton(points: Tensor, steps: int, again: Callable[[Maxima], Attempt]) -> Attempt:
        assert second_order is not None
        with torch.inference_mode():
            end = climb_by_newton(second_order, points, unit_cube(start), steps)
        return tried(end, end.reached.all(), again)

    if second_order is None:
        values = rough.points[:, 0]
        return by_lbfgs(Maxima(rough.points, values, torch.zeros_like(values, dtype=torch.bool)))
    last = partial(by_lbfgs, most=min(max_iter, _STEPS_UNASKED))
    return by_newton(
        rough.points, _NEWTON_STEPS, lambda end: by_newton(end.points, _MORE_STEPS, last)
    )


def _climb_by_lbfgs(function: SmoothFunction, max_iter: int, points: Tensor) -> Maxima:
    """Climb on by L-BFGS; wherever it ends counts as reached."""
    loss, box = function.with_gradient(points, sign=-1.0), unit_cube(points, "cpu")
    end = minimize_batch(loss, points, box, max_iter=max_iter, value_tolerance=_VALUE_TOLERANCE)
    return Maxima(end.point, -end.value, torch.ones_like(end.converged))


class _Rough(NamedTuple):
    """Where the first steps ended, from the starts that are not merged."""

    points: Tensor  # shape: (*batch, j, d)
    numbers: Tensor  # of each point among the starts; one may be repeated, shape: (*batch, j)
    into: Tensor  # start that each start is merged into, which may be merged itself: (*batch, n)


def _rough(
    function: SmoothFunction,
    start: Tensor,
    bandwidth: float,
    warm: int,
    *,
    single: bool,
    reads: bool,
) -> _Rough:
    """Take the first steps, and merge starts that have come near each other.

    Single precision will do if Newton steps in double precision follow. If the number of starts that
    continue is not read, they are padded up to the number of starts.
    """
    begin = start.float() if single else start
    slopes, within = function.with_gradient(begin), _within(bandwidth)
    climbers = climbers_from(slopes, begin, warm)
    into = numbers = torch.arange(start.shape[-2], device=start.device).expand(start.shape[:-1])
    dim = start.shape[-1]
    first = min(2 + dim, _STEPS_APART)
    stages = (first, within / 2 if dim <= _FEW else within), (_SIGN_STEPS - first, within)
    for steps, near in stages:
        climbers, values = climb_by_signs(slopes, climbers, steps)
        here = merged_into(climbers.points, values, near)
        leaders, number = leaders_of(here)
        if reads:
            leaders = leaders[..., : int(number.max())]
        into = into.scatter(-1, numbers, numbers.gather(-1, here))
        numbers, climbers = numbers.gather(-1, leaders), climbers.at(leaders)
    return _Rough(climbers.points.to(start), numbers, into)


def _finished(end: Maxima, climb_on: ClimbOn) -> Maxima:
    """Let the points climb on that have not reached a maximum."""
    count = int((~end.reached).sum(-1).max())
    if count == 0:
        return end
    rest = end.reached.int().argsort(dim=-1, stable=True)[..., :count]
    each = rest.unsqueeze(-1).expand(*rest.shape, end.points.shape[-1])
    points, values, reached = climb_on(end.points.gather(-2, each))
    return Maxima(
        end.points.scatter(-2, each, points),
        end.values.scatter(-1, rest, values),
        end.reached.scatter(-1, rest, reached),
    )


def _of_each_start(end: Maxima, rough: _Rough, within: float) -> MergedMaxima:
    """Return the maximum of each start, that of its leader, after leaders that met are merged."""
    numbers, values = rough.numbers, end.values.nan_to_num(-torch.inf)
    here = merged_into(end.points, values, within)
    into = followed(rough.into.scatter(-1, numbers, numbers.gather(-1, here)))
    places = torch.arange(numbers.shape[-1], device=numbers.device).expand(numbers.shape)
    place = into.scatter(-1, numbers, places).gather(-1, into)
    return MergedMaxima(points_at(end.points, place), end.values.gather(-1, place), into)


def _within(bandwidth: float) -> float:
    """Return the difference within which two starts are taken to climb to one maximum."""
    return _MERGE_WITHIN * min(bandwidth, _WIDEST)
