r"""Evidence about the mean of a finite population, from values drawn one after another: test martingales.

A population of ``N`` values in ``[lower, upper]`` is drawn without replacement. If its mean is at most
``m``, the expectation of the value ``t`` given the earlier ones is at most

    m_t = (N m - sum_{i<t} x_i) / (N - t + 1)                              section 5 of the reference

so for bets ``0 <= l_t <= 1 / (m_t - lower)`` that depend on earlier values alone the capital

    K_t = prod_{i<=t} (1 + l_i (x_i - m_i))                                (1)

is a nonnegative supermartingale that starts at 1. It exceeds ``1 / alpha`` *at any time* with a
probability of at most ``alpha`` (Ville), so one may look after each value, and stop when the evidence is
sufficient. The bets approximate Kelly's, ``mu / (sigma^2 + mu^2)``, with ``mu`` the distance of the
running mean from ``m_t`` (the reference's aGRAPA), up to a share of the largest bet.

References:
    I. Waudby-Smith, A. Ramdas. Estimating means of bounded random variables by betting.
    JRSS B 86, 2024.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor

_LARGEST = 0.75  # share of the bet that could lose all capital
PILOT = 32  # first values, which choose the bounds of values that have none, and are not bet on
_BOUND = 3.0  # such a bound, in units of the largest distance in the pilot
_POINTS, _ROUNDS = 32, 3  # nulls that are tested at once, and how often the grid is refined


def log_capital(
    values: Tensor,  # in the order of drawing, shape: (*batch, n)
    null: Tensor | float,  # the hypothesis: the mean is at most this, shape: (*batch,)
    *,
    population: int,  # N, at least n
    lower: Tensor | float,  # bounds of the values, shape: (*batch,)
    upper: Tensor | float,
    pilot: int = 0,  # first values that are not bet on; they may have chosen the bounds
) -> Tensor:  # shape: (*batch, n)
    """Return the logarithm of the capital against "the mean is at most ``null``" after each value.

    It is infinite once the values drawn exclude the hypothesis whatever the remaining ones are.
    """
    null = torch.as_tensor(null, dtype=values.dtype, device=values.device)[..., None]
    lower = torch.as_tensor(lower, dtype=values.dtype, device=values.device)[..., None]
    upper = torch.as_tensor(upper, dtype=values.dtype, device=values.device)[..., None]
    n = values.shape[-1]
    before = torch.arange(n, dtype=values.dtype, device=values.device)  # values drawn earlier
    total = _before(values)
    expected = (population * null - total) / (population - before)
    mean = (0.5 * (lower + upper) + total) / (before + 1)
    squares = _before((values - _inclusive_mean(values, lower, upper)).square())
    variance = ((0.5 * (upper - lower)).square() + squares) / (before + 1)
    ahead = mean - expected
    kelly = ahead / (variance + ahead.square())
    largest = _LARGEST / (expected - lower).clamp_min(torch.finfo(values.dtype).tiny)
    bet = torch.where(before >= pilot, kelly.clamp_min(0.0).minimum(largest), 0.0)
    log = torch.log1p(bet * (values - expected)).cumsum(-1)
    excluded = (total + values + (population - before - 1) * lower) > population * null
    return torch.where(excluded.cummax(-1).values, torch.inf, log)


def _before(values: Tensor) -> Tensor:
    """Return the sum of the values before each, the same shape."""
    return values.cumsum(-1) - values


def _inclusive_mean(values: Tensor, lower: Tensor, upper: Tensor) -> Tensor:
    """Return the mean of the values up to each, shrunk towards the middle of the bounds."""
    count = torch.arange(1, values.shape[-1] + 1, dtype=values.dtype, device=values.device)
    return (0.5 * (lower + upper) + values.cumsum(-1)) / (count + 1)


def bound_of(distances: Tensor) -> float:
    """Return the bound at which distances ``(n,)`` of values without one are clipped, by the pilot."""
    return _BOUND * float(distances[:PILOT].abs().max())


def confidence_interval(
    values: Tensor,  # in the order of drawing, shape: (n,)
    *,
    population: int,  # N, larger than n
    level: float,  # largest probability that the mean of the population is outside
    bound: float | None = None,  # largest distance of two values of the population, if it is known
) -> tuple[float, float]:
    """Return an interval that holds the mean of the population, valid whenever drawing ends.

    Without a bound, values are clipped at three times the largest distance from the median in the pilot;
    if these are all equal, nothing is known, and the interval is infinite.
    """
    values = values.double()
    center = values[:PILOT].median()
    if bound is None:
        bound = bound_of(values - center)
    if bound == 0:
        return -math.inf, math.inf
    clipped = (values - center).clamp(-bound, bound)
    sides = []
    for sign in (1.0, -1.0):

        def is_refuted(nulls: Tensor, signed: Tensor = sign * clipped) -> Tensor:
            capital = log_capital(
                signed.expand(len(nulls), -1),
                nulls,
                population=population,
                lower=-bound,
                upper=bound,
                pilot=min(PILOT, len(values)),
            )
            return capital.amax(-1) >= -math.log(level / 2)

        sides.append(sign * _largest_refuted(is_refuted, bound) + float(center))
    return sides[0], sides[1]


def _largest_refuted(is_refuted: Callable[[Tensor], Tensor], bound: float) -> float:
    """Return the largest of the nulls in ``[-bound, bound]`` that are refuted from below on."""
    low, high = -bound, bound
    for _ in range(_ROUNDS):
        nulls = torch.linspace(low, high, _POINTS, dtype=torch.float64)
        count = int(is_refuted(nulls).long().cumprod(0).sum())
        low, high = float(nulls[max(count - 1, 0)]), float(nulls[min(count, _POINTS - 1)])
    return low
