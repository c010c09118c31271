"""The plan of a whole run: the learning rate, strong regularization, then the run itself.

    1. From the first state: strengths that are far from 0 are weakened if that is no worse, and the
       learning rate is searched.
    2. The run plays the incumbent. After 5, 10 and 20 % of the rounds the weakened strengths are compared
       with the given ones, unless these were clearly worse; a rate that is not settled is searched again.
    3. Trials of the other hyperparameters, as far as their rounds are cheap because the run learns
       little, and of a smaller rate where it hardly learns.
    4. Nothing is tried in the last fifth, so that the final network has been trained to its end.

A run that falls far behind its best level returns to the latest state before all that was not measured.
"""

import math

import torch
from torch import Generator, Tensor

from botorch_costly.space import SearchSpace
from botorch_costly.tuners.twins.belief import TwinBelief
from botorch_costly.tuners.twins.candidates import (
    candidates,
    momentum_columns,
    number_columns,
    rate_columns,
    tenfold,
    weakened,
)
from botorch_costly.tuners.twins.constants import CONSTANTS
from botorch_costly.tuners.twins.curve import Slope
from botorch_costly.tuners.twins.rates import RateSearch
from botorch_costly.tuners.twins.run_budget import RunBudget, Steps
from botorch_costly.tuners.twins.strengths import Strengths
from botorch_costly.tuners.twins.trials import Challenge, Side, Start, Trials, unit_of

_MARKS = (0.05, 0.1, 0.2)  # shares of the run
_LONGEST = 0.1  # share of the run that a trial may last
_SEARCH = 0.15  # share of the run that a search may give back
_SEGMENT = 0.05  # share of the run that is played between two queries
_MOST_FALLS = 6
_GROWTH = 1.05  # factor by which the lead of a smaller rate grows, rather than fades
_TRIAL_WAIT = 1.5  # factor of the rounds trained before trials after none that was worth it
_FLAT = 0.01  # levels; a run that moved less than this has not moved
_EARLY = 0.1  # share of the run in which nothing counts as a stall
_STALL_WAIT = 2.5  # factor of the rounds trained before the next stall
_WORSE_WAIT = 1.25  # the same where the run gets worse


class Plan:
    """The plan of a run: it receives levels and yields the steps to play.

    Args:
        space: Space of the configurations.
        start: Encoded first configuration, shape ``(d,)``.
        budget: Budget of the run.
        generator: Source of the candidates.
    """

    def __init__(
        self, space: SearchSpace, start: Tensor, budget: RunBudget, generator: Generator
    ) -> None:
        self._space, self.budget, self._generator = space, budget, generator
        numbers = number_columns(space)
        self._given = self.incumbent = start
        self._belief = TwinBelief(numbers)
        self._rates = rate_columns(space)
        self._unsettled = list(self._rates)
        self._fixed = set(self._rates) | momentum_columns(space)  # except in the rate search
        self._numbers = set(numbers.nonzero().flatten().tolist())
        self._strengths = Strengths(start, weakened(space, start, self._fixed))
        self._marks = list(_MARKS)
        self._longer = 1  # factor of the rounds of a trial after searches that told nothing
        self._due = True  # whether rates that are not settled are searched now
        self._falls, self._fell_from = 0, -1  # and rounds trained of the state before the last fall
        self._last_stall, self._next_trial = 0, 0.0  # rounds trained
        self.costly: set[int] = set()  # columns open to trials that would have cost too much
        self.was_bound = False  # whether trials of numbers were put off because compute bound
        self._plays = True  # whether the present step plays the incumbent rather than a trial
        self._state = budget.mark()  # state that the incumbent starts from
        self._measured = self._state  # the latest state before all that no query has measured
        self._origin: int | None = self._state  # first state, until the run has begun to learn

    def run(self) -> Steps[None]:
        """Play all rounds."""
        while self.budget.left > 0:
            self._pass_marks()
            if (yield from self._stretch()):
                self._measured = self._state
            if self._has_begun:
                self._origin = None
            origin = () if self._origin is None else (self._origin,)
            self.budget.drop_all_but(self._state, self._measured, *origin)

    def extend(self, horizon: int) -> None:
        """Plan for another horizon from the next step on."""
        self.budget.horizon = horizon

    @property
    def state_of_incumbent(self) -> int | None:
        """Number of the state that the incumbent continues from; None for the present state."""
        return None if self._plays else self._state

    def alone(self) -> Steps[None]:
        """Play the incumbent from the present state to the end."""
        self._plays = True
        while self.budget.left > 0:
            yield from self.budget.play(
                self.incumbent, 1, "the incumbent; nothing is tried", query=False
            )

    def again(self) -> Steps[None]:
        """Play all remaining rounds from the present state, without the states kept so far."""
        self.budget.forget_states()
        self._plays, self._origin = True, None
        self._state = self._measured = self.budget.mark()
        return self.run()

    def _stretch(self) -> Steps[bool]:
        """Play the incumbent, and compare other configurations with it from the same state.

        Return whether a query has measured the incumbent.
        """
        budget = self.budget
        tests = self._strengths.is_due
        # A test after the first state lasts longer than the rates that it would be compared with.
        searches = self._due and bool(self._unsettled) and not (tests and budget.trained > 0)
        stalls = not (searches or tests) and self._stalls(budget.curve.latest)
        trial = self._trial_length()
        tries = not (searches or tests or stalls) and self._tries(trial)
        is_trial = searches or tests or stalls or tries
        rounds = min(trial if is_trial else self._segment_length(), budget.left)
        state, began, trained = self._state, budget.spent, budget.trained
        early, half = math.nan, rounds // 2 if searches else 0
        if half > 0:
            early = yield from self._play(half, state)
        level = yield from self._play(rounds - half, None if half > 0 else state)
        self._state, self._plays = budget.mark(), False
        if math.isnan(level):
            return False
        if self._measured != state:  # the state may have diverged long before
            if self._fell(level):
                self._go_back(self._measured)
                return True
            self._release_measured()
        slope = budget.curve.slope(budget.trained, level)
        present = Side(self.incumbent, level, self._state, early)
        start = Start(state, present, rounds, slope, trained, began)
        if tests:
            start = yield from self._test_strengths(start)
        if searches:
            yield from self._search_rate(start)
        elif self._fell(start.incumbent.level):
            self._go_back(state)
        elif stalls:
            yield from self._try_slower(start)
        elif tries:
            yield from self._try_others(start)
        else:
            budget.curve.add(budget.trained, start.incumbent.level)
        return True

    def _release_measured(self) -> None:
        """Drop the state before what was not measured, so that trials hold as many copies as ever."""
        if self._measured != self._origin:
            self.budget.drop(self._measured)

    def _pass_marks(self) -> None:
        """Make searches and tests due at the marks; begin anew if nothing was learnt until the second."""
        while self._marks and self.budget.spent >= self._next_mark:
            self._marks.pop(0)
            self._due = True
            self._strengths.renew()
            is_late = len(self._marks) < len(_MARKS) - 1
            if self._origin is not None and self._rates and is_late and self._has_begun is False:
                self._begin_anew(self._origin)

    @property
    def _next_mark(self) -> int:
        return round(self._marks[0] * self.budget.horizon)

    def _begin_anew(self, origin: int) -> None:
        """Return to the first state with a tenth of the rates."""
        budget = self.budget
        budget.give_back(budget.trained, 0.0)
        self.incumbent = self._slower(self._slower(self.incumbent))
        self._state = self._measured = origin
        budget.stand_at(origin)
        budget.curve.points.clear()

    @property
    def _has_begun(self) -> bool | None:
        """Whether the run has learnt anything since its first query; None before the second."""
        levels = [level for _, level in self.budget.curve.points]
        return max(levels) - min(levels) > _FLAT if len(levels) > 1 else None

    def _trial_length(self) -> int:
        first = max(2, round(CONSTANTS.first_rounds * self.budget.horizon ** (1 / 3)))
        rounds = max(first, round(CONSTANTS.trial_rounds * self.budget.trained))
        return min(self._longer * rounds, round(_LONGEST * self.budget.horizon))

    def _segment_length(self) -> int:
        """Return the rounds until the next query where nothing is tried."""
        segment = max(2, round(_SEGMENT * self.budget.horizon))
        until_mark = self._next_mark - self.budget.spent if self._marks else segment
        return min(segment, max(until_mark, 1))

    def _play(self, rounds: int, state: int | None) -> Steps[float]:
        """Play the incumbent, with a query at the end if the shares afford it."""
        budget, self._plays = self.budget, True
        query = budget.may_query() and budget.stock.affords(rounds)
        return (
            yield from budget.play(
                self.incumbent, rounds, "the incumbent", state=state, query=query
            )
        )

    def _stalls(self, slope: Slope) -> bool:
        """Return whether the run hardly learns, as with too large a rate.

        The rate that was given is doubted only where the run gets worse.
        """
        trained, worsens = self.budget.trained, _worsens(slope)
        wait = (_WORSE_WAIT if worsens else _STALL_WAIT) * self._last_stall
        if not self._rates or trained < max(wait, _EARLY * self.budget.horizon):
            return False
        changed = any(self.incumbent[column] != self._given[column] for column in self._rates)
        return worsens or (changed and slope.expected < CONSTANTS.typical_slope / 2)

    def _try_slower(self, start: Start) -> Steps[None]:
        """Take a third of the learning rate if its lead over the present one grows.

        A smaller step calms a network at once, even where a larger one ends better: the first lead says
        nothing, but its growth does. Where the run gets worse, a lead that lasts will do.
        """
        budget, challenge = self.budget, Challenge(self.budget, start)
        self._last_stall = budget.trained
        chosen = start.incumbent
        growth = CONSTANTS.lasting_share if _worsens(start.slope) else _GROWTH
        if budget.affords_trial(3 * start.rounds, 3):
            budget.trials += budget.price(start.slope.upper, start.rounds)
            trial = yield from challenge.play(
                self._slower(self.incumbent), "a trial of a smaller learning rate"
            )
            if trial.level > chosen.level + CONSTANTS.level_noise:
                chosen = yield from challenge.confirm(trial, CONSTANTS.level_noise, growth=growth)
        self._take(chosen)
        budget.curve.add(budget.trained, chosen.level)

    def _tries(self, rounds: int) -> bool:
        """Return whether trials of so many rounds can be cheap enough, and there is something to try."""
        slope, known = self.budget.curve.latest.upper, len(self.budget.curve.points) > 1
        if not known or self.budget.trained < self._next_trial:
            return False
        held = self._held(slope)
        self.was_bound = self.was_bound or held != self._fixed
        if len(held) == self._space.dim:
            return False
        affords = self.budget.affords_cost(slope, rounds, unit_of(slope) / 2)
        if not affords:
            self.costly |= set(range(self._space.dim)) - held
        return affords

    def _held(self, slope: float) -> set[int]:
        """Return the columns that trials hold: those of all numbers while compute binds.

        Many numbers act as a learning rate does: a value that calms the network looks better at once.
        """
        return self._fixed | self._numbers if slope > CONSTANTS.typical_slope else self._fixed

    def _test_strengths(self, start: Start) -> Steps[Start]:
        """Compare other strengths with the present ones; return the start with the better ones.

        Weaker ones are compared one after the other, and stronger ones, which have to last, once.
        """
        strengths = self._strengths
        while strengths.is_due and self.budget.affords_trial(3 * start.rounds, 3):
            chosen = yield from self._test_next_strengths(start)
            self._take(chosen)
            start = start._replace(incumbent=chosen)
        strengths.put_off()
        return start

    def _test_next_strengths(self, start: Start) -> Steps[Side]:
        challenge, present = Challenge(self.budget, start), start.incumbent
        other = self._strengths.other(present.point)
        if torch.equal(other, present.point):  # such as a small integer, which is rounded to 0
            self._strengths.decide(present, present, is_taken=True)
            return present
        trial = yield from challenge.play(other, "a trial with other strengths")
        chosen = trial if self._strengths.is_better(trial, present) else present
        if chosen is trial and self._strengths.strengthens:
            chosen = yield from challenge.confirm(trial)
        is_taken = chosen.point is other
        self._strengths.decide(trial, present, is_taken=is_taken)
        self.budget.drop(present.state if is_taken else trial.state)
        return chosen

    def _search_rate(self, start: Start) -> Steps[None]:
        budget, column = self.budget, self._unsettled[0]
        most = round(_SEARCH * budget.horizon)
        allowance = min(CONSTANTS.search_rounds * start.rounds, most)
        tenfold_step = tenfold(self._space, column)
        search = RateSearch(budget, start, column, tenfold_step, allowance, self._lead)
        found = yield from search.run()
        budget.give_back(search.lost, start.slope.upper)
        if search.is_conclusive:
            self._unsettled.pop(0)
            self._origin = None
        else:
            self._due, self._longer = False, 2 * self._longer
        if not torch.equal(found.point, start.incumbent.point):
            budget.change()
            budget.trials = 0.0
        else:
            budget.trials += budget.price(start.slope.upper, search.lost)
        self._take(found)
        budget.curve.add(budget.trained, found.level)

    def _try_others(self, start: Start) -> Steps[None]:
        """Play trials, and take the best of them."""

        def draw() -> Tensor:
            held = self._held(start.slope.upper)
            return candidates(self._space, self.incumbent, CONSTANTS.box, held, self._generator)

        trials = Trials(self.budget, start, self._belief, draw)
        chosen = yield from trials.run()
        if not trials.largest:  # none was worth its cost, nor will the next be soon
            self._next_trial = _TRIAL_WAIT * self.budget.trained
        self._take(chosen)
        self.budget.curve.add(self.budget.trained, chosen.level)

    def _lead(self, side: Side) -> None:
        """Note the configuration and the state that a run which is stopped now hands over."""
        if side.state is not None:
            self.incumbent, self._state = side.point, side.state

    def _take(self, side: Side) -> None:
        assert side.state is not None
        self.incumbent, self._state = side.point, side.state
        self.budget.stand_at(side.state)

    def _fell(self, level: float) -> bool:
        """Return whether a network diverged, lost half of what it had or all that it had learnt."""
        best, first = self.budget.curve.best, self.budget.curve.first
        lost = best - level > math.log(2)
        forgot = best > first + CONSTANTS.level_noise and level <= first
        return (level == -math.inf or lost or forgot) and self._falls < _MOST_FALLS

    def _go_back(self, state: int) -> None:
        """Return to a state; after a second fall from there with a third of the learning rates."""
        budget, trained = self.budget, self.budget.trained_of(state)
        again, self._fell_from = trained == self._fell_from, trained
        self._falls += 1
        budget.give_back(budget.trained - trained, CONSTANTS.typical_slope)
        if again:
            self.incumbent = self._slower(self.incumbent)
        self._state = state
        budget.stand_at(state)

    def _slower(self, point: Tensor) -> Tensor:
        """Return a configuration with a third of its learning rates."""
        point = point.clone()
        for column in self._rates:
            lower = point[column] - tenfold(self._space, column) / 2
            point[column] = lower.clamp_min(0)
        return point


def _worsens(slope: Slope) -> bool:
    """Return whether a run gets worse, beyond the error of a flat curve."""
    return slope.expected < -_FLAT
