"""Trials of several hyperparameters at once, for as long as they promise more than they cost."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import Tensor

from botorch_costly.numerics.improvement import expected_improvement
from botorch_costly.tuners.twins.belief import Row, TwinBelief
from botorch_costly.tuners.twins.constants import CONSTANTS
from botorch_costly.tuners.twins.course import Course
from botorch_costly.tuners.twins.curve import price
from botorch_costly.tuners.twins.rates import Start
from botorch_costly.tuners.twins.steps import Steps

_AGAIN = "a trial that goes on"


@dataclass
class Outcome:
    """Where trials ended: the best state and its configuration, and what they told."""

    point: Tensor
    state: int
    level: float
    advantage: float = 0.0
    trials: int = 0
    told: float = 0.0  # largest size of an advantage

    @property
    def nothing(self) -> bool:
        """Whether there were trials, none of which told anything."""
        return self.trials > 0 and self.told < CONSTANTS.uninformative


class Trials:
    """Trials from one state.

    Args:
        course: Of the run.
        start: Where they begin.
        belief: What earlier ones taught; it learns from these.
        draw: Returns candidates around the present configuration, shape ``m x d``.
    """

    def __init__(
        self, course: Course, start: Start, belief: TwinBelief, draw: Callable[[], Tensor]
    ) -> None:
        self._course, self._start, self._belief, self._draw = course, start, belief, draw
        self._tried: list[Tensor] = []
        self._time = math.log(start.trained + start.rounds + CONSTANTS.time_offset * course.horizon)

    def run(self, until: int) -> Steps[Outcome]:
        """Play trials, none of which reaches a round of compute, and return the best state."""
        start, course = self._start, self._course
        best = Outcome(start.point, start.end, start.level)
        allowed, paid = CONSTANTS.max_failures, course.cost
        while best.trials < allowed and self._may_go_on(until):
            point = self._candidate(best.advantage)
            if point is None:
                break
            level = yield from course.play(
                point, start.rounds, "a trial", state=start.state, began=start.began
            )
            found = self._learn(point, level)
            better = found > best.advantage and self._sure(point, best.advantage)
            trials, told = best.trials + 1, max(best.told, abs(found))
            if better:
                best = Outcome(point, course.mark(), level, found)
                allowed += CONSTANTS.trials_per_success
            best.trials, best.told = trials, told
            course.give_back(start.rounds, start.slope)
        if best.advantage > 0:
            best = yield from self._confirmed(best)
        if best.advantage > 0:
            course.credit += course.cost - paid  # the trials have earned what they cost
        return best

    def _confirmed(self, best: Outcome) -> Steps[Outcome]:
        """Return the better one after as many rounds again, of the best trial and the incumbent.

        What only passes, such as the calm after a smaller step, is less by then; what lasts is more.
        """
        start, course = self._start, self._course
        later = start.began + start.rounds
        again = yield from course.play(
            best.point, start.rounds, _AGAIN, state=best.state, began=later
        )
        state = course.mark()
        level = yield from course.play(
            start.point, start.rounds, _AGAIN, state=start.end, began=later
        )
        course.give_back(start.rounds, start.slope)
        first, second = best.level - start.level, again - level
        lasting = start.advantage(again, course.horizon, than=level, rounds=2 * start.rounds)
        self._belief.observe(Row(best.point, start.point, self._time, lasting))
        lasts = not math.isfinite(first) or second >= CONSTANTS.lasting_share * first
        if lasts and second > 0:
            course.change(second)
            if math.isfinite(second):
                course.credit += CONSTANTS.earned_share * second
            return replace(best, state=state, level=again)
        return Outcome(start.point, course.mark(), level, trials=best.trials, told=best.told)

    def _may_go_on(self, until: int) -> bool:
        course, start = self._course, self._start
        whole = course.has_room(3 * start.rounds, until, queries=3)  # with what confirms it
        return whole and course.may_query()

    def _candidate(self, best: float) -> Tensor | None:
        """Return the candidate that promises most; None if it promises less than it costs."""
        points = self._draw()
        for point in self._tried:  # twins of one state that are alike tell the same
            points = points[(points - point).abs().amax(-1) > CONSTANTS.least_distance]
        if not len(points):
            return None
        mean, sd = self._belief.better(points, self._start.point, self._time)
        promise = expected_improvement(mean, sd, best + CONSTANTS.least_advantage)
        chosen = int(promise.argmax())
        if not self._pays(float(promise[chosen]) * self._start.unit):
            return None
        return points[chosen]

    def _pays(self, promise: float) -> bool:
        """Whether a trial that promises a gain, in log loss, is worth its price and can be afforded."""
        start, course = self._start, self._course
        worth = promise >= price(start.slope, start.rounds, course.left)
        return worth and course.affords(start.rounds, start.slope, promise)

    def _learn(self, point: Tensor, level: float) -> float:
        self._tried.append(point)
        advantage = self._start.advantage(level, self._course.horizon)
        self._belief.observe(Row(point, self._start.point, self._time, advantage))
        return advantage

    def _sure(self, point: Tensor, best: float) -> bool:
        mean, sd = self._belief.better(point.unsqueeze(0), self._start.point, self._time)
        beats = float(mean) > max(best, CONSTANTS.least_advantage)
        return beats and float(mean) > CONSTANTS.sure_deviations * float(sd)
