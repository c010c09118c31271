"""The budget of a run: rounds spent, states kept, and the cost of exploration so far."""

import math
from collections.abc import Generator
from typing import NamedTuple, TypeVar

from torch import Tensor

from botorch_costly.ask_tell.tariff import Stock
from botorch_costly.tuners.twins.constants import CONSTANTS
from botorch_costly.tuners.twins.curve import Curve, price

Result = TypeVar("Result")


class Step(NamedTuple):
    """Rounds with one configuration, and the handling of states before them.

    First the present state is kept, then an earlier one is restored, then others are dropped.
    """

    point: Tensor  # encoded configuration, shape: (d,)
    rounds: int
    query: bool  # whether there is a query after the last round
    reason: str
    began: int  # rounds of compute at which the schedule stands
    trained: int  # rounds that the state has been trained for
    keep: int | None = None  # number under which the present state is kept
    restore: int | None = None  # number of the state to restore
    drop: tuple[int, ...] = ()  # numbers of states that are not needed any more


_TRIALS = 0.8  # share of the horizon in which there are trials
_PROMISED = 0.05  # share of the expected gain of a trial that trials may cost
_EARLY = 0.05  # share of the horizon by which queries may run ahead of their pace

# Yields steps and receives the level after each: -inf after a failed query, NaN without a query.
Steps = Generator[Step, float, Result]


class RunBudget:
    """The account of a run; all rounds are played through it.

    Args:
        horizon: Rounds of compute, including those given back.
        queries: Largest share of queried rounds.
        falls: Whether the learning rate falls at the end. Before that, noise hides how much a network
            still learns: its slope counts as that of a run that compute binds at least.

    Attributes:
        trials: Expected cost of trials and searches since the last one that found something better, in
            log loss.
        stock: Queries that a share of the clock affords at the beginning of the next step.
    """

    def __init__(self, horizon: int, queries: float, *, falls: bool = False) -> None:
        self.horizon, self._share, self._falls = horizon, queries, falls
        self.curve, self.stock = Curve(), Stock()
        self.spent = self.queries = self.given_back = 0
        self.cost = 0.0
        self.trials = 0.0  # cost of trials since the last that was better
        self.changes = 0
        self.trained = 0  # rounds of the present state
        self._states: dict[int, int] = {}  # number of a kept state -> rounds it was trained for
        self._next = 0
        self._here: int | None = None  # number of the present state, which the next step keeps
        self._dropped: list[int] = []

    @property
    def left(self) -> int:
        """Remaining rounds of compute."""
        return self.horizon - self.spent

    def may_query(self) -> bool:
        """Return whether a further query keeps to the share; early queries may run ahead of it."""
        pace = self._share * self.spent + _EARLY * self.horizon
        return self.queries + 1 <= min(pace, self._share * self.horizon - 1)

    def affords_trial(self, rounds: int, queries: int = 1) -> bool:
        """Return whether rounds end before the last part, and their queries keep to the shares."""
        within = self.queries + queries <= self._share * self.horizon
        in_time = self.spent + rounds <= int(_TRIALS * self.horizon)
        return within and in_time and self.stock.affords(rounds, queries)

    def affords_cost(self, slope: float, rounds: int, promise: float) -> bool:
        """Return whether the account of trials covers rounds; it need not if the run learns so little.

        Args:
            slope: Upper bound of the slope of the run.
            rounds: Rounds that are given back.
            promise: Expected gain, in log loss; a share of it may be spent as well.
        """
        allowed = CONSTANTS.exploring + _PROMISED * promise
        is_cheap = slope < CONSTANTS.level_noise and not self._falls
        return is_cheap or self.trials + self.price(slope, rounds) <= allowed

    def price(self, slope: float, rounds: int) -> float:
        """Return the cost of rounds that are given back now, in log loss at the end."""
        least = CONSTANTS.typical_slope if self._falls else 0.0
        return price(max(slope, least), rounds, self.left)

    @property
    def cost_at_end(self) -> float:
        """Log loss at the end that the rounds given back cost, as the run learns now.

        ``cost`` has the prices at which they were played, with a slope that is bounded on both sides.
        """
        slope = self.curve.latest.expected
        if math.isnan(slope):
            return self.cost
        return max(slope, 0.0) * math.log(self.horizon / max(self.horizon - self.given_back, 1))

    def mark(self) -> int:
        """Mark the present state to be kept; return its number."""
        if self._here is None:
            self._here = self._next
            self._states[self._here] = self.trained
            self._next += 1
        return self._here

    def drop_all_but(self, *stay: int) -> None:
        """Drop all states except some."""
        for number in set(self._states) - set(stay):
            self.drop(number)

    def forget_states(self) -> None:
        """Forget all states because nothing holds them any more."""
        self._here, self._dropped = None, []
        self._states.clear()

    def drop(self, state: int | None) -> None:
        """Drop a state if it is kept."""
        if state is not None and self._states.pop(state, None) is not None:
            self._dropped.append(state)

    def trained_of(self, state: int) -> int:
        """Return the number of rounds that a kept state was trained for."""
        return self._states[state]

    def stand_at(self, state: int) -> None:
        """Set the rounds trained to those of the kept state that the next step starts from."""
        self.trained = self._states[state]

    def play(
        self,
        point: Tensor,
        rounds: int,
        reason: str,
        *,
        state: int | None = None,
        query: bool = True,
        began: int | None = None,
    ) -> Steps[float]:
        """Play rounds, and return the level after them.

        Args:
            point: Encoded configuration, shape ``(d,)``.
            rounds: Number of rounds, at least one.
            reason: Reason, a word or a short sentence.
            state: Number of the state to start from; the present one if omitted.
            query: Whether there is a query at the end.
            began: Rounds of compute at which the schedule stands; those spent if omitted.
        """
        restore = None if state is None or state == self._here else state
        keep = self._here if self._here in self._states else None
        drop = tuple(n for n in self._dropped if n != self._here)
        if state is not None:
            self.stand_at(state)
        began = self.spent if began is None else began
        self._here, self._dropped = None, []
        level = yield Step(
            point, rounds, query, reason, began, self.trained, keep=keep, restore=restore, drop=drop
        )
        self.spent += rounds
        self.trained += rounds
        self.queries += query
        return level

    def play_halves(
        self, point: Tensor, rounds: int, reason: str, *, state: int | None, began: int
    ) -> Steps[tuple[float, float]]:
        """Play rounds, and return the levels after half of them and at the end.

        Arguments are those of ``play``. The first level is NaN if there is no half or no query for it.
        """
        early, half = math.nan, rounds // 2
        if half > 0 and self.affords_trial(rounds, 2):
            early = yield from self.play(point, half, reason, state=state, began=began)
            state, began, rounds = None, began + half, rounds - half
        level = yield from self.play(point, rounds, reason, state=state, began=began)
        return early, level

    def give_back(self, rounds: int, slope: float) -> None:
        """Account for rounds that are not part of the final run."""
        self.given_back += rounds
        self.cost += self.price(slope, rounds)

    def change(self) -> None:
        """Account for a change of the configuration."""
        self.changes += 1
