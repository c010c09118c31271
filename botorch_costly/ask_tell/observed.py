"""What was told of a decision, as a record."""

import math

from botorch_costly.plain import as_number
from botorch_costly.records import Decision, Observation


def observation_of(
    decision: Decision, reward: object, *, seconds: float | None = None
) -> Observation:
    """Return the record of a reward, of a failed query, or of a query without a reward yet.

    Args:
        decision: That was played.
        reward: Larger or smaller is better, as the tuner has it. One that is not finite is a failed
            query; ``None`` is none yet.
        seconds: What the query cost, if known.

    Raises:
        InvalidArgumentError: If the reward is no number, or the seconds are negative.

    Example:
        >>> decision = Decision(3, {"lr": 0.1}, query=True, reason="rivals")
        >>> observation_of(decision, 2).reward, observation_of(decision, math.nan).failed
        (2.0, True)
    """
    number = None if reward is None else as_number("reward", reward)
    failed = number is not None and not math.isfinite(number)
    finite = None if failed else number
    return Observation(decision.round, decision.config, finite, failed=failed, seconds=seconds)
