"""The seconds that a run may take, and the number of rounds that they are expected to hold."""

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from botorch_costly.errors import HorizonExceededError, check, check_positive
from botorch_costly.plain import as_number

# State before the first round.
UNUSED: Mapping[str, Any] = {"elapsed": 0.0, "begun": 0, "first": None}
_MOMENT = 0.05  # share of the seconds


class TimeLimit:
    """Seconds of the clock from the first ``ask`` on, without those between a state and its loading.

    A round may begin as long as there is time left, and may end later. A loop that asks for a round a
    moment after ``is_over`` has said that time is left is not refused.

    Args:
        seconds: Seconds of the run.
        clock: Function that returns seconds.

    Raises:
        InvalidArgumentError: If the seconds are no positive number.
    """

    def __init__(self, seconds: float, clock: Callable[[], float] = time.perf_counter) -> None:
        self.seconds = float(check_positive("seconds", as_number("seconds", seconds)))
        self._clock = clock
        self._earlier = 0.0  # seconds before the mark
        self._mark: float | None = None  # when the clock was started or a state was loaded
        self._begun = 0  # rounds that have begun on this clock
        self._until = 0.0  # seconds up to which the next round may begin
        # Number of rounds, and seconds, after the first round on this clock, which may include
        # compilation and the start of loaders.
        self._first: tuple[int, float] | None = None

    @property
    def elapsed(self) -> float:
        """Seconds so far; 0 before the first ``ask``."""
        since = 0.0 if self._mark is None else max(self._clock() - self._mark, 0.0)
        return self._earlier + since

    @property
    def is_over(self) -> bool:
        """Whether no time is left; otherwise the next round may begin in a moment, too."""
        elapsed = self.elapsed
        self._until = elapsed + _MOMENT * self.seconds if elapsed < self.seconds else 0.0
        return elapsed >= self.seconds

    def begin_round(self, number: int) -> None:
        """Note that a round begins.

        Args:
            number: Number of the round, from 0.

        Raises:
            HorizonExceededError: If no time is left.
        """
        if self._mark is None:
            self._mark = self._clock()
        if self._begun == 1:
            self._first = (number, self.elapsed)
        elapsed, until = self.elapsed, max(self.seconds, self._until)
        expected, passed = f"at most {self.seconds:g} seconds", f"{elapsed:.4g} seconds"
        check(elapsed < until, "ask", expected, passed, HorizonExceededError)
        self._until = 0.0
        self._begun += 1

    def rounds(self, number: int) -> int | None:
        """Return how many rounds the run is expected to have; None before the third on this clock.

        Args:
            number: Number of rounds so far.
        """
        if self._first is None or number <= self._first[0]:
            return None
        elapsed, (earlier, began) = self.elapsed, self._first
        pace = (elapsed - began) / (number - earlier)
        left = max(self.seconds - elapsed, 0.0)
        return number + math.ceil(left / pace) if pace > 0 else None

    def state_dict(self) -> dict[str, Any]:
        """Return the seconds so far in plain values."""
        return {"elapsed": self.elapsed, "begun": self._begun, "first": self._first}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from a state; the clock goes on now."""
        first, elapsed, begun = state["first"], float(state["elapsed"]), int(state["begun"])
        self._first = None if first is None else (int(first[0]), float(first[1]))
        self._earlier, self._begun = elapsed, begun
        self._mark = self._clock() if begun > 0 else None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for a copy or a pickle, whose clock goes on when it is restored."""
        return {"seconds": self.seconds, "clock": self._clock, "state": self.state_dict()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        TimeLimit.__init__(self, state["seconds"], state["clock"])
        self.load_state_dict(state["state"])
