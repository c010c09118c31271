"""Maps between a box and the unit cube, and the starts of a search in the cube."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_costly.device import moved
from botorch_costly.errors import InvalidArgumentError, InvalidShapeError, check, check_count
from botorch_costly.randomness import check_generator, generator_of

Starts = Literal["sobol", "uniform"]


class CheckedBox(NamedTuple):
    """A box in the dtype and on the device of a search."""

    lower: Tensor  # shape: (d,)
    upper: Tensor  # shape: (d,)
    width: Tensor  # shape: (d,)


_ORDERED = 128  # points with a place in an order that spreads them


def check_bounds(bounds: Tensor) -> tuple[Tensor, Tensor]:
    """Return the lower bounds and the widths of a box, checked without waiting if they are on the CPU.

    Raises:
        InvalidShapeError: If the bounds are no floating-point ``2 x d`` tensor.
        InvalidArgumentError: If a bound is not finite, or a lower bound is not below its upper bound.
    """
    fits = bounds.dim() == 2 and bounds.shape[0] == 2 and bounds.numel() > 0
    fits = fits and bounds.is_floating_point()
    expected = "a floating-point 2 x d tensor"
    check(fits, "bounds", expected, tuple(bounds.shape), InvalidShapeError)
    lower, upper = bounds
    width = upper - lower
    good = bool((width.isfinite() & (width > 0)).all())
    check(good, "bounds", "finite, lower < upper", bounds, InvalidArgumentError)
    return lower, width


def unit_cube(like: Tensor, device: str | torch.device | None = None) -> Tensor:
    """Return the bounds of the unit cube of points, ``2 x d``, on their device or another one."""
    zeros = torch.zeros(like.shape[-1], dtype=like.dtype, device=device or like.device)
    return torch.stack([zeros, torch.ones_like(zeros)])


def box_at(bounds: Tensor, like: Tensor) -> CheckedBox:
    """Return the box in the dtype and on the device of points."""
    lower, upper = moved(bounds, like)
    return CheckedBox(lower, upper, upper - lower)


def from_unit_cube(unit: Tensor, box: CheckedBox) -> Tensor:
    """Return points of the unit cube in the unit of the bounds."""
    return (box.lower + box.width * unit).clamp(box.lower, box.upper)  # rounding may leave the box


def to_unit_cube(name: str, points: Tensor, box: CheckedBox) -> Tensor:
    """Return ``m x d`` points in the unit of the bounds as points of the unit cube, clamped.

    Raises:
        InvalidShapeError: If the points, an argument called ``name``, have another shape.
    """
    dim = len(box.lower)
    fits = points.dim() == 2 and points.shape[-1] == dim
    check(fits, name, f"shape (m, {dim})", tuple(points.shape), InvalidShapeError)
    return ((points.to(box.lower) - box.lower) / box.width).clamp(0.0, 1.0)


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
        return draws.to(bounds.device)
    # SobolEngine takes a seed, not a generator.
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
