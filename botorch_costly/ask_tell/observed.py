"""The record of a reward, and a heuristic that recognizes losses."""

import math
from collections.abc import Sequence
from statistics import median
from typing import Any

import torch

from botorch_costly.errors import check, check_nonnegative
from botorch_costly.numerics.robust import rank_correlation
from botorch_costly.plain import as_number
from botorch_costly.records import Decision, Observation

_FEWEST = 5  # values
_SKEWED = 3.0  # least ratio of the upper to the lower tail of losses
_FLOOR, _AT_FLOOR = 1e-3, 0.05  # width of a floor, in lower tails, and the share of values there
_RISING = 0.3  # rank correlation of values with fidelities from which on they are rewards

LOSSES = (
    "The values %s look like losses, and the largest counts as best: losses need maximize=False."
)


def seem_losses(values: Sequence[float], shares: Sequence[float] | None = None) -> bool:
    """Return whether values look like losses: positive, some above 1, with a far longer upper tail.

    Rewards such as ``-log(error)`` may have that shape. They are told by two signs: failures share the
    least value, that of chance, where those of losses are scattered at the top; and a reward rises with
    the fidelity, where a loss falls.

    Args:
        values: Finite values, in any order.
        shares: Fidelity of each, as a share of the target; None where all are equal.

    Example:
        >>> seem_losses([0.4, 0.5, 0.6, 2.3, 9.0]), seem_losses([0.1, 0.8, 0.85, 0.9, 0.91])
        (True, False)
        >>> seem_losses([0.11, 0.11, 0.5, 2.3, 4.6])  # -log(error), of ten classes
        False
    """
    if len(values) < _FEWEST:
        return False
    middle, low, high = median(values), min(values), max(values)
    is_skewed = low > 0 and high > 1 and high - middle > _SKEWED * (middle - low) > 0
    floor = low + _FLOOR * (middle - low)
    share_a_floor = sum(value <= floor for value in values) >= max(2, _AT_FLOOR * len(values))
    return is_skewed and not share_a_floor and not _rise(values, shares or [])


def _rise(values: Sequence[float], shares: Sequence[float]) -> bool:
    """Return whether values rise with their fidelities; False without any, or if all are equal."""
    if not len(set(shares)) > 1:
        return False
    rows = (torch.tensor(one, dtype=torch.float64) for one in (values, shares))
    return rank_correlation(*rows) > _RISING


def observation_of(
    decision: Decision,
    reward: object,
    *,
    seconds: float | None = None,
    variance: object = 0.0,
    metric: object = None,
    largest: float = math.inf,
) -> Observation:
    """Return the record of a reward, of a failed query, or of a query without a reward yet.

    Args:
        decision: Decision that was played.
        reward: The reward; a failed query if it is not finite, ``None`` if there is none yet.
        seconds: Seconds of the query, if known.
        variance: Variance of the reward beyond that of a whole query, in its units squared.
        metric: The metric as it was measured, for logs; ``None`` if it is not told.
        largest: Largest absolute value of a finite reward, and of its standard deviation.

    Raises:
        InvalidArgumentError: If the reward or the metric is no number, or the reward too large, the
            seconds are negative, or the variance is no finite number of at least 0.

    Example:
        >>> decision = Decision(3, {"lr": 0.1}, query=True, reason="rivals")
        >>> observation_of(decision, 2).reward, observation_of(decision, math.nan).failed
        (2.0, True)
    """
    number = None if reward is None else as_number("reward", reward)
    failed = number is not None and not math.isfinite(number)
    finite = None if failed else number
    if finite is not None:
        expected = f"a number of at most {largest:.1e} in size, NaN or an infinity"
        check(abs(finite) <= largest, "reward", expected, reward)
    spread = check_nonnegative("variance", as_number("variance", variance))
    expected = f"a variance whose root is at most {largest:.1e}"
    check(math.sqrt(spread) <= largest, "variance", expected, variance)
    measured = None if metric is None else as_number("metric", metric)
    named: dict[str, Any] = {"failed": failed, "seconds": seconds, "variance": spread}
    return Observation(decision.round, decision.config, finite, **named, metric=measured)
