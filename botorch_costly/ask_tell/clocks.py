"""The clocks of a run: the share that queries take, and the seconds that all of it may take."""

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from botorch_costly.ask_tell.round_tariff import RoundTariff
from botorch_costly.ask_tell.state import Undo, attributes_of, both
from botorch_costly.ask_tell.tariff import check_clock, check_overhead
from botorch_costly.ask_tell.time_limit import UNUSED, TimeLimit

_OFTEN = 8  # readings of the end of a run without one, as of a loop: others ask once in a fit
_logger = logging.getLogger(__name__)


class Clocks:
    """Measures the rounds of an optimizer; no clock is read without a share and a limit.

    Args:
        seconds: Seconds that the run may take, from the first ``ask`` on; no limit if omitted.
        overhead: Largest share of the clock that queries and the optimizer may take; no limit if omitted.
        clock: Function that returns seconds.

    Raises:
        InvalidArgumentError: If the seconds are no positive number, the share is not in (0, 1], or the
            clock cannot be called.
    """

    def __init__(
        self,
        seconds: float | None = None,
        overhead: float | None = None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        check_clock(clock)
        self._readings = 0
        self.limit = None if seconds is None else TimeLimit(seconds, clock)
        self.tariff = None if overhead is None else RoundTariff(check_overhead(overhead), clock)

    @property
    def seconds(self) -> float | None:
        """Seconds that the run may take; None without a limit."""
        return None if self.limit is None else self.limit.seconds

    @property
    def overhead(self) -> float | None:
        """Largest share of the clock that queries and the optimizer may take; None without a limit."""
        return None if self.tariff is None else self.tariff.share

    @property
    def is_over(self) -> bool:
        """Whether there is a limit, and no time is left."""
        return self.limit is not None and self.limit.is_over

    def warn_of_no_end(self, horizon: int | None) -> None:
        """Warn once that a loop until the end does not stop, if there is none.

        Args:
            horizon: Largest number of rounds, if known.
        """
        if horizon is None and self.limit is None:
            self._readings += 1
            if self._readings == _OFTEN:
                _logger.warning(
                    "is_over stays False, for neither horizon= nor seconds= was given: a loop until "
                    "is_over needs one of them, or another end."
                )

    @property
    def affords_decision(self) -> bool:
        """Whether the optimizer's own time keeps to its part of the share."""
        return self.tariff is None or self.tariff.affords_decision

    def rounds(self, number: int, horizon: int | None) -> int | None:
        """Return how many rounds the run is expected to have; None if that is unknown.

        Args:
            number: Number of rounds so far.
            horizon: Largest number of rounds, if known.
        """
        in_time = None if self.limit is None else self.limit.rounds(number)
        known = [rounds for rounds in (horizon, in_time) if rounds is not None]
        return min(known, default=None)

    def snapshot(self) -> Undo:
        """Begin to measure a call; return a function that undoes it."""
        undo = attributes_of() if self.limit is None else attributes_of(self.limit)
        return undo if self.tariff is None else both(undo, self.tariff.snapshot())

    def begin_round(self, number: int) -> None:
        """Note that a round begins.

        Raises:
            HorizonExceededError: If no time is left.
        """
        if self.limit is not None:
            self.limit.begin_round(number)
        if self.tariff is not None:
            self.tariff.begin_round()

    def tell(self, queries: int, seconds: float | None) -> None:
        """Note queries whose outcomes are told, and their seconds if known."""
        if self.tariff is not None:
            self.tariff.tell(queries, seconds)
            self.tariff.decided()

    def decided(self) -> None:
        """End a call, whose seconds are the optimizer's own."""
        if self.tariff is not None:
            self.tariff.decided()

    def summary(self, rounds: int, per_round: int) -> list[str]:
        """Return a sentence for each of the limits that there is, after some rounds."""
        limit, tariff = self.limit, self.tariff
        spent = [] if limit is None else [f"{limit.elapsed:.4g} of {limit.seconds:g} seconds"]
        return [*spent, *([] if tariff is None else [tariff.summary(rounds, per_round)])]

    def state_dict(self) -> dict[str, Any]:
        """Return the states of the clocks that there are."""
        named = {"tariff": self.tariff, "limit": self.limit}
        return {name: part.state_dict() for name, part in named.items() if part is not None}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue with the clocks that the header of a state names; a limit without one begins anew."""
        named = state["header"]
        if self.tariff is not None and named.get("overhead", "None") != "None":
            self.tariff.load_state_dict(state["tariff"])
        if self.limit is not None:
            had_limit = named.get("seconds", "None") != "None"
            self.limit.load_state_dict(state["limit"] if had_limit else UNUSED)
