"""The Gittins index of a Gaussian box, by a search over rewards and an integral."""

import math
from functools import cache


@cache
def _midpoints(steps, width):
    """Standardized values, and what each counts for."""
    step = 2 * width / steps
    values = [-width + (i + 0.5) * step for i in range(steps)]
    return [(z, math.exp(-0.5 * z * z) / math.sqrt(2 * math.pi) * step) for z in values]


def excess(mean, sd, threshold, steps=20_000, width=12.0):
    """``E max(y - threshold, 0)`` by the midpoint rule."""
    points = _midpoints(steps, width)
    return sum(max(mean + sd * z - threshold, 0.0) * weight for z, weight in points)


def index(mean, sd, price):
    """The threshold at which the excess is the price."""
    low, high = mean - price - 1.0, mean + 12 * sd
    for _ in range(40):
        middle = (low + high) / 2
        if excess(mean, sd, middle, steps=4_000) > price:
            low = middle
        else:
            high = middle
    return (low + high) / 2
