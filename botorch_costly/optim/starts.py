"""A box, the unit cube that stands for it, and the starts of a search in there."""

from typing import Literal, NamedTuple

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_costly.device import moved
from botorch_costly.errors import InvalidArgumentError, InvalidShapeError, check, check_count
from botorch_costly.randomness import check_generator, generator_of

Starts = Literal["sobol", "uniform"]


class CheckedBox(NamedTuple):
    """A box where it is computed in."""

    lower: Tensor  # shape: (d,)
    upper: Tensor  # shape: (d,)
    width: Tensor  # shape: (d,)


def check_bounds(bounds: Tensor) -> tuple[Tensor, Tensor]:
    """Return the lower bounds and the widths of a box; bounds on the CPU are not waited for.

    Raises:
        InvalidShapeError: If the bounds are no floating-point ``2 x d`` tensor.
        InvalidArgumentError: If they are not finite, or a lower one is not below its upper one.
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


def box_at(bounds: Tensor, like: Tensor) -> CheckedBox:
    """Return the box in the dtype and on the device of points."""
    lower, upper = moved(bounds, like)
    return CheckedBox(lower, upper, upper - lower)


def outside(unit: Tensor, box: CheckedBox) -> Tensor:
    """Return points of the unit cube in the unit of the bounds."""
    # Rounding may have left the box.
    return (box.lower + box.width * unit).clamp(box.lower, box.upper)


def drawn_from(
    number: int, starts: Starts, bounds: Tensor, generator: torch.Generator | None
) -> Tensor:  # shape: (number, d), in the unit cube
    """Draw starts; without a generator they are those of seed 0.

    Raises:
        InvalidArgumentError: If the number is none, or the kind of starts unknown.
    """
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
    return moved(engine.draw(number, dtype=bounds.dtype), bounds)
