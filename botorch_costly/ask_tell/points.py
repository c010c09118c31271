"""Encoded configurations: those that have been asked for, one of equal ones, and draws around them."""

import torch
from torch import Tensor

from botorch_costly.errors import HorizonExceededError, check
from botorch_costly.space import SearchSpace

SAME = 1e-9  # distance of two encodings of one configuration of a list


def among(points: Tensor, asked: Tensor, distance: float) -> Tensor:
    """Return which points lie within a distance of one asked for, bool, shape ``(m,)``."""
    return (torch.cdist(points, asked, p=torch.inf) <= distance).any(-1)


def unasked(listed: Tensor, asked: Tensor) -> Tensor:
    """Return which points of a list have not been asked for, bool, shape ``(n,)``.

    Raises:
        HorizonExceededError: If all have been asked for.
    """
    left, count = ~among(listed, asked, SAME), len(listed)
    expected = f"at most {count} evaluations, all that are listed"
    check(bool(left.any()), "ask", expected, count + 1, HorizonExceededError)
    return left


def any_largest(values: Tensor, generator: torch.Generator) -> Tensor:
    """Return the index of a largest value, drawn among equal ones, shape ``(1,)``.

    All values of an acquisition function may be equal: the first point must not always win.
    """
    best = (values == values.max()).nonzero().squeeze(-1)
    drawn = torch.randint(len(best), (1,), generator=generator, device=generator.device)
    return best[drawn.to(best.device)]


def perturbed(
    space: SearchSpace, points: Tensor, distance: float, generator: torch.Generator
) -> Tensor:
    """Return a normally distributed configuration around each encoded one, same shape.

    The generator is on the CPU, and the distance is the standard deviation in the unit cube.
    """
    noise = torch.randn(points.shape, generator=generator, dtype=torch.float64).to(points)
    return space.round((points + distance * noise).clamp(0, 1))
