"""The tariff of a tuner: the clock of its rounds, split into training, queries, and the tuner itself."""

import copy
import math
from collections.abc import Callable
from typing import Any

from botorch_costly.ask_tell.state import Undo, states_of
from botorch_costly.ask_tell.tariff import Stock, Tariff, check_clock, check_overhead


class RoundTariff(Tariff):
    """Splits the seconds between calls of ``ask`` and ``tell`` into training and queries.

    A round lasts from one ``ask`` to the next one. Without an outcome told in it, all of its seconds are
    training. With outcomes, the seconds told are those of the queries; if one was told without them, the
    queries took what exceeds a usual round of training. Seconds of more than the round cannot be a part
    of it, as those of another machine: they count as well, and the round is training.
    """

    _elapsed = 0.0  # of the present round, without the tuner's own time
    _is_running = False  # whether there is a present round
    _queries = 0  # told in it
    _seconds: float | None = 0.0  # of these queries; None if one was told without

    def snapshot(self) -> Undo:
        """Begin to measure a call; return a function that undoes it, so that the round goes on."""
        self._elapse()
        return states_of(self, copies=False)

    def begin_round(self) -> None:
        """Begin a round, and end the present one."""
        if self._is_running:
            self._end_round()
        self._is_running = True

    def tell(self, queries: int, seconds: float | None) -> None:
        """Note queries of which the outcomes are told.

        Args:
            queries: Number of queries.
            seconds: Seconds of all of them, if known.
        """
        self._queries += queries
        known = self._seconds is not None and seconds is not None
        self._seconds = (self._seconds or 0.0) + (seconds or 0.0) if known else None

    def decided(self) -> None:
        """End the call, whose seconds are the tuner's own."""
        self.end(self.deciding)

    def _elapse(self) -> None:
        """Add the seconds since the latest mark to the present round."""
        now = self._clock()
        if self._mark is not None:
            self._elapsed += now - self._mark
        self._mark = now

    def _end_round(self) -> None:
        """Split the seconds of a round that ends."""
        elapsed, told = self._elapsed, self._seconds
        usual = self.training.unit
        if self._queries and told is None and math.isfinite(usual):
            told = max(elapsed - usual, 0.0) if elapsed >= 0 else elapsed
        if self._queries and told is not None:
            self.validation.add(told, self._queries)
            elapsed -= told if 0 <= told <= elapsed else 0.0
        self.training.add(elapsed, 1)
        self._elapsed, self._queries, self._seconds = 0.0, 0, 0.0

    def stock_in(self, round: int, horizon: int | None, pending: int = 0) -> Stock:
        """Return how many queries are affordable before a round, besides those that are pending.

        Before the first query its price is unknown: it is due, or none is affordable. The first round is
        never queried, unless the share sets no limit: it tells the seconds of training.

        Args:
            round: Number of the round, from 0.
            horizon: Rounds of the run; None if unknown.
            pending: Queries that have not been told, and are paid for later.
        """
        if self.share >= 1 or math.isfinite(self.validation.unit):
            stock = self.stock()
            return stock._replace(now=stock.now - pending)
        is_due = self.affords_first(round + 1, horizon, ahead=1, pending=pending)
        return Stock() if is_due and self.training.units > 0 else Stock(0.0)

    def summary(self, rounds: int, per_round: int = 1) -> str:
        """Return a sentence on the share that queries took, and on that of a query in every round.

        Args:
            rounds: Rounds so far.
            per_round: Queries of a round with all of them.
        """
        now = copy.copy(self)
        if self._queries:  # the present round has not ended
            now._elapse()
            now._end_round()
        spent, price = now.validation.total, now.validation.unit
        took = (
            f"queries took {spent:.3g} s, and they and the tuner {now.used:.2%} of the clock (at most "
            f"{self.share:.3g} was allowed)"
        )
        if not math.isfinite(price):
            return f"{took}; no query has been measured"
        every = price * rounds * per_round
        return f"{took}; {max(every - spent, 0):.3g} s less than queries in every round ({every:.3g} s)"

    def state_dict(self) -> dict[str, Any]:
        """Return the state in plain values, with the seconds of the present round so far."""
        elapsed = self._elapsed + (0.0 if self._mark is None else self._clock() - self._mark)
        present = {"elapsed": elapsed, "queries": self._queries, "seconds": self._seconds}
        return {**super().state_dict(), **present, "running": self._is_running}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state; the present round goes on from now."""
        super().load_state_dict(state)
        self._elapsed, self._queries = float(state["elapsed"]), int(state["queries"])
        self._seconds, self._is_running = state["seconds"], bool(state["running"])
        self._mark = self._clock()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a copy or a pickle, whose present round goes on when it is restored."""
        return {"share": self.share, "clock": self._clock, "state": self.state_dict()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        Tariff.__init__(self, state["share"], state["clock"])
        self.load_state_dict(state["state"])


def tariff_of(overhead: float | None, clock: Callable[[], float]) -> RoundTariff | None:
    """Return the tariff of a tuner; None without an overhead.

    Raises:
        InvalidArgumentError: If the overhead is no number in (0, 1], or the clock cannot be called.
    """
    check_clock(clock)
    return None if overhead is None else RoundTariff(check_overhead(overhead), clock)
