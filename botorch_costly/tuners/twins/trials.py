"""Trials of several hyperparameters at once, for as long as they promise more than they cost."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import Tensor

from botorch_costly.numerics.improvement import expected_improvement
from botorch_costly.tuners.twins.belief import Row, TwinBelief
from botorch_costly.tuners.twins.candidates import NEAR
from botorch_costly.tuners.twins.course import Course
from botorch_costly.tuners.twins.curve import price
from botorch_costly.tuners.twins.rates import Start
from botorch_costly.tuners.twins.steps import Steps

_AT_ONCE = 3  # trials of a state none of which was better
_MORE = 1  # further trials for each that was
_LASTS = 0.8  # of an advantage, that is left after as many rounds again
_EARNED = 0.1  # of the log loss that a better configuration gained: further trials may cost it
_AGAIN = "a trial that goes on"
_SURE = 1.64  # standard deviations by which a trial has to be better: a probability of 0.95
_SMALLEST = 0.1  # advantage, in units, that is worth a change
_NOTHING = 0.05  # size of an advantage, in units, below which a trial told nothing


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
        return self.trials > 0 and self.told < _NOTHING


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
        self._time = math.log(start.trained + start.rounds + 0.02 * course.horizon)

    def run(self, until: int) -> Steps[Outcome]:
        """Play trials, none of which reaches a round of compute, and return the best state."""
        start, course = self._start, self._course
        best = Outcome(start.point, start.end, start.level)
        allowed, paid = _AT_ONCE, course.cost
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
                allowed += _MORE
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
        lasts = not math.isfinite(first) or second >= _LASTS * first
        if lasts and second > 0:
            course.change(second)
            if math.isfinite(second):
                course.credit += _EARNED * second
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
            points = points[(points - point).abs().amax(-1) > NEAR]
        if not len(points):
            return None
        mean, sd = self._belief.better(points, self._start.point, self._time)
        promise = expected_improvement(mean, sd, best + _SMALLEST)
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
        return float(mean) > max(best, _SMALLEST) and float(mean) > _SURE * float(sd)
