"""The local optima of an acquisition function.

A query rule compares the candidate with the other local optima of the acquisition function. A search
climbs from many starts (by Newton's method or L-BFGS in the end, see ``optim.climb``), and merges by mean
shift those that ended together.

The search runs in the unit cube. So a bandwidth is a fraction of the range of a parameter, whatever its
unit; only the acquisition function sees the bounds.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from botorch_costly.device import is_near, moved, read
from botorch_costly.errors import NumericalError, check, check_count, check_positive
from botorch_costly.optim.climb import MergedMaxima, attempt, climb
from botorch_costly.optim.smooth import Acquisition, SmoothFunction, from_callable
from botorch_costly.optim.starts import (
    CheckedBox,
    Starts,
    box_of,
    clamped_to_unit_cube,
    draw_starts,
    from_unit_cube,
    over_unit_cube,
    to_unit_cube,
)
from botorch_costly.optim.suppression import Optima, suppress, suppress_unasked


class Ascent(NamedTuple):
    """The starts of a search and their last points, in the unit of the bounds."""

    starts: Tensor  # shape: (n, d)
    points: Tensor  # shape: (n, d)
    values: Tensor  # shape: (n,): may hold numbers that are not finite
    into: Tensor  # index of the start that the last point is from; differs if merged, shape: (n,)


def local_optima(
    acq_function: Acquisition | SmoothFunction,
    bounds: Tensor,  # shape: (2, d)
    num_restarts: int = 50,
    bandwidth: float = 0.2,
    *,
    warm_starts: Tensor | None = None,  # shape: (m, d)
    starts: Starts = "sobol",
    generator: torch.Generator | None = None,
    max_iter: int = 100,
) -> Optima:
    """Find the distinct local maxima of an acquisition function in a box.

    References:
        - *Cost-efficient online hyperparameter optimization*, appendix, implementation details:
          50 starts, L-BFGS, mean shift with bandwidth 0.2.

    Args:
        acq_function: Maps ``b x 1 x d`` to ``b``, as BoTorch's acquisition functions do.
        bounds: ``2 x d`` finite lower and upper bounds.
        num_restarts: Number of starts drawn.
        bandwidth: Optima closer than this count as one; a distance in the unit cube.
        warm_starts: ``m x d`` further starts, in the unit of the bounds, clamped into them.
        starts: ``"sobol"`` for a scrambled Sobol sequence, ``"uniform"`` for independent draws.
        generator: Random generator for the starts; seed 0 if omitted.
        max_iter: Most evaluations by L-BFGS, which begins after 13 evaluations.

    Returns:
        The ``m x d`` optima in the unit of the bounds and their ``m`` values, best first. A start at
        which the gradient vanishes counts as an optimum.

    Raises:
        NumericalError: If no start reaches a finite value.
        InvalidShapeError: If shapes do not fit each other.
        InvalidArgumentError: If an option is out of range.

    Example:
        >>> def two_peaks(X):
        ...     return torch.sin(6 * X).sum((-1, -2)) + X.sum((-1, -2))
        >>> local_optima(two_peaks, torch.tensor([[0.0], [2.0]])).points.round(decimals=2)
        tensor([[1.3400],
                [2.0000],
                [0.2900]])
    """
    return search(
        acq_function,
        bounds,
        num_restarts,
        bandwidth,
        warm_starts=warm_starts,
        starts=starts,
        generator=generator,
        max_iter=max_iter,
    ).optima


class Searched(NamedTuple):
    """Result of a search for local optima."""

    starts: Tensor  # in the unit of the bounds, shape: (n, d)
    optima: Optima
    more: Tensor  # points computed from the optima, shape: (k, d)


# Maps points and a mask of the valid ones to new points, the valid ones first, and their number.
Remade = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def search(
    acq_function: Acquisition | SmoothFunction,
    bounds: Tensor,  # shape: (2, d)
    num_restarts: int,
    bandwidth: float,
    *,
    remade: Remade | None = None,
    **options: Any,
) -> Searched:
    """Find the local optima as :func:`local_optima` does, and compute other points from them.

    As a rule the search waits only once for a device other than a CPU, and then reads whether the climb
    arrived, the number of optima, and the number of points computed from them.

    Bounds on the CPU are checked without waiting. ``remade`` computes the other points from the optima;
    it is the identity if omitted. The other arguments and the errors are those of :func:`local_optima`.
    """
    check_positive("bandwidth", bandwidth)
    begun = _begin(acq_function, bounds, num_restarts, **options)
    box, tried = begun.box, attempt(begun.function, *begun.arguments(bandwidth))
    while tried is not None:
        ascent = _ascent(begun, tried.maxima)
        unit, finite = to_unit_cube(ascent.points, box), _finite(ascent)
        merged = suppress_unasked(unit, ascent.values, bandwidth, finite)
        points, counts = from_unit_cube(merged.optima.points, box), ~merged.optima.values.isneginf()
        more, more_count = (points, merged.number) if remade is None else remade(points, counts)
        arrived, is_right, any_finite, number, more_number = read(
            tried.arrived, merged.right, finite.any(), merged.number, more_count
        )
        if bool(arrived):
            if not (bool(is_right) and bool(any_finite)):
                break
            optima = Optima(points[:number], merged.optima.values[:number])
            return Searched(ascent.starts, optima, more[:more_number])
        tried = tried.again()
    else:
        ascent = _climb(begun, bandwidth)
    optima = _distinct(ascent, box, bandwidth)
    if remade is None:
        return Searched(ascent.starts, optima, optima.points)
    more, more_count = remade(optima.points, torch.ones_like(optima.values, dtype=torch.bool))
    return Searched(ascent.starts, optima, more[: int(more_count)])


def ascend(
    acq_function: Acquisition | SmoothFunction,
    bounds: Tensor,  # shape: (2, d)
    num_restarts: int = 50,
    bandwidth: float = 0.2,
    **options: Any,
) -> Ascent:
    """Climb from all starts at once, as the first step of :func:`local_optima`.

    If starts come much closer to each other than the bandwidth, only the highest of them continues. The
    arguments are those of :func:`local_optima`, and so are the errors; no value has to be finite.

    Returns:
        Starts, last points and their values, one for each start drawn and each warm start.
    """
    return _climb(_begin(acq_function, bounds, num_restarts, **options), bandwidth)


class _Begun(NamedTuple):
    """A search whose starts are drawn."""

    function: SmoothFunction  # over the unit cube
    unit: Tensor  # starts in the unit cube, the warm ones last, shape: (n, d)
    warm: int  # number of warm starts
    box: CheckedBox
    max_iter: int

    def arguments(self, bandwidth: float) -> tuple[Tensor, float, int, int]:
        """Return the arguments of a climb after its function."""
        return self.unit, bandwidth, self.max_iter, self.warm


def _begin(
    acq_function: Acquisition | SmoothFunction,
    bounds: Tensor,
    num_restarts: int,
    *,
    warm_starts: Tensor | None = None,
    starts: Starts = "sobol",
    generator: torch.Generator | None = None,
    max_iter: int = 100,
) -> _Begun:
    """Check the options of a search and draw its starts."""
    check_count("max_iter", max_iter)
    like = bounds
    if warm_starts is not None:
        like = bounds.to(warm_starts.device, non_blocking=is_near(bounds))
    box, warm = box_of(bounds, like), 0 if warm_starts is None else len(warm_starts)
    unit = moved(draw_starts(num_restarts, starts, bounds, generator), like)
    if warm_starts is not None:
        warm_unit = clamped_to_unit_cube("warm_starts", warm_starts, box)
        unit = torch.cat([unit, warm_unit]) if warm else unit
    check(len(unit) > 0, "num_restarts", "a start, drawn or warm", num_restarts)
    function = over_unit_cube(from_callable(acq_function), box)
    return _Begun(function, unit, warm, box, max_iter)


def _climb(begun: _Begun, bandwidth: float) -> Ascent:
    return _ascent(begun, climb(begun.function, *begun.arguments(bandwidth)))


def _ascent(begun: _Begun, maxima: MergedMaxima) -> Ascent:
    """Return starts and maxima in the unit of the bounds."""
    box = begun.box
    points = from_unit_cube(maxima.points, box)
    return Ascent(from_unit_cube(begun.unit, box), points, maxima.values, maxima.into)


def _finite(ascent: Ascent) -> Tensor:  # shape: (n,)
    return (ascent.values + ascent.points.sum(-1)).abs() < torch.inf


def distinct(ascent: Ascent, bounds: Tensor, bandwidth: float) -> Optima:
    """Merge the last points of a search that lie closer than the bandwidth in the unit cube.

    Args:
        ascent: Result of :func:`ascend`.
        bounds: The ``2 x d`` bounds of that search.
        bandwidth: Optima closer than this count as one; a distance in the unit cube.

    Returns:
        The optima in the unit of the bounds, best first.

    Raises:
        NumericalError: If no last point has a finite value.
    """
    return _distinct(ascent, box_of(bounds, ascent.points), bandwidth)


def _distinct(ascent: Ascent, box: CheckedBox, bandwidth: float) -> Optima:
    finite = _finite(ascent)
    if not finite.any():
        expected = f"a finite value from one of {len(finite)} starts"
        raise NumericalError("acq_function", expected, ascent.values[0].item())
    unit = to_unit_cube(ascent.points, box)
    leads = finite & (ascent.into == torch.arange(len(finite), device=finite.device))
    apart = unit[leads]
    if bool((torch.pdist(apart) > bandwidth).all()):  # mean shift would not move them
        values, best = ascent.values[leads].sort(descending=True, stable=True)
        return Optima(from_unit_cube(apart[best], box), values)
    optima = suppress(unit[finite], ascent.values[finite], bandwidth)
    return Optima(from_unit_cube(optima.points, box), optima.values)
