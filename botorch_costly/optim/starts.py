"""Maps between a box and the unit cube, and the starts of a search in the cube."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_costly.device import moved
from botorch_costly.errors import InvalidArgumentError, InvalidShapeError, check, check_count
from botorch_costly.optim.smooth import InBox, SmoothFunction
from botorch_costly.randomness import check_generator, generator_of

Starts = Literal["sobol", "uniform"]


class CheckedBox(NamedTuple):
    """A box in the dtype and on the device of a search."""

    lower: Tensor  # shape: (d,)
    upper: Tensor  # shape: (d,)
    width: Tensor  # shape: (d,)
    is_unit_cube: bool


_ORDERED = 128  # points with a place in an order that spreads them


def box_of(bounds: Tensor, like: Tensor) -> CheckedBox:
    """Return the box in the dtype and on the device of points, without waiting if it is on the CPU.

    Raises:
        InvalidShapeError: If the bounds are no floating-point ``2 x d`` tensor.
        InvalidArgumentError: If a bound is not finite, or a lower bound is not below its upper bound.
    """
    fits = bounds.dim() == 2 and bounds.shape[0] == 2 and bounds.numel() > 0
    fits = fits and bounds.is_floating_point()
    expected = "a floating-point 2 x d tensor"
    check(fits, "bounds", expected, tuple(bounds.shape), InvalidShapeError)
    lows, highs = bounds.tolist()
    widths = [high - low for low, high in zip(lows, highs, strict=True)]
    good = all(0 < width <= torch.finfo(bounds.dtype).max for width in widths)
    check(good, "bounds", "finite, lower < upper", bounds, InvalidArgumentError)
    lower, upper = moved(bounds, like)
    return CheckedBox(lower, upper, upper - lower, not any(lows) and set(highs) == {1.0})


def unit_cube(like: Tensor, device: str | torch.device | None = None) -> Tensor:
    """Return the bounds of the unit cube of points, ``2 x d``, on their device or another one."""
    ends = torch.arange(2, dtype=like.dtype, device=device or like.device)
    return ends.unsqueeze(-1).expand(2, like.shape[-1])


def from_unit_cube(unit: Tensor, box: CheckedBox) -> Tensor:
    """Return points of the unit cube in the unit of the bounds."""
    if box.is_unit_cube:
        return unit
    return (box.lower + box.width * unit).clamp(box.lower, box.upper)  # rounding may leave the box


def to_unit_cube(points: Tensor, box: CheckedBox) -> Tensor:
    """Return points in the unit of the bounds as points of the unit cube."""
    return points if box.is_unit_cube else (points - box.lower) / box.width


def over_unit_cube(function: SmoothFunction, box: CheckedBox) -> SmoothFunction:
    """Return a function over a box as one over the unit cube: the function itself if the box is that."""
    return function if box.is_unit_cube else InBox(function, box.lower, box.width)


def clamped_to_unit_cube(name: str, points: Tensor, box: CheckedBox) -> Tensor:
    """Return ``m x d`` points in the unit of the bounds as points of the unit cube, clamped.

    Raises:
        InvalidShapeError: If the points, an argument called ``name``, have another shape.
    """
    dim = len(box.lower)
    fits = points.dim() == 2 and points.shape[-1] == dim
    check(fits, name, f"shape (m, {dim})", tuple(points.shape), InvalidShapeError)
    return to_unit_cube(points.to(box.lower), box).clamp(0.0, 1.0)


def draw_starts(
    number: int, starts: Starts, bounds: Tensor, generator: torch.Generator | None
) -> Tensor:  # shape: (number, d), in the unit cube
    """Draw starts with a generator, or with seed 0 if there is none.

    Raises:
        InvalidArgumentError: If ``number`` is not a count, or the kind of starts is unknown.
    """
    check_count("number of starts", number)
    check(starts in ("sobol", "uniform"), "starts", "'sobol' or 'uniform'", starts)
    dimension = bounds.shape[-1]
    if generator is None:
        generator = generator_of(0, bounds.device)
    check_generator(generator)
    if number == 0:  # SobolEngine cannot draw an empty set
        return bounds.new_empty(0, dimension)
    if starts == "uniform":
        draws = torch.rand(
            number, dimension, generator=generator, dtype=bounds.dtype, device=generator.device
        )
        return moved(draws, bounds)
    # SobolEngine takes a seed, not a generator. To shift one and the same set at random would take 40
    # operations less; but then runs of 150 rounds in five variables had 36 queries in place of 50.
    seed = torch.randint(2**31 - 1, (), generator=generator, device=generator.device)
    engine = SobolEngine(dimension, scramble=True, seed=int(seed))
    return moved(engine.draw(number, dtype=bounds.dtype), bounds)


def spread_order(points: Tensor) -> Tensor:
    """Return the place of each point, ``(n, d)``, in an order of which any first part is spread over all.

    The first is the one nearest the centre, and each of the next is the farthest from those before it;
    the order of points after the first ``_ORDERED`` is that of the list.
    """
    n, number = len(points), min(len(points), _ORDERED)
    order, nearest = torch.full((n,), n), torch.full((n,), torch.inf, dtype=points.dtype)
    pick = (points - points.mean(0)).square().sum(-1).argmin()
    for place in range(number):
        order[pick] = place
        nearest = nearest.minimum((points - points[pick]).square().sum(-1))
        pick = nearest.argmax()
    order[order == n] = torch.arange(number, n)
    return order
