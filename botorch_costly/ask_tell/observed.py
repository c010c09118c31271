"""What was told of a decision, as a record."""

import math

from botorch_costly.errors import check
from botorch_costly.plain import as_number
from botorch_costly.records import Decision, Observation


def observation_of(
    decision: Decision,
    reward: object,
    *,
    seconds: float | None = None,
    largest: float = math.inf,
) -> Observation:
    """Return the record of a reward, of a failed query, or of a query without a reward yet.

    Args:
        decision: That was played.
        reward: Larger or smaller is better, as the tuner has it. One that is not finite is a failed
            query; ``None`` is none yet.
        seconds: What the query cost, if known.
        largest: Size of a finite reward that can be computed with.

    Raises:
        InvalidArgumentError: If the reward is no number, or larger, or the seconds are negative.

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
    return Observation(decision.round, decision.config, finite, failed=failed, seconds=seconds)
