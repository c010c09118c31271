"""The record of a reward, and a heuristic that recognizes losses."""

import math
from collections.abc import Sequence
from statistics import median
from typing import Any

from botorch_costly.errors import check, check_nonnegative
from botorch_costly.plain import as_number
from botorch_costly.records import Decision, Observation

_FEWEST, _SKEWED = (
    5,
    3.0,
)  # least number of values; least ratio of the upper to the lower tail of losses


LOSSES = (
    "The values %s look like losses, and the largest counts as best: losses need maximize=False."
)


def seem_losses(values: Sequence[float]) -> bool:
    """Return whether values look like losses: positive, some above 1, with a far longer upper tail.

    Example:
        >>> seem_losses([0.4, 0.5, 0.6, 2.3, 9.0]), seem_losses([0.1, 0.8, 0.85, 0.9, 0.91])
        (True, False)
    """
    if len(values) < _FEWEST:
        return False
    middle, low, high = median(values), min(values), max(values)
    return low > 0 and high > 1 and high - middle > _SKEWED * (middle - low) > 0


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
