"""The first trial of a run: switch off strengths that are far too high, such as dropout.

A person tries this first where a network does not learn. The trial needs no model. It goes on until the
two sides differ, because before a network has begun to learn all configurations look alike.
"""

import math

from torch import Tensor

from botorch_costly.tuners.twins.constants import CONSTANTS
from botorch_costly.tuners.twins.rates import Start
from botorch_costly.tuners.twins.run_budget import RunBudget, Steps
from botorch_costly.tuners.twins.trials import Outcome


class SwitchOff:
    """A comparison of the present configuration with one where all strengths are off.

    Args:
        budget: Budget of the run.
        start: State and configuration that both sides start from.
        off: The other configuration, encoded, shape ``(d,)``.
        until: Round of compute by which both sides end.
    """

    def __init__(self, budget: RunBudget, start: Start, off: Tensor, until: int) -> None:
        self._budget, self._start, self._off, self._until = budget, start, off, until

    def run(self) -> Steps[Outcome]:
        """Play both sides until they differ; return the better one."""
        start, budget = self._start, self._budget
        present = Outcome(start.point, start.end, start.level)
        trial = yield from self._extended(
            Outcome(self._off, start.state, 0.0), start.rounds, start.began
        )
        rounds = given_back = start.rounds
        for _ in range(CONSTANTS.off_extensions):
            differs = self._advantage(trial, present) >= CONSTANTS.off_difference
            if differs or not budget.has_room(4 * rounds, self._until, queries=2):
                break
            began, rounds = start.began + given_back, 2 * rounds
            trial = yield from self._extended(trial, rounds, began)
            present = yield from self._extended(present, rounds, began)
            given_back += rounds
        advantage = self._advantage(trial, present)
        budget.give_back(given_back, start.slope)
        better = present
        if advantage > CONSTANTS.off_advantage:
            better = trial
            budget.change(trial.level - present.level)
        better.advantage, better.trials, better.largest = max(advantage, 0.0), 1, abs(advantage)
        return better

    def _extended(self, side: Outcome, rounds: int, began: int) -> Steps[Outcome]:
        """Play further rounds of one side from its state."""
        reason = "the incumbent goes on" if side.point is self._start.point else "a trial without"
        level = yield from self._budget.play(
            side.point, rounds, reason, state=side.state, began=began
        )
        return Outcome(side.point, self._budget.mark(), level)

    def _advantage(self, trial: Outcome, present: Outcome) -> float:
        """Return the advantage of the trial; -inf if it diverged, inf if only the other side did."""
        if not math.isfinite(trial.level):
            return -math.inf
        if not math.isfinite(present.level):
            return math.inf
        return (trial.level - present.level) / self._start.unit
