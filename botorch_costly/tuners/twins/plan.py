"""The plan of a whole run: strong regularization, the learning rate, trials of the rest, and the end.

    1. If a strength is far from 0, a comparison with all strengths switched off.
    2. While the learning rate is not settled, and during the first fifth of the run: a line search from
       the present state.
    3. From one state after another, trials of the other hyperparameters. Each is judged by its advantage
       over the present configuration on the same batches. A better one is taken with its state. A run
       that stalls searches around its learning rate again.
    4. No trials in the last fifth, so that the final network has been trained to its end.

A run that falls far behind its best level returns to the previous state. A run that has not begun to
learn, such as a network that died in its first rounds, restarts with a tenth of its learning rate.
"""

import math
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from botorch_costly.space import SearchSpace
from botorch_costly.tuners.twins.belief import TwinBelief
from botorch_costly.tuners.twins.candidates import (
    candidates,
    momentum_columns,
    number_columns,
    rate_columns,
    switched_off,
    tenfold,
)
from botorch_costly.tuners.twins.constants import CONSTANTS
from botorch_costly.tuners.twins.rates import RateSearch, Start
from botorch_costly.tuners.twins.run_budget import Result, RunBudget, Steps
from botorch_costly.tuners.twins.switch_off import SwitchOff
from botorch_costly.tuners.twins.trials import Outcome, Trials


@dataclass
class _Radius:
    """Length and distance of trials; both grow while trials are uninformative."""

    rounds: int
    box: float = CONSTANTS.box

    def adapt(self, outcome: Outcome, longest: int) -> None:
        if outcome.is_uninformative:
            self.box = min(self.box * CONSTANTS.widening, CONSTANTS.largest_box)
            self.rounds = min(2 * self.rounds, max(longest, self.rounds))
        elif not outcome.advantage > 0:
            self.box = max(self.box * CONSTANTS.narrowing, CONSTANTS.smallest_box)


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
        self.incumbent, self._belief = start, TwinBelief(number_columns(space))
        self._rates = rate_columns(space)
        self._unsettled = list(self._rates)
        self._fixed = set(self._rates) | momentum_columns(space)  # except in the rate search
        self._radius = _Radius(max(2, round(CONSTANTS.shortest_trial * budget.horizon)))
        self._until = int(CONSTANTS.trials_share * budget.horizon)
        self._next = self._next_search = self._falls = 0  # the first two in rounds trained
        self._fell_from = -1  # rounds trained of the state before the last fall
        self._off_is_due, self._off_again = True, False  # whether to try switching off
        self._before: list[Tensor] = []  # earlier incumbents
        self._plays = True  # whether the present step plays the incumbent rather than a trial
        self._is_over = False  # whether there are no more trials
        self._state = budget.mark()  # state that the incumbent starts from
        self._origin: int | None = self._state  # first state, until the run has begun to learn
        self._first_level = math.nan
        self._rates_until, self._restarts = CONSTANTS.rate_search_share * budget.horizon, 0

    def run(self) -> Steps[None]:
        """Play all rounds."""
        budget = self.budget
        while budget.left > 0:
            self._is_over |= budget.spent + 2 * self._length() > self._until
            if self._is_over:
                rounds = max(1, round(CONSTANTS.final_segment * budget.horizon))
                yield from self._last(min(rounds, budget.left))
            else:
                yield from self._stretch(self._length())
            self._drop_unneeded()

    def extend(self, horizon: int) -> None:
        """Plan for another horizon from the next step on."""
        self.budget.horizon = horizon
        self._until, self._is_over = int(CONSTANTS.trials_share * horizon), False

    @property
    def state_of_incumbent(self) -> int | None:
        """Number of the state that the incumbent continues from; None for the present state."""
        return None if self._plays else self._state

    def alone(self) -> Steps[None]:
        """Play the incumbent from the present state to the end."""
        self._plays = True
        while self.budget.left > 0:
            yield from self.budget.play(
                self.incumbent, 1, "the incumbent; no state can be gone back to", query=False
            )

    def again(self) -> Steps[None]:
        """Play all remaining rounds from the present state, without the states kept so far."""
        self.budget.forget_states()
        self._plays, self._origin = True, None
        self._state = self.budget.mark()
        return self.run()

    @property
    def _searches(self) -> bool:
        return bool(self._unsettled) and self.budget.spent < self._rates_until

    def _length(self) -> int:
        """Return the rounds of the next stretch: those of a trial, or more until trials are due."""
        budget = self.budget
        rounds = max(self._radius.rounds, round(CONSTANTS.trial_growth * budget.trained))
        if self._searches:
            return rounds
        wait = min(self._next - budget.trained, int(CONSTANTS.longest_trial * budget.horizon))
        return max(rounds, wait)

    def _stretch(self, rounds: int) -> Steps[None]:
        """Play the incumbent, and compare other configurations with it from the same state."""
        budget = self.budget
        state, began, trained = self._state, budget.spent, budget.trained
        level = yield from self._play(rounds, CONSTANTS.comparison)
        if math.isnan(level):
            return
        slope = budget.curve.slope(budget.trained, level)
        start = Start(state, self._state, self.incumbent, rounds, level, slope, trained, began)
        off = None
        if self._off_is_due and budget.stock.affords(rounds):
            off = switched_off(self._space, self.incumbent, self._fixed)
        if off is not None:
            yield from self._switch_off(start, off)
        elif self._searches:
            yield from self._search_rate(start)
        elif self._fell(level):
            self._go_back(state)
        elif self._has_not_begun(level):
            self._restart()
        elif self._stalls(start):
            self._next_search = int(CONSTANTS.stall_wait * budget.trained)
            yield from self._search_rate(start, stalled=True)
        else:
            if trained >= self._next:
                level = yield from self._try_others(start)
            budget.curve.add(budget.trained, level)

    def _last(self, rounds: int) -> Steps[None]:
        """Play the incumbent after the last trial, and go back after a fall."""
        state = self._state
        level = yield from self._play(rounds)
        if self._fell(level):
            self._go_back(state)
        elif not math.isnan(level):
            self.budget.curve.add(self.budget.trained, level)

    def _play(self, rounds: int, queries: int = 1) -> Steps[float]:
        """Play the incumbent; query it if the clock affords so many queries, of what may follow, too."""
        budget, self._plays = self.budget, True
        query = budget.may_query() and budget.stock.affords(queries * rounds, queries)
        level = yield from budget.play(
            self.incumbent, rounds, "the incumbent", state=self._state, query=query
        )
        self._state, self._plays = budget.mark(), False
        return level

    def _stalls(self, start: Start) -> bool:
        """Return whether the run hardly learns any more, as with too large a learning rate."""
        early = CONSTANTS.early_share * self.budget.horizon
        waited = start.trained >= max(self._next_search, early)
        return bool(self._rates) and start.learns.expected < CONSTANTS.typical_slope / 2 and waited

    def _search_rate(self, start: Start, *, stalled: bool = False) -> Steps[None]:
        budget = self.budget
        column = self._unsettled[0] if self._unsettled else self._rates[0]
        search = RateSearch(budget, start, column, tenfold(self._space, column), self._until)
        steps = search.after_a_stall() if stalled else search.at_first()
        point, tried = yield from self._credited(steps)
        if search.settled and self._unsettled:
            self._unsettled.pop(0)
        elif not stalled:  # the run has not begun to learn, and differences need more rounds
            longest = round(CONSTANTS.longest_trial * budget.horizon)
            self._radius.rounds = min(2 * self._radius.rounds, longest)
        self._off_is_due, self._off_again = self._off_again, False
        assert tried.state is not None
        self._take(point, tried.state)
        budget.curve.add(budget.trained, tried.level)
        if self._fell(tried.level):
            self._go_back(start.state)

    def _try_others(self, start: Start) -> Steps[float]:
        """Play trials, take the best of them, and return its level."""
        budget, radius = self.budget, self._radius

        def draw() -> Tensor:
            return candidates(self._space, self.incumbent, radius.box, self._fixed, self._generator)

        outcome = yield from Trials(budget, start, self._belief, draw).run(self._until)
        self._take(outcome.point, outcome.state)
        if outcome.trials:
            radius.adapt(outcome, round(CONSTANTS.longest_trial * budget.horizon))
            if not outcome.advantage > 0 and start.slope >= CONSTANTS.stuck_slope:
                learns = start.slope > CONSTANTS.typical_slope / 2
                patience = CONSTANTS.patience if learns else CONSTANTS.short_patience
                self._next = int(max(patience * budget.trained, budget.trained + 3 * start.rounds))
        return outcome.level

    def _switch_off(self, start: Start, off: Tensor) -> Steps[None]:
        """Switch strengths off if that is better; if inconclusive, repeat it at another rate."""
        budget = self.budget
        outcome = yield from self._credited(SwitchOff(budget, start, off, self._until).run())
        self._take(outcome.point, outcome.state)
        budget.curve.add(budget.trained, outcome.level)
        self._off_is_due, self._off_again = False, outcome.largest < CONSTANTS.off_repeat

    def _credited(self, steps: Steps[Result]) -> Steps[Result]:
        """Play steps whose cost is not charged to the account of the trials."""
        cost_before = self.budget.cost
        result = yield from steps
        self.budget.credit += self.budget.cost - cost_before
        return result

    def _take(self, point: Tensor, state: int) -> None:
        if not torch.equal(point, self.incumbent):
            self._before.append(self.incumbent)
        self.incumbent, self._state = point, state
        self.budget.stand_at(state)

    def _fell(self, level: float) -> bool:
        # NaN, from a stretch without a query, is no fall; a diverged network always is.
        fell = level == -math.inf or level < self.budget.curve.best - CONSTANTS.fall
        return fell and self._falls < CONSTANTS.max_falls

    def _go_back(self, state: int) -> None:
        """Return to a state; after a second fall from there change the incumbent, too.

        The previous incumbent replaces it, or a third of its learning rates.
        """
        budget, trained = self.budget, self.budget.trained_of(state)
        again, self._fell_from = trained == self._fell_from, trained
        self._falls += 1
        budget.give_back(budget.trained - trained, CONSTANTS.typical_slope)
        if again:
            self.incumbent = self._before.pop() if self._before else self._slower()
        self._state = state
        budget.stand_at(state)

    def _drop_unneeded(self) -> None:
        """Drop all states but the present one, and the first until the run has begun to learn."""
        budget = self.budget
        if math.isnan(self._first_level) and budget.curve.points:
            self._first_level = budget.curve.points[0][1]
        late = budget.spent > CONSTANTS.restart_share * budget.horizon
        if late or budget.curve.best > self._first_level + CONSTANTS.learnt_gain:
            self._origin = None
        origin = () if self._origin is None else (self._origin,)
        budget.drop_all_but(self._state, *origin)

    def _has_not_begun(self, level: float) -> bool:
        """Return whether a run is no better than at its first query though it trained for a while."""
        due = self.budget.trained >= CONSTANTS.restart_due * self.budget.horizon
        may = self._origin is not None and self._restarts < CONSTANTS.max_restarts
        begun = self._first_level + CONSTANTS.learnt_gain
        return due and may and bool(self._rates) and max(level, self.budget.curve.best) <= begun

    def _restart(self) -> None:
        """Return to the first state with a tenth of the learning rates, and search them again."""
        budget = self.budget
        assert self._origin is not None
        self._restarts += 1
        budget.give_back(budget.trained, 0.0)
        for _ in range(2):
            self.incumbent = self._slower()
        self._state = self._origin
        budget.stand_at(self._state)
        budget.curve.points.clear()
        self._unsettled = list(self._rates)
        self._rates_until = budget.spent + CONSTANTS.rate_search_share * budget.horizon
        self._next = self._next_search = 0

    def _slower(self) -> Tensor:
        """Return the incumbent with a third of its learning rates."""
        point = self.incumbent.clone()
        for column in self._rates:
            lower = point[column] - tenfold(self._space, column) / 2
            point[column] = lower.clamp_min(0)
        return point
