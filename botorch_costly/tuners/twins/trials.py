"""Trials of several hyperparameters at once, as long as they promise more than they cost."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import Tensor

from botorch_costly.numerics.improvement import expected_improvement
from botorch_costly.tuners.twins.belief import Row, TwinBelief
from botorch_costly.tuners.twins.constants import CONSTANTS
from botorch_costly.tuners.twins.curve import price
from botorch_costly.tuners.twins.rates import Start
from botorch_costly.tuners.twins.run_budget import RunBudget, Steps

_EXTENSION = "a trial that goes on"


@dataclass
class Outcome:
    """The best state after trials, and its configuration."""

    point: Tensor
    state: int
    level: float
    advantage: float = 0.0
    trials: int = 0
    largest: float = 0.0  # largest size of an advantage

    @property
    def is_uninformative(self) -> bool:
        """Whether there were trials, and none of them made a difference."""
        return self.trials > 0 and self.largest < CONSTANTS.uninformative


class Trials:
    """Trials from one state.

    Args:
        budget: Budget of the run.
        start: State and configuration that the trials start from.
        belief: Model of the advantages; it observes the trials.
        draw: Function that returns candidates around the present configuration, shape ``m x d``.
    """

    def __init__(
        self, budget: RunBudget, start: Start, belief: TwinBelief, draw: Callable[[], Tensor]
    ) -> None:
        self._budget, self._start, self._belief, self._draw = budget, start, belief, draw
        self._tried: list[Tensor] = []
        self._time = math.log(start.trained + start.rounds + CONSTANTS.time_offset * budget.horizon)

    def run(self, until: int) -> Steps[Outcome]:
        """Play trials that end by round ``until``, and return the best state."""
        start, budget = self._start, self._budget
        best = Outcome(start.point, start.end, start.level)
        allowed, cost_before = CONSTANTS.max_failures, budget.cost
        while best.trials < allowed and self._may_go_on(until):
            point = self._candidate(best.advantage)
            if point is None:
                break
            level = yield from budget.play(
                point, start.rounds, "a trial", state=start.state, began=start.began
            )
            advantage = self._observe(point, level)
            trials, largest = best.trials + 1, max(best.largest, abs(advantage))
            if advantage > best.advantage and self._is_sure(point, best.advantage):
                best = Outcome(point, budget.mark(), level, advantage)
                allowed += CONSTANTS.trials_per_success
            best.trials, best.largest = trials, largest
            budget.give_back(start.rounds, start.slope)
        if best.advantage > 0:
            best = yield from self._confirmed(best)
        if best.advantage > 0:
            budget.credit += budget.cost - cost_before  # the trials have earned their cost
        return best

    def _confirmed(self, best: Outcome) -> Steps[Outcome]:
        """Return the better of the best trial and the incumbent after as many rounds again.

        A passing effect, such as the calm after a smaller step, is smaller by then; a lasting one is
        larger.
        """
        start, budget = self._start, self._budget
        began = start.began + start.rounds
        trial_level = yield from budget.play(
            best.point, start.rounds, _EXTENSION, state=best.state, began=began
        )
        state = budget.mark()
        level = yield from budget.play(
            start.point, start.rounds, _EXTENSION, state=start.end, began=began
        )
        budget.give_back(start.rounds, start.slope)
        first, second = best.level - start.level, trial_level - level
        advantage = start.advantage(
            trial_level, budget.horizon, than=level, rounds=2 * start.rounds
        )
        self._belief.observe(Row(best.point, start.point, self._time, advantage))
        lasts = not math.isfinite(first) or second >= CONSTANTS.lasting_share * first
        if lasts and second > 0:
            budget.change(second)
            if math.isfinite(second):
                budget.credit += CONSTANTS.earned_share * second
            return replace(best, state=state, level=trial_level)
        return Outcome(start.point, budget.mark(), level, trials=best.trials, largest=best.largest)

    def _may_go_on(self, until: int) -> bool:
        """Return whether there is room for a trial and the two extensions that confirm it."""
        budget = self._budget
        return budget.has_room(3 * self._start.rounds, until, queries=3) and budget.may_query()

    def _candidate(self, best: float) -> Tensor | None:
        """Return the candidate of largest expected improvement; None if it is not worth its cost."""
        points, start, budget = self._draw(), self._start, self._budget
        for point in self._tried:  # equal trials from one state give the same information
            points = points[(points - point).abs().amax(-1) > CONSTANTS.least_distance]
        if not len(points):
            return None
        mean, sd = self._belief.better(points, start.point, self._time)
        promise = expected_improvement(mean, sd, best + CONSTANTS.least_advantage)
        chosen = int(promise.argmax())
        gain = float(promise[chosen]) * start.unit  # log loss
        pays = gain >= price(start.slope, start.rounds, budget.left)
        return points[chosen] if pays and budget.affords(start.rounds, start.slope, gain) else None

    def _observe(self, point: Tensor, level: float) -> float:
        self._tried.append(point)
        advantage = self._start.advantage(level, self._budget.horizon)
        self._belief.observe(Row(point, self._start.point, self._time, advantage))
        return advantage

    def _is_sure(self, point: Tensor, best: float) -> bool:
        mean, sd = self._belief.better(point.unsqueeze(0), self._start.point, self._time)
        beats = float(mean) > max(best, CONSTANTS.least_advantage)
        return beats and float(mean) > CONSTANTS.sure_deviations * float(sd)
