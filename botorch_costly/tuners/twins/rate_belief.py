r"""The learning rate that is best at the end of a run, given short trainings and the user's own rate.

Let ``u`` be the best rate, in decades from the rate that the run was started with. Most users start near
it and some far away, so the prior is a mixture of two normal distributions,

.. math:: p(u) = (1 - w)\, N(u; 0, s_1^2) + w\, N(u; 0, s_2^2).

Short trainings say ``v``, the rate that is best after some rounds,

.. math:: v \mid u \sim N(u, \sigma^2 + m^2),

where ``m`` is how far ``v`` moved while the rounds doubled. The posterior is a mixture again. How far the
best rate moves says nothing about where the user began, so its parts are weighted as for ``m = 0``. So a
rate that is clearly found is taken from any start, and one that is still moving is hardly believed.
"""

import math
from typing import NamedTuple

from botorch_costly.tuners.twins.constants import CONSTANTS

_FAR = 3.0  # s_2, decades
_FAR_SHARE = 0.5  # w


class RateEstimate(NamedTuple):
    """An estimate of the best rate, in decades from the rate that the run was started with."""

    mean: float
    sd: float


def estimated(value: float, movement: float) -> RateEstimate:
    """Return the posterior mean and standard deviation of the best rate.

    Args:
        value: Rate that is best after some rounds, ``v``, in decades.
        movement: How far it moved while the rounds doubled, ``m``, in decades.
    """
    parts = [
        _part(share, spread**2, value, movement)
        for share, spread in ((1 - _FAR_SHARE, CONSTANTS.rate_spread), (_FAR_SHARE, _FAR))
    ]
    total = sum(weight for weight, _, _ in parts)
    mean = sum(weight * m for weight, m, _ in parts) / total
    square = sum(weight * (variance + m**2) for weight, m, variance in parts) / total
    return RateEstimate(mean, math.sqrt(max(square - mean**2, 0.0)))


def _part(share: float, prior: float, value: float, movement: float) -> tuple[float, float, float]:
    """Return weight, mean and variance of a part of the posterior, up to a factor of all weights."""
    total = prior + CONSTANTS.rate_noise**2
    weight = share * math.exp(-(value**2) / (2 * total)) / math.sqrt(total)
    noise = CONSTANTS.rate_noise**2 + movement**2
    return weight, value * prior / (prior + noise), prior * noise / (prior + noise)
