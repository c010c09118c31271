"""Outcomes of Optuna's trials: value, reported curve and cost.

A stored trial cannot be changed, so missing values raise no error: a warning says how to store them.
"""

import logging
import math
from collections.abc import Sequence
from typing import Any

import torch

from botorch_costly.errors import check
from botorch_costly.integrations.offline import Ended, cost_of, stored_number
from botorch_costly.numerics.robust import rank_correlation

# Attribute of a trial: its setting and checkpoint, and the seconds that the decision on it took.
CLAIM = "botorch_costly:claim"
ENDS = {"COMPLETE": "complete", "PRUNED": "stopped", "FAIL": "failed"}
PAIRS = 8  # complete trials whose last reports are compared with their values
_OPPOSITE = -0.8  # rank correlation of these that earns a warning: 1 in 100 by chance
OTHER_METRIC = (
    "The values of complete trials fall where their last reports rise: report the metric that the "
    "objective returns, in the direction of the study."
)
_LEAST = 1e-3  # smallest number of seconds of a trial
_logger = logging.getLogger(__name__)


def attribute(name: str | None) -> str | None:
    """Return the name of a user attribute with costs, or None; raise InvalidArgumentError otherwise."""
    is_valid = name is None or (isinstance(name, str) and name != "")
    check(is_valid, "cost", "the name of a user attribute of trials, or None", name)
    return name


def reported(trial: Any, first_step: int) -> dict[int, float]:
    """Return the reported values of a trial by iteration, those of the trial or not, from 1 on.

    Args:
        trial: The trial.
        first_step: Step of the report after the first iteration.
    """
    steps = trial.intermediate_values.items()
    return {step + 1 - first_step: float(value) for step, value in steps}


def are_opposite(pairs: Sequence[tuple[float, float]]) -> bool:
    """Return whether values fall where last reports rise, as if these were of another metric.

    Args:
        pairs: Last report and value of each complete trial, eight or more.
    """
    reports, values = (torch.tensor(row, dtype=torch.float64) for row in zip(*pairs, strict=True))
    return rank_correlation(reports, values) <= _OPPOSITE


class Outcomes:
    """Reads the outcomes of trials.

    Args:
        cost: User attribute with the cost of a trial; None for its seconds.
        iterations: Name of the parameter with the iterations of a curve; None without curves.
        first_step: Step of the report after the first iteration.
        priced: Whether outcomes have costs.
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
        self._costs: dict[int, float] = {}  # by number of the trial
        self._warned: set[str] = set()
        self._pairs: list[tuple[float, float]] = []  # last reports and values of the first trials

    def of(self, trial: Any) -> Ended:
        """Return the outcome of a trial that is complete, pruned or failed."""
        how: Any = ENDS[trial.state.name]
        value = trial.value if how == "complete" else None
        curve = self._curve(trial)
        if value is not None and curve and len(self._pairs) < PAIRS:
            self._pairs.append((curve[max(curve)], value))
            if len(self._pairs) == PAIRS and are_opposite(self._pairs):
                self._warn(OTHER_METRIC, "metric")
        return Ended(value, curve, self._cost_of(trial), how)

    def _curve(self, trial: Any) -> dict[int, float]:
        """Return the reported values by iteration, without steps that are no iteration of the trial."""
        if self._iterations is None:
            return {}
        last, steps = trial.params.get(self._iterations, 0), trial.intermediate_values
        curve = reported(trial, self._first_step)
        within = {i: value for i, value in curve.items() if 1 <= i <= last}
        if len(within) < len(curve):
            self._warn(
                f"Trial {trial.number} of {last} iterations reports steps from {min(steps)} to "
                f"{max(steps)}; expected are steps from {self._first_step} on, one an iteration, and "
                "others are left out. The sampler's first_step= says where steps begin.",
                "steps",
            )
        return within

    def _cost_of(self, trial: Any) -> float | None:
        """Return the cost of a trial; the median of the others if it has no cost."""
        if not self._priced:
            return None
        if self._cost is None:
            cost = self._seconds(trial)
        else:
            cost = stored_number(trial.user_attrs.get(self._cost))
        if 0 < cost < math.inf:
            self._costs[trial.number] = cost
        else:
            name = "the sampler's cost" if self._cost is None else repr(self._cost)
            self._warn(
                f"Trial {trial.number} has no cost above 0: it gets the median cost of the others. Its "
                f"objective stores a cost by trial.set_user_attr({name}, ..).",
                "cost",
            )
        return cost_of(trial.number, self._costs)

    def _seconds(self, trial: Any) -> float:
        """Return the seconds of a trial without the decision on it; NaN for a trial that was not run."""
        if trial.datetime_start is None or trial.datetime_complete is None:
            return math.nan
        deciding = trial.system_attrs.get(CLAIM, {}).get("seconds", 0.0)
        # A trial that was added, and not run, ends when it begins.
        ran = (trial.datetime_complete - trial.datetime_start).total_seconds()
        return math.nan if ran <= 0 else max(ran - float(deciding), _LEAST)

    def _warn(self, text: str, about: str) -> None:
        """Warn once about each subject."""
        if about not in self._warned:
            self._warned.add(about)
            _logger.warning(text)
