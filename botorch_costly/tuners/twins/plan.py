"""A whole run: what is too strong, the learning rate, trials that promise more than they cost, the end.

    1. Something is far from being switched off: a comparison with all switched off that can be.
    2. While the learning rate is not settled, and the first fifth of the run lasts: a line search from
       the present state.
    3. From one state after another, trials of the other hyperparameters, each judged by what it is better
       by than the present configuration on the same batches. A better one is taken with its state.
       A run that stalls searches around its learning rate again.
    4. No trials in the last fifth: what is handed over has been trained to its end.

A run that falls far behind what it was goes back to the state before. One that has not begun to learn, as
a network that died in its first rounds, begins anew with a tenth of its learning rate.
"""

import math
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Generator, Tensor

from botorch_costly.space import SearchSpace
from botorch_costly.tuners.twins.belief import TwinBelief
from botorch_costly.tuners.twins.candidates import (
    candidates,
    momentum_columns,
    number_columns,
    switched_off,
    tenfold,
)
from botorch_costly.tuners.twins.constants import CONSTANTS
from botorch_costly.tuners.twins.course import Course
from botorch_costly.tuners.twins.off import SwitchOff
from botorch_costly.tuners.twins.peaks import rate_columns
from botorch_costly.tuners.twins.rates import RateSearch, Start
from botorch_costly.tuners.twins.steps import Steps
from botorch_costly.tuners.twins.trials import Trials

_T = TypeVar("_T")


@dataclass
class _Radius:
    """How far and how long trials go: farther and longer where nothing is told."""

    rounds: int
    box: float = CONSTANTS.box

    def adapt(self, *, nothing: bool, failed: bool, longest: int) -> None:
        if nothing:
            self.box = min(self.box * CONSTANTS.widening, CONSTANTS.largest_box)
            self.rounds = min(2 * self.rounds, max(longest, self.rounds))
        elif failed:
            self.box = max(self.box * CONSTANTS.narrowing, CONSTANTS.smallest_box)


class Plan:
    """The plan of a run, which hears levels and says what is played.

    Args:
        space: Of the configurations.
        start: The first configuration, encoded, shape ``(d,)``.
        course: The books of the run.
        generator: Source of the candidates.
    """

    def __init__(
        self, space: SearchSpace, start: Tensor, course: Course, generator: Generator
    ) -> None:
        self._space, self.course, self._generator = space, course, generator
        self.incumbent, self._belief = start, TwinBelief(number_columns(space))
        self._rates = rate_columns(space)
        self._unsettled = list(self._rates)
        self._fixed = set(self._rates) | momentum_columns(space)  # in all trials but of the rates
        self._radius = _Radius(max(2, round(CONSTANTS.shortest_trial * course.horizon)))
        self._until = int(CONSTANTS.trials_share * course.horizon)
        self._next = self._next_search = self._falls = 0
        self._fell_from = -1  # rounds trained of the state that the last fall was from
        self._off_is_due, self._off_again = True, False  # whether to try to switch off what can be
        self._before: list[Tensor] = []  # incumbents before the present one
        self._plays = True  # whether the present step plays the incumbent, and is no trial
        self._is_over = False  # whether there are no more trials
        self._state = course.mark()  # that the incumbent goes on from
        self._origin: int | None = self._state  # until something has been learnt
        self._first_level = math.nan
        self._rates_until, self._begun_anew = CONSTANTS.rate_search_share * course.horizon, 0

    def run(self) -> Steps[None]:
        """Play all rounds."""
        course = self.course
        while course.left > 0:
            self._is_over |= course.spent + 2 * self._length() > self._until
            if self._is_over:
                rounds = max(1, round(CONSTANTS.final_stretch * course.horizon))
                yield from self._last(min(rounds, course.left))
            else:
                yield from self._stretch(self._length())
            self._keep_what_is_needed()

    def extend(self, horizon: int) -> None:
        """Plan for another horizon from the next step on."""
        self.course.horizon = horizon
        self._until, self._is_over = int(CONSTANTS.trials_share * horizon), False

    @property
    def state_of_incumbent(self) -> int | None:
        """Number of the state that the incumbent goes on from; None if that is the present one."""
        return None if self._plays else self._state

    def alone(self) -> Steps[None]:
        """Play the incumbent from the present state to the end."""
        self._plays = True
        while self.course.left > 0:
            yield from self.course.play(
                self.incumbent, 1, "the incumbent; no state can be gone back to", query=False
            )

    def again(self) -> Steps[None]:
        """Play all rounds that are left, from the present state and without those that were kept."""
        self.course.forget_states()
        self._plays, self._origin = True, None
        self._state = self.course.mark()
        return self.run()

    @property
    def _searches(self) -> bool:
        course = self.course
        return bool(self._unsettled) and course.spent < self._rates_until

    def _length(self) -> int:
        """Return the rounds of the next stretch: those of a trial, or more before the next trials."""
        course = self.course
        rounds = max(self._radius.rounds, round(CONSTANTS.trial_growth * course.trained))
        if self._searches:
            return rounds
        wait = min(self._next - course.trained, int(CONSTANTS.longest_trial * course.horizon))
        return max(rounds, wait)

    def _stretch(self, rounds: int) -> Steps[None]:
        """Play the incumbent, and compare others with it from the state before."""
        course = self.course
        state, began, trained = self._state, course.spent, course.trained
        level = yield from self._play(rounds, query=course.may_query())
        if math.isnan(level):
            return
        slope = course.curve.slope(course.trained, level)
        start = Start(state, self._state, self.incumbent, rounds, level, slope, trained, began)
        off = self._off()
        if off is not None:
            yield from self._switch_off(start, off)
        elif self._searches:
            yield from self._search_rate(start)
        elif self._fell(level):
            self._go_back(state)
        elif self._has_not_begun(level):
            self._begin_anew()
        elif self._stalls(start):
            self._next_search = int(CONSTANTS.stall_wait * course.trained)
            yield from self._search_rate(start, stalled=True)
        else:
            if trained >= self._next:
                level = yield from self._try_others(start)
            course.curve.add(course.trained, level)

    def _last(self, rounds: int) -> Steps[None]:
        """Play the incumbent to the end, and go back from a fall."""
        state = self._state
        level = yield from self._play(rounds, query=self.course.may_query())
        if self._fell(level):
            self._go_back(state)
        elif not math.isnan(level):
            self.course.curve.add(self.course.trained, level)

    def _play(self, rounds: int, *, query: bool) -> Steps[float]:
        course, self._plays = self.course, True
        level = yield from course.play(
            self.incumbent, rounds, "the incumbent", state=self._state, query=query
        )
        self._state, self._plays = course.mark(), False
        return level

    def _stalls(self, start: Start) -> bool:
        """Return whether the run hardly learns any more, as with a learning rate that is too large."""
        early = CONSTANTS.early_share * self.course.horizon
        waited = start.trained >= max(self._next_search, early)
        return bool(self._rates) and start.learns.expected < CONSTANTS.typical_slope / 2 and waited

    def _search_rate(self, start: Start, *, stalled: bool = False) -> Steps[None]:
        course = self.course
        column = self._unsettled[0] if self._unsettled else self._rates[0]
        search = RateSearch(course, start, column, tenfold(self._space, column), self._until)
        steps = search.after_a_stall() if stalled else search.at_first()
        point, found = yield from self._credited(steps)
        if search.settled and self._unsettled:
            self._unsettled.pop(0)
        elif not stalled:  # a run that has not begun to learn: what differs shows after more rounds
            longest = round(CONSTANTS.longest_trial * course.horizon)
            self._radius.rounds = min(2 * self._radius.rounds, longest)
        self._off_is_due, self._off_again = self._off_again, False
        assert found.state is not None
        self._take(point, found.state)
        course.curve.add(course.trained, found.level)
        if self._fell(found.level):
            self._go_back(start.state)

    def _try_others(self, start: Start) -> Steps[float]:
        """Play trials, take the best of them, and return its level."""
        course, radius = self.course, self._radius

        def draw() -> Tensor:
            return candidates(self._space, self.incumbent, radius.box, self._fixed, self._generator)

        found = yield from Trials(course, start, self._belief, draw).run(self._until)
        self._take(found.point, found.state)
        better = found.advantage > 0
        if found.trials:
            longest = round(CONSTANTS.longest_trial * course.horizon)
            radius.adapt(nothing=found.nothing, failed=not better, longest=longest)
            if not better and start.slope >= CONSTANTS.stuck_slope:
                learns = start.slope > CONSTANTS.typical_slope / 2
                patience = CONSTANTS.patience if learns else CONSTANTS.short_patience
                ahead = max(patience * course.trained, course.trained + 3 * start.rounds)
                self._next = int(ahead)
        return found.level

    def _off(self) -> Tensor | None:
        """Return what is tried first, and once more at another learning rate if that told little."""
        if not self._off_is_due:
            return None
        return switched_off(self._space, self.incumbent, self._fixed)

    def _switch_off(self, start: Start, off: Tensor) -> Steps[None]:
        """Switch off what is far too strong, if that is better."""
        course = self.course
        found = yield from self._credited(SwitchOff(course, start, off, self._until).run())
        self._take(found.point, found.state)
        course.curve.add(course.trained, found.level)
        self._off_is_due, self._off_again = False, found.told < CONSTANTS.off_repeat

    def _credited(self, steps: Steps[_T]) -> Steps[_T]:
        """Play steps that the account of the trials does not pay for."""
        paid = self.course.cost
        found = yield from steps
        self.course.credit += self.course.cost - paid
        return found

    def _take(self, point: Tensor, state: int) -> None:
        if not torch.equal(point, self.incumbent):
            self._before.append(self.incumbent)
        self.incumbent, self._state = point, state
        self.course.stand_at(state)

    def _fell(self, level: float) -> bool:
        # NaN of no query is no fall; a network that diverged fell, whatever it was before.
        fell = level == -math.inf or level < self.course.curve.best - CONSTANTS.fall
        return fell and self._falls < CONSTANTS.max_falls

    def _go_back(self, state: int) -> None:
        """Return to a state; after a further fall from there change the incumbent, too.

        The one before takes its place, or a third of its learning rates.
        """
        course, trained = self.course, self.course.trained_of(state)
        again, self._fell_from = trained == self._fell_from, trained
        self._falls += 1
        course.give_back(course.trained - trained, CONSTANTS.typical_slope)
        if again:
            self.incumbent = self._before.pop() if self._before else self._slower()
        self._state = state
        course.stand_at(state)

    def _keep_what_is_needed(self) -> None:
        """Forget all states but the present one, and the first while nothing has been learnt."""
        course = self.course
        if math.isnan(self._first_level) and course.curve.points:
            self._first_level = course.curve.points[0][1]
        late = course.spent > CONSTANTS.restart_share * course.horizon
        if late or course.curve.best > self._first_level + CONSTANTS.learnt_gain:
            self._origin = None
        origin = () if self._origin is None else (self._origin,)
        course.drop_all_but(self._state, *origin)

    def _has_not_begun(self, level: float) -> bool:
        """Return whether a run that trained for a while is no better than at its first query."""
        due = self.course.trained >= CONSTANTS.restart_due * self.course.horizon
        may = self._origin is not None and self._begun_anew < CONSTANTS.max_restarts
        begun = self._first_level + CONSTANTS.learnt_gain
        return due and may and bool(self._rates) and max(level, self.course.curve.best) <= begun

    def _begin_anew(self) -> None:
        """Return to the first state with a tenth of the learning rates, and search them again."""
        course = self.course
        assert self._origin is not None
        self._begun_anew += 1
        course.give_back(course.trained, 0.0)
        for _ in range(2):
            self.incumbent = self._slower()
        self._state = self._origin
        course.stand_at(self._state)
        course.curve.points.clear()
        self._unsettled = list(self._rates)
        self._rates_until = course.spent + CONSTANTS.rate_search_share * course.horizon
        self._next = self._next_search = 0

    def _slower(self) -> Tensor:
        """Return the incumbent with a third of its learning rates."""
        point = self.incumbent.clone()
        for column in self._rates:
            lower = point[column] - tenfold(self._space, column) / 2
            point[column] = lower.clamp_min(0)
        return point
