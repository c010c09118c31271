"""Whether a learning rate still rises by itself, as in a warm-up: the rate of the optimizer is read.

In a warm-up all rates act as smaller ones, so that the largest one tried looks best.
"""

import math
from collections.abc import Iterable
from typing import Any

from torch import Tensor
from torch.optim import Optimizer

from botorch_costly.parameters import Scheduled
from botorch_costly.space import SearchSpace

_STEADY = 0.01  # growth in a round up to which a rate counts as steady
_LONGEST = 0.2  # share of the run after which the rate is searched even if it still rises


def rate_of(parts: Iterable[Any]) -> float:
    """Return the present learning rate of the first optimizer among the parts of a run.

    NaN if there is no optimizer, or to read its rate would wait for an accelerator.
    """
    optimizer = next((part for part in parts if isinstance(part, Optimizer)), None)
    rate = None if optimizer is None else optimizer.param_groups[0].get("lr")
    if isinstance(rate, Tensor):
        return math.nan if rate.device.type != "cpu" else float(rate)
    return float(rate) if isinstance(rate, int | float) else math.nan


class WarmUp:
    """Follows the learning rate of an optimizer round by round, while one configuration is played.

    Args:
        before: Rate after the round before the present one; NaN if it is not known.
    """

    def __init__(self, before: float = math.nan) -> None:
        self.before = before

    def after(self, rounds: int, rate: float) -> "WarmUp":
        """Return the warm-up with the rate after so many rounds as the one to compare with next."""
        # Before the first round the optimizer has a rate of its own, which is not tuned.
        return WarmUp(rate if rounds > 0 else math.nan)

    def goes_on(self, rounds: int, rate: float, horizon: int) -> bool | None:
        """Return whether the rate rose in the latest round, and not for too long; None if not known.

        Args:
            rounds: Rounds so far.
            rate: Rate after them; NaN if it is not known.
            horizon: Rounds of the run.
        """
        if rounds >= _LONGEST * horizon:
            return False
        known = not (math.isnan(rate) or math.isnan(self.before))
        return rate > (1 + _STEADY) * self.before if known else None


def plays_a_schedule(space: SearchSpace) -> bool:
    """Return whether a learning rate of a space is played as a course over the run."""
    parameters = dict(space.parameters)
    rates = [parameters[name] for name in space.rates]
    return any(not isinstance(rate, Scheduled) or rate.base != "constant" for rate in rates)
