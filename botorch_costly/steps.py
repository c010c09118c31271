"""Equal steps between two bounds, in the decimal digits that they were given in."""

import math
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache

import torch
from torch import Tensor

from botorch_costly.errors import InvalidSpaceError, check

_MOST = 2**20
_OFF = 1e-9  # of a step, by which a number may miss it
_RESOLVED = 1e-6  # of a step, the largest distance of floating-point numbers there


@lru_cache(maxsize=None, typed=True)  # the steps of 0 and 0.0 are of two kinds
def steps_of(low: float, high: float, step: float) -> tuple[float, ...]:
    """Return the steps from ``low`` to ``high``, both included.

    Example:
        >>> steps_of(0.1, 0.4, 0.1)
        (0.1, 0.2, 0.3, 0.4)
    """
    first, each, count = Decimal(repr(low)), Decimal(repr(step)), round((high - low) / step)
    return (*(type(low)(first + k * each) for k in range(count)), high)


@lru_cache(maxsize=None, typed=True)  # the steps of 0 and 0.0 are of two kinds
def tensor_of_steps(low: float, high: float, step: float, device: torch.device) -> Tensor:
    """Return the steps as float64 on a device, shape ``(n,)``; do not write to them."""
    return torch.tensor(steps_of(low, high, step), dtype=torch.float64, device=device)


def check_steps(name: str, low: float, high: float, step: float, *, log: bool) -> None:
    """Check that steps lead from ``low`` to ``high``.

    Raises:
        InvalidSpaceError: If they do not, the scale is logarithmic, or there are too many of them.
    """
    within = f"a number above 0 and at most {high - low:.9g}, which is high - low"
    check(0 < step <= high - low, name, within, step, InvalidSpaceError)
    linear = "None with log=True: steps are equal on a linear scale (a Choice has any values)"
    check(not log, name, linear, step, InvalidSpaceError)
    count = (high - low) / step
    check(count <= _MOST, name, f"at most {_MOST} steps", step, InvalidSpaceError)
    resolved = math.ulp(max(abs(low), abs(high))) <= _RESOLVED * step
    check(resolved, name, "one that float64 resolves between the bounds", step, InvalidSpaceError)
    last = low + math.floor(count + _OFF) * step
    expected = f"one that leads from low to high, such as with high={last:.9g}"
    whole = abs(count - round(count)) <= _OFF * max(count, 1)
    check(whole, name, expected, f"{low} to {high} by {step}", InvalidSpaceError)


def nearest_step(steps: Sequence[float], number: float) -> tuple[float, bool]:
    """Return the step nearest to a number, and whether the number is that step but for its last bits.

    Example:
        >>> nearest_step((0.1, 0.2, 0.3), 0.1 + 0.2), nearest_step((0.1, 0.2, 0.3), 0.26)
        ((0.3, True), (0.3, False))
    """
    step = (steps[-1] - steps[0]) / (len(steps) - 1)  # the first one alone may be rounded far more
    place = round((number - steps[0]) / step)
    nearest = steps[min(max(place, 0), len(steps) - 1)]
    return nearest, abs(number - nearest) <= _OFF * step + 4 * math.ulp(nearest)
