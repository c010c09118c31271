"""The local optima of an acquisition function, and the rival of one that stands alone.

A query rule compares the candidate with the other local optima of the acquisition function: many
starts, L-BFGS from each of them, mean shift to merge those that ended together.

Everything here happens in the unit cube. So a bandwidth is a share of the range of a parameter,
whatever its unit; only the acquisition function sees the bounds.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from botorch_costly.device import is_near, moved, read
from botorch_costly.errors import (
    InvalidShapeError,
    NumericalError,
    check,
    check_count,
    check_positive,
)
from botorch_costly.optim.climb import attempt, climb
from botorch_costly.optim.far_rival import Rival as Rival
from botorch_costly.optim.far_rival import far_rival as far_rival
from botorch_costly.optim.smooth import Acquisition, InBox, SmoothFunction, from_callable
from botorch_costly.optim.starts import (
    CheckedBox,
    Starts,
    box_at,
    check_bounds,
    drawn_from,
    outside,
)
from botorch_costly.optim.suppression import Optima, suppress, suppress_unasked


class Ascent(NamedTuple):
    """Where the starts of one search were and where they ended, in the unit of the bounds."""

    starts: Tensor  # shape: (n, d)
    points: Tensor  # shape: (n, d)
    values: Tensor  # shape: (n,): may hold numbers that are not finite
    into: Tensor  # number of the start whose end it is, its own unless merged, shape: (n,)


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
        bandwidth: Optima closer than this are one; a distance in the unit cube.
        warm_starts: ``m x d`` further starts, in the unit of the bounds, clamped into them.
        starts: ``"sobol"`` for a scrambled Sobol sequence, ``"uniform"`` for independent draws.
        generator: Source of the starts; without one they are those of seed 0.
        max_iter: Most evaluations of the acquisition function.

    Returns:
        The ``m x d`` optima in the unit of the bounds and their ``m`` values, best first. Flat
        ground cannot be climbed: a start on which the gradient vanishes counts as an optimum.

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
    """What a search for local optima found."""

    starts: Tensor  # in the unit of the bounds, shape: (n, d)
    optima: Optima
    more: Tensor  # what was made of the optima, shape: (k, d)


# From points and which of them count to other points, those that count first, and how many these are.
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
    """Find the local optima as :func:`local_optima` does, and make other points of them.

    A device other than a CPU is waited for once as a rule, whatever there is to be known: whether the
    climb arrived, how many optima there are, and how many points were made of them.

    Args:
        acq_function: Maps ``b x 1 x d`` to ``b``.
        bounds: ``2 x d`` finite lower and upper bounds; on the CPU they are checked without waiting.
        num_restarts: Number of starts drawn.
        bandwidth: Optima closer than this are one; a distance in the unit cube.
        remade: What is to be made of the optima; themselves if omitted.
        options: Others of :func:`ascend`.

    Raises:
        NumericalError: If no start reaches a finite value.
        InvalidShapeError: If shapes do not fit each other.
        InvalidArgumentError: If an option is out of range.
    """
    check_positive("bandwidth", bandwidth)
    begun = _begin(acq_function, bounds, num_restarts, **options)
    box, tried = begun.box, attempt(begun.function, begun.unit, bandwidth, begun.max_iter)
    while tried is not None:
        ends = outside(tried.ends.points, box)
        ascent = Ascent(box.lower + box.width * begun.unit, ends, *tried.ends[1:])
        unit, finite = (ends - box.lower) / box.width, _finite(ascent)
        found = suppress_unasked(unit, ascent.values, bandwidth, finite)
        points, counts = outside(found.optima.points, box), ~found.optima.values.isneginf()
        more, number_made = (points, found.number) if remade is None else remade(points, counts)
        arrived, right, some, number, made = read(
            tried.arrived, found.right, finite.any(), found.number, number_made
        )
        if bool(arrived):
            if not (bool(right) and bool(some)):
                break
            optima = Optima(points[:number], found.optima.values[:number])
            return Searched(ascent.starts, optima, more[:made])
        tried = tried.again()
    else:
        ascent = _climbed(begun, bandwidth)
    optima = distinct(ascent, bounds, bandwidth)
    if remade is None:
        return Searched(ascent.starts, optima, optima.points)
    more, made = remade(optima.points, torch.ones_like(optima.values, dtype=torch.bool))
    return Searched(ascent.starts, optima, more[: int(made)])


def ascend(
    acq_function: Acquisition | SmoothFunction,
    bounds: Tensor,  # shape: (2, d)
    num_restarts: int = 50,
    bandwidth: float = 0.2,
    *,
    warm_starts: Tensor | None = None,  # shape: (m, d)
    starts: Starts = "sobol",
    generator: torch.Generator | None = None,
    max_iter: int = 100,
) -> Ascent:
    """Climb from every start at once: the search of :func:`local_optima`.

    Of starts that come much closer to each other than the bandwidth only the highest goes on.

    Args:
        acq_function: Maps ``b x 1 x d`` to ``b``.
        bounds: ``2 x d`` finite lower and upper bounds.
        num_restarts: Number of starts drawn.
        bandwidth: Optima closer than this will be one; a distance in the unit cube.
        warm_starts: ``m x d`` further starts, in the unit of the bounds, clamped into them.
        starts: ``"sobol"`` or ``"uniform"``.
        generator: Source of the starts; without one they are those of seed 0.
        max_iter: Most evaluations of the acquisition function.

    Returns:
        Starts, ends and their values, ``num_restarts + m`` of each.

    Raises:
        InvalidShapeError: If shapes do not fit each other.
        InvalidArgumentError: If an option is out of range.
    """
    return _climbed(
        _begin(
            acq_function,
            bounds,
            num_restarts,
            warm_starts=warm_starts,
            starts=starts,
            generator=generator,
            max_iter=max_iter,
        ),
        bandwidth,
    )


class _Begun(NamedTuple):
    """A search that has its starts."""

    function: InBox
    unit: Tensor  # starts in the unit cube, shape: (n, d)
    box: CheckedBox
    max_iter: int


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
    lower, width = check_bounds(bounds)
    like = (
        bounds
        if warm_starts is None
        else bounds.to(warm_starts.device, non_blocking=is_near(bounds))
    )
    begin, box = (
        moved(drawn_from(num_restarts, starts, bounds, generator), like),
        box_at(bounds, like),
    )
    if warm_starts is not None:
        fits = warm_starts.dim() == 2 and warm_starts.shape[-1] == len(lower)
        expected = f"shape (m, {len(lower)})"
        check(fits, "warm_starts", expected, tuple(warm_starts.shape), InvalidShapeError)
        warm = ((warm_starts.to(like) - box.lower) / box.width).clamp(0.0, 1.0)
        begin = torch.cat([begin, warm])
    check(len(begin) > 0, "num_restarts", "a start, drawn or warm", num_restarts)
    return _Begun(InBox(from_callable(acq_function), lower, width), begin, box, max_iter)


def _climbed(begun: _Begun, bandwidth: float) -> Ascent:
    """Climb from the starts of a search."""
    box = begun.box
    ends, values, into = climb(begun.function, begun.unit, bandwidth, begun.max_iter)
    return Ascent(box.lower + box.width * begun.unit, outside(ends, box), values, into)


def _finite(ascent: Ascent) -> Tensor:  # shape: (n,)
    return ascent.values.isfinite() & ascent.points.isfinite().all(-1)


def distinct(ascent: Ascent, bounds: Tensor, bandwidth: float) -> Optima:
    """Merge the ends of a search that lie closer than the bandwidth in the unit cube.

    Args:
        ascent: What :func:`ascend` returned.
        bounds: The ``2 x d`` bounds it was given.
        bandwidth: Optima closer than this are one; a distance in the unit cube.

    Returns:
        The optima in the unit of the bounds, best first.

    Raises:
        NumericalError: If no end has a finite value.
    """
    check_bounds(bounds)
    box, finite = box_at(bounds, ascent.points), _finite(ascent)
    if not finite.any():
        expected = f"a finite value from one of {len(finite)} starts"
        raise NumericalError("acq_function", expected, ascent.values[0].item())
    unit = (ascent.points - box.lower) / box.width
    leads = finite & (ascent.into == torch.arange(len(finite), device=finite.device))
    if bool((torch.pdist(unit[leads]) > bandwidth).all()):  # mean shift would leave them there
        values, best = ascent.values[leads].sort(descending=True, stable=True)
        return Optima(outside(unit[leads][best], box), values)
    optima = suppress(unit[finite], ascent.values[finite], bandwidth)
    return Optima(outside(optima.points, box), optima.values)
