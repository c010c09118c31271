"""What a trial of Optuna came to: its value, the curve that it reported, what it cost.

What a stored trial lacks cannot be mended, so a study is not stopped for it: a warning says what to do.
"""

import logging
import math
from typing import Any

from botorch_costly.errors import check
from botorch_costly.integrations.offline import Ended, stored_number, typical_cost

# Attribute of a trial: its setting, and the seconds taken to decide on it.
CLAIM = "botorch_costly:claim"
ENDS = {"COMPLETE": "complete", "PRUNED": "stopped", "FAIL": "failed"}
_LEAST = 1e-3  # seconds of a trial
_logger = logging.getLogger(__name__)


def attribute(name: str | None) -> str | None:
    """Return the name of a user attribute with costs, or None; raise InvalidArgumentError otherwise."""
    named = name is None or (isinstance(name, str) and name != "")
    check(named, "cost", "the name of a user attribute of trials, or None", name)
    return name


class Outcomes:
    """Reads what trials came to.

    Args:
        cost: User attribute of a trial with its cost; None for its seconds.
        iterations: Parameter with the iterations of a trial that reports a curve; None without curves.
        first_step: Step of the report after the first iteration.
        priced: Whether costs count.
    """

    def __init__(
        self,
        *,
        cost: str | None = None,
        iterations: str | None = None,
        first_step: int = 0,
        priced: bool = True,
    ) -> None:
        self._priced = priced
        self._cost, self._iterations, self._first_step = cost, iterations, first_step
        self._costs: list[float] = []
        self._warned: set[str] = set()

    def of(self, trial: Any) -> Ended:
        """Return what a trial came to that is complete, pruned or failed."""
        how: Any = ENDS[trial.state.name]
        value = trial.value if how == "complete" else None
        return Ended(value, self._curve(trial), self._cost_of(trial), how)

    def _curve(self, trial: Any) -> dict[int, float]:
        """Return what was reported, by iteration; nothing of what is no iteration of the trial."""
        if self._iterations is None:
            return {}
        last, steps = trial.params.get(self._iterations, 0), trial.intermediate_values
        curve = {step + 1 - self._first_step: float(value) for step, value in steps.items()}
        within = {at: value for at, value in curve.items() if 1 <= at <= last}
        if len(within) < len(curve):
            self._warn(
                f"Trial {trial.number} of {last} iterations reports steps from {min(steps)} to "
                f"{max(steps)}; expected are steps from {self._first_step} on, one an iteration, and "
                "others are left out. The sampler's first_step= says where steps begin.",
                "steps",
            )
        return within

    def _cost_of(self, trial: Any) -> float | None:
        """Return the cost of a trial; the median of the others if it has none."""
        if not self._priced:
            return None
        if self._cost is None:
            found = self._seconds(trial)
        else:
            found = stored_number(trial.user_attrs.get(self._cost))
        if 0 < found < math.inf:
            self._costs.append(found)
            return found
        name = "the sampler's cost" if self._cost is None else repr(self._cost)
        self._warn(
            f"Trial {trial.number} has no cost above 0, and counts as dear as others. Its objective "
            f"says it by trial.set_user_attr({name}, ..).",
            "cost",
        )
        return typical_cost(self._costs)

    def _seconds(self, trial: Any) -> float:
        """Return how long a trial ran, without the time that was taken to decide on it.

        A trial that was added, and not run, ends when it begins: how long it took is unknown, NaN.
        """
        if trial.datetime_start is None or trial.datetime_complete is None:
            return math.nan
        deciding = trial.system_attrs.get(CLAIM, {}).get("seconds", 0.0)
        ran = (trial.datetime_complete - trial.datetime_start).total_seconds()
        return math.nan if ran <= 0 else max(ran - float(deciding), _LEAST)

    def _warn(self, text: str, about: str) -> None:
        """Warn once of each matter."""
        if about not in self._warned:
            self._warned.add(about)
            _logger.warning(text)
