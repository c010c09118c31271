"""The local optima of an acquisition function, and the rival of one that stands alone.

A query rule compares the candidate with the other local optima of the acquisition function: many
starts, L-BFGS from each of them, mean shift to merge those that ended together.

Everything here happens in the unit cube. So a bandwidth is a share of the range of a parameter,
whatever its unit; only the acquisition function sees the bounds.
"""

from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_costly.errors import (
    InvalidArgumentError,
    InvalidShapeError,
    NumericalError,
    check,
    check_count,
    check_positive,
)
from botorch_costly.optim.climb import climb
from botorch_costly.optim.smooth import Acquisition, InBox, SmoothFunction, from_callable
from botorch_costly.optim.suppression import Optima, suppress
from botorch_costly.randomness import check_generator, generator_of

Starts = Literal["sobol", "uniform"]


class Ascent(NamedTuple):
    """Where the starts of one search were and where they ended, in the unit of the bounds."""

    starts: Tensor  # shape: (n, d)
    points: Tensor  # shape: (n, d)
    values: Tensor  # shape: (n,): may hold numbers that are not finite
    into: Tensor  # number of the start whose end it is, its own unless merged, shape: (n,)


class Rival(NamedTuple):
    """The best point found farther from the candidate than the bandwidth."""

    point: Tensor  # shape: (d,)
    value: Tensor  # shape: ()


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
    check_positive("bandwidth", bandwidth)
    ascent = ascend(
        acq_function,
        bounds,
        num_restarts,
        bandwidth,
        warm_starts=warm_starts,
        starts=starts,
        generator=generator,
        max_iter=max_iter,
    )
    return distinct(ascent, bounds, bandwidth)


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
    check_count("max_iter", max_iter)
    lower, width = _check_bounds(bounds)
    begin = _draw(num_restarts, starts, bounds, generator)
    if warm_starts is not None:
        fits = warm_starts.dim() == 2 and warm_starts.shape[-1] == len(lower)
        expected = f"shape (m, {len(lower)})"
        check(fits, "warm_starts", expected, tuple(warm_starts.shape), InvalidShapeError)
        begin = torch.cat([begin, ((warm_starts.to(bounds) - lower) / width).clamp(0.0, 1.0)])
    check(len(begin) > 0, "num_restarts", "a start, drawn or warm", num_restarts)
    function = InBox(from_callable(acq_function), lower, width)
    ends, values, into = climb(function, begin, bandwidth, max_iter)
    return Ascent(lower + width * begin, _outside(ends, lower, width, bounds), values, into)


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
    lower, width = _check_bounds(bounds)
    finite = ascent.values.isfinite() & ascent.points.isfinite().all(-1)
    if not finite.any():
        expected = f"a finite value from one of {len(finite)} starts"
        raise NumericalError("acq_function", expected, ascent.values[0].item())
    unit = (ascent.points - lower) / width
    leads = finite & (ascent.into == torch.arange(len(finite), device=finite.device))
    if bool((torch.pdist(unit[leads]) > bandwidth).all()):  # mean shift would leave them there
        values, best = ascent.values[leads].sort(descending=True, stable=True)
        return Optima(_outside(unit[leads][best], lower, width, bounds), values)
    optima = suppress(unit[finite], ascent.values[finite], bandwidth)
    return Optima(_outside(optima.points, lower, width, bounds), optima.values)


def far_rival(
    acq_function: Acquisition | SmoothFunction,
    optima: Optima,
    bounds: Tensor,  # shape: (2, d)
    bandwidth: float = 0.2,
    candidates: Tensor | None = None,  # shape: (m, d)
    *,
    num_candidates: int = 256,
    generator: torch.Generator | None = None,
) -> Rival | None:
    r"""Find the rival of a lone optimum: the best point farther from it than the bandwidth.

    When the candidate is the only local optimum, a rule that compares it with the other optima
    has nothing to compare it with, would never query again and would forget everything.

    The candidates are a Sobol set, the points given (the starts and ends of the search, say), the
    points at which the ray from the candidate to each of them leaves the ball

    .. math:: \{x : \|x - x_t\| \le h\},

    and those at which the axes leave it. Where the function falls off around its lone optimum, the
    best point outside the ball is on the sphere.

    Args:
        acq_function: Maps ``b x 1 x d`` to ``b``.
        optima: Local optima; the candidate is the first.
        bounds: ``2 x d`` finite lower and upper bounds.
        bandwidth: Least distance from the candidate, in the unit cube.
        candidates: ``m x d`` further points, in the unit of the bounds.
        num_candidates: Number of Sobol points.
        generator: Source of the Sobol points; without one they are those of seed 0.

    Returns:
        The rival, or None if no point of the box is that far from the candidate (as with a
        bandwidth of at least 1 and a candidate in a corner of a one-dimensional box): then the
        candidate is, at this resolution, the whole box, and has no rival at all.

    Raises:
        NumericalError: If the acquisition function is finite at no candidate.
        InvalidShapeError: If shapes do not fit each other.
        InvalidArgumentError: If an option is out of range.

    Example:
        >>> def peak(X):
        ...     return -(X - 0.5).square().sum((-1, -2))
        >>> bounds = torch.tensor([[0.0, 0.0], [1.0, 1.0]])
        >>> rival = far_rival(peak, local_optima(peak, bounds), bounds, bandwidth=0.2)
        >>> round(rival.value.item(), 3)
        -0.04
    """
    check_positive("bandwidth", bandwidth)
    lower, width = _check_bounds(bounds)
    candidate = ((optima.points[..., 0, :] - lower) / width).clamp(0.0, 1.0)
    farthest = (candidate < 0.5).to(candidate)  # the corner across
    if torch.linalg.vector_norm(farthest - candidate) <= bandwidth:
        return None
    around = [_draw(num_candidates, "sobol", bounds, generator), farthest[None]]
    if candidates is not None:
        fits = candidates.dim() == 2 and candidates.shape[-1] == len(lower)
        expected = f"shape (m, {len(lower)})"
        check(fits, "candidates", expected, tuple(candidates.shape), InvalidShapeError)
        around.append(((candidates.to(bounds) - lower) / width).clamp(0.0, 1.0))
    far = _beyond(candidate, torch.cat(around), bandwidth)
    points = _outside(far, lower, width, bounds)
    with torch.no_grad():
        values = acq_function(points.unsqueeze(-2))
    finite = values.isfinite()
    if not finite.any():
        raise NumericalError(
            "acq_function", "a finite value far from the candidate", values[0].item()
        )
    best = values.masked_fill(~finite, -torch.inf).argmax()
    return Rival(points[best], values[best])


def _beyond(
    candidate: Tensor,  # shape: (d,)
    around: Tensor,  # shape: (m, d)
    bandwidth: float,
) -> Tensor:  # shape: (c, d), all farther from the candidate than the bandwidth
    # A little outside the sphere, so that rounding cannot bring a point back in.
    radius = bandwidth * (1 + torch.finfo(around.dtype).eps ** 0.5)
    axes = torch.eye(len(candidate), dtype=around.dtype, device=around.device)
    directions = around - candidate
    length = torch.linalg.vector_norm(directions, dim=-1, keepdim=True)
    # The box is convex: the ray to a point in it is in it until it gets there.
    on_sphere = candidate + directions * (radius / length)
    on_axes = torch.cat([candidate + radius * axes, candidate - radius * axes]).clamp(0.0, 1.0)
    points = torch.cat([around, on_sphere[(length > radius).squeeze(-1)], on_axes])
    return points[torch.linalg.vector_norm(points - candidate, dim=-1) > bandwidth]


def _check_bounds(bounds: Tensor) -> tuple[Tensor, Tensor]:
    fits = bounds.dim() == 2 and bounds.shape[0] == 2 and bounds.numel() > 0
    fits = fits and bounds.is_floating_point()
    expected = "a floating-point 2 x d tensor"
    check(fits, "bounds", expected, tuple(bounds.shape), InvalidShapeError)
    lower, upper = bounds
    width = upper - lower
    good = bool((width.isfinite() & (width > 0)).all())
    check(good, "bounds", "finite, lower < upper", bounds.tolist(), InvalidArgumentError)
    return lower, width


def _outside(unit: Tensor, lower: Tensor, width: Tensor, bounds: Tensor) -> Tensor:
    return (lower + width * unit).clamp(bounds[0], bounds[1])  # rounding may have left the box


def _draw(
    number: int, starts: Starts, bounds: Tensor, generator: torch.Generator | None
) -> Tensor:  # shape: (number, d), in the unit cube
    check_count("number of starts", number)
    check(starts in ("sobol", "uniform"), "starts", "'sobol' or 'uniform'", starts)
    dimension = bounds.shape[-1]
    if generator is None:
        generator = generator_of(0, bounds.device)
    check_generator(generator)
    if number == 0:  # SobolEngine cannot draw nothing
        return bounds.new_empty(0, dimension)
    if starts == "uniform":
        draws = torch.rand(
            number, dimension, generator=generator, dtype=bounds.dtype, device=generator.device
        )
        return draws.to(bounds.device)
    # SobolEngine knows seeds only, so the generator gives it one.
    seed = torch.randint(2**31 - 1, (), generator=generator, device=generator.device)
    engine = SobolEngine(dimension, scramble=True, seed=int(seed))
    return engine.draw(number, dtype=bounds.dtype).to(bounds.device)
