"""The bounds of a hyperparameter, and the limits that a trust region sets within them over the rounds."""

import math
import sys
from collections.abc import Mapping, Sequence
from statistics import median_low
from typing import NamedTuple

from botorch_costly.parameters import Parameter
from botorch_costly.plotting.bands import are_numbers

_FAR = 1000.0  # times the median size; a loss beyond is that of a network that has diverged
_WIDE = 30.0  # ratio of the largest to the smallest value from which an axis is logarithmic
REGION = "#DDDDDD"  # of what lies outside of the trust region
BOUND = "#777777"
MARGIN = 0.05  # of the axis, beyond either bound
_LEAST, _MOST = sys.float_info.min, sys.float_info.max

Limits = Sequence[tuple[int, Mapping[str, tuple[float, float]]]]
"""First round of each trust region, and its ends by name, as ``OnlineTuner.trust_regions`` returns."""


class Steps(NamedTuple):
    """Limits of a hyperparameter as steps, each of which holds until the next one begins."""

    rounds: list[float]
    low: list[float]
    high: list[float]


def bounds_of(parameter: Parameter | None) -> tuple[float, float] | None:
    """Return the bounds of a parameter whose values are numbers; None for others."""
    low, high = getattr(parameter, "low", None), getattr(parameter, "high", None)
    if low is None or high is None or not are_numbers((low, high)):
        return None
    return float(low), float(high)


def around(bounds: tuple[float, float], *, log: bool) -> tuple[float, float]:
    """Return the ends of an axis that shows both bounds with a margin.

    Example:
        >>> around((0.0, 1.0), log=False)
        (-0.05, 1.05)
    """
    low, high = bounds
    if log and high > 0:
        # There is no 0 on the axis, which then shows the upper bound alone.
        low = low if low > 0 else high
        margin = MARGIN * (math.log10(high) - math.log10(low))  # the ratio may overflow
        return max(low * 10**-margin, _LEAST), min(high * 10**margin, _MOST)
    margin = MARGIN * high - MARGIN * low
    return max(low - margin, -_MOST), min(high + margin, _MOST)


class Span(NamedTuple):
    """The axis of a metric: whether it is logarithmic, and the largest value that it shows."""

    log: bool
    most: float


def span_of(values: Sequence[float]) -> Span:
    """Return the axis of a metric, on which one value of a diverged network does not hide all others.

    Example:
        >>> span_of([0.5, 0.4, 4e28]), span_of([9.0, 0.4, 0.2]), span_of([-1.0, 1.0])
        (Span(log=False, most=0.5), Span(log=True, most=9.0), Span(log=False, most=1.0))
        >>> span_of([0.0, 0.4, 0.3, 4e28]), span_of([-2.0, 0.0, 1.0])  # such as a loss of exactly 0
        (Span(log=False, most=0.4), Span(log=False, most=1.0))
    """
    sizes = [abs(value) for value in values if value != 0]
    usual = median_low(sizes) if sizes else 0.0
    most = max(value for value in values if value <= _FAR * usual)
    least = min(values)
    return Span(log=least > 0 and most > _WIDE * least, most=most)


def steps_of(limits: Limits, name: str, last: float) -> Steps | None:
    """Return the limits of a hyperparameter until a last round; None if it has none.

    Example:
        >>> steps_of([(0, {"lr": (0.1, 0.3)}), (4, {"lr": (0.1, 0.9)})], "lr", 8)
        Steps(rounds=[0, 4, 8], low=[0.1, 0.1, 0.1], high=[0.3, 0.9, 0.9])
    """
    known = [(round, *region[name]) for round, region in limits if name in region]
    if not known:
        return None
    rounds, low, high = map(list, zip(*known, strict=True))
    return Steps([*rounds, last], [*low, low[-1]], [*high, high[-1]])
