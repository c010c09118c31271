"""Where a run stands: rounds spent, states kept, and the account of what exploring has cost."""

import math

from torch import Tensor

from botorch_costly.tuners.twins.constants import CONSTANTS
from botorch_costly.tuners.twins.curve import Curve, price
from botorch_costly.tuners.twins.steps import Step, Steps


class Course:
    """The books of a run, and the one way in which its rounds are played.

    Args:
        horizon: Rounds of compute, those given back included.
        credit: What exploring may cost at the end of the run, in log loss.
        queries: The largest share of the rounds that is queried.
    """

    def __init__(self, horizon: int, credit: float, queries: float) -> None:
        self.horizon, self.credit, self._share = horizon, credit, queries
        self.curve = Curve()
        self.spent = self.queries = self.given_back = 0
        self.cost = self.gained = 0.0
        self.changes = 0
        self.trained = 0  # rounds of the present state
        self._states: dict[int, int] = {}  # number of a kept state -> rounds it was trained for
        self._next = 0
        self._here: int | None = None  # number of the present state, which the next step keeps
        self._dropped: list[int] = []

    @property
    def left(self) -> int:
        """Rounds of compute that are left."""
        return self.horizon - self.spent

    def may_query(self) -> bool:
        """Whether a further query keeps the share, with some more allowed at the beginning."""
        pace = self._share * self.spent + CONSTANTS.early_queries * self.horizon
        return self.queries + 1 <= min(pace, self._share * self.horizon - 1)

    def has_room(self, rounds: int, until: int, queries: int = 1) -> bool:
        """Whether rounds end before a round of compute, and their queries keep the share."""
        within = self.queries + queries <= self._share * self.horizon
        return within and self.spent + rounds <= until

    def mark(self) -> int:
        """Have the present state kept; return its number."""
        if self._here is None:
            self._here = self._next
            self._states[self._here] = self.trained
            self._next += 1
        return self._here

    def drop_all_but(self, *stay: int) -> None:
        """Forget all states but some."""
        for number in set(self._states) - set(stay):
            self.drop(number)

    def forget_states(self) -> None:
        """Forget all states, which are not held any more."""
        self._here, self._dropped = None, []
        self._states.clear()

    def drop(self, state: int) -> None:
        """Forget a state."""
        del self._states[state]
        self._dropped.append(state)

    def trained_of(self, state: int) -> int:
        """Return the rounds that a kept state was trained for."""
        return self._states[state]

    def stand_at(self, state: int) -> None:
        """Count the rounds trained from a kept state, which the next step goes on from."""
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
            rounds: At least one.
            reason: In a word or a short sentence.
            state: Number of the state to go on from; the present one if omitted.
            query: Whether there is a query at the end.
            began: Rounds of compute at which the schedule stands; those spent if omitted.
        """
        restore = None if state is None or state == self._here else state
        keep = self._here if self._here in self._states else None
        drop = tuple(n for n in self._dropped if n != self._here)
        if state is not None:
            self.trained = self._states[state]
        began = self.spent if began is None else began
        self._here, self._dropped = None, []
        level = yield Step(
            point, rounds, query, reason, began, self.trained, keep=keep, restore=restore, drop=drop
        )
        self.spent += rounds
        self.trained += rounds
        self.queries += query
        return level

    def give_back(self, rounds: int, slope: float) -> None:
        """Enter rounds that are no part of the run."""
        self.given_back += rounds
        self.cost += price(slope, rounds, self.left)

    def change(self, gained: float) -> None:
        """Enter a change of the configuration, and by how much log loss it was better.

        From a configuration that diverged the gain is not finite, and counted as none.
        """
        self.changes += 1
        self.gained += gained if math.isfinite(gained) else 0.0

    def affords(self, rounds: int, slope: float, promise: float) -> bool:
        """Whether the account covers rounds that are given back.

        Args:
            rounds: That a trial takes.
            slope: Of the run.
            promise: What the trial is expected to gain, in log loss; a share of it adds to the account.
        """
        allowed = self.credit + CONSTANTS.promised_share * promise
        return self.cost + price(slope, rounds, self.left) <= allowed
