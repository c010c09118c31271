"""The tariff of a run: measured seconds of training and validation, and the share validation may take.

Seconds of training and of validation are counted in units, such as steps and examples of ``Validation``,
or rounds and queries of a tuner. The medians of recent ones are the price of a unit.
"""

import logging
import math
import statistics
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from botorch_costly.errors import check, check_rate
from botorch_costly.plain import as_number

NOT_YET = "the share of the clock affords no query yet"  # reason of a round without one
_logger = logging.getLogger(__name__)
_RECENT = 9  # latest spans of which a median is taken
_JUMP = 100.0  # times the median: a span of a suspended machine, not of work
_LEAST_JUMP = 60.0  # seconds that such a span lasts at least
_DECIDING = 0.25  # part of the share that deciding may take
_WATCHING = 0.25  # part of the share that watching takes from readings at most
_AHEAD = 2.0  # times the share that a planned run may have taken early
_ROUNDING = 1e-9  # part of a reading
_FIRST = 0.05  # share of the run by which the first reading is due


def check_overhead(overhead: object) -> float:
    """Return a share of the clock.

    Raises:
        InvalidArgumentError: If it is no number in (0, 1].
    """
    share = check_rate("overhead", as_number("overhead", overhead))
    check(share > 0, "overhead", "a share of the clock in (0, 1]", overhead)
    return share


def check_clock(clock: object) -> None:
    """Raise InvalidArgumentError if a clock cannot be called."""
    expected = "a function that returns seconds, such as time.perf_counter without a call"
    check(callable(clock), "clock", expected, clock)


class Stock(NamedTuple):
    """The readings that a share of the clock affords; fractions count."""

    now: float = math.inf
    per_step: float = 0.0  # further ones for each step of training

    def after(self, steps: int) -> float:
        """Return the number of readings that are affordable after further steps."""
        return self.now + self.per_step * steps

    def affords(
        self, steps: int, count: int = 1, *, left: int | None = None, aside: int = 1
    ) -> bool:
        """Return whether so many readings, at even distances within the next steps, keep to the share.

        Args:
            steps: Steps until the last of the readings.
            count: Number of readings.
            left: Steps until the end of the run; None if unknown.
            aside: Readings that are put aside for the end, unless these readings are there.
        """
        first = self.now + self.per_step * steps / max(count, 1)
        if self.after(steps) < count - _ROUNDING or first < 1 - _ROUNDING:
            return False
        return left is None or left <= steps or self.after(left) - aside >= count - _ROUNDING


class Spans:
    """Seconds of one kind of work: their sum, and the median of the latest per unit.

    The first span, which may include compilation and the start of loaders, counts in the sum; the
    median leaves it out as soon as there is another one.
    """

    def __init__(self) -> None:
        self.total, self.units = 0.0, 0
        self._first = math.nan
        self._recent: deque[float] = deque(maxlen=_RECENT)

    @property
    def unit(self) -> float:
        """Seconds of one unit; NaN before the first span."""
        return statistics.median(self._recent) if self._recent else self._first

    def add(self, seconds: float, units: int) -> None:
        """Add a span of work."""
        seconds = self._without_jump(seconds, units)
        self.total += seconds
        self.units += units
        if math.isnan(self._first):
            self._first = seconds / units
        else:
            self._recent.append(seconds / units)

    def _without_jump(self, seconds: float, units: int) -> float:
        """Return the seconds, or those expected if the clock has gone back or jumped."""
        if 0 <= seconds <= _LEAST_JUMP:  # the median is not needed
            return seconds
        expected = units * self.unit
        is_jump = seconds > max(_JUMP * expected, _LEAST_JUMP) if self._recent else False
        if seconds >= 0 and not is_jump:
            return seconds
        _logger.warning("The clock jumped by %.3g s; the span counts as usual.", seconds)
        return max(expected, 0.0) if math.isfinite(expected) else 0.0

    def state_dict(self) -> dict[str, Any]:
        """Return the state in plain values."""
        return {
            "total": self.total,
            "units": self.units,
            "first": self._first,
            "recent": list(self._recent),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.total, self.units, self._first = state["total"], state["units"], state["first"]
        self._recent = deque(state["recent"], maxlen=_RECENT)


class Tariff:
    """The clock of a run, split into training, validation, deciding when to validate, and watching.

    Deciding are calls that ask the belief, which can wait; watching are the short ones of all steps.

    Args:
        share: Largest share of the clock that validation and deciding may take, in (0, 1].
        clock: Function that returns seconds.

    Raises:
        InvalidArgumentError: If the clock cannot be called.
    """

    def __init__(self, share: float, clock: Callable[[], float] = time.perf_counter) -> None:
        check_clock(clock)
        self.share, self._clock = share, clock
        self.training, self.validation = Spans(), Spans()
        self.deciding, self.watching = Spans(), Spans()
        self._mark: float | None = None
        self._kept = 0.0  # seconds of training that the next span of training includes
        # Units of training that have ended in the span that was begun, and when the latest one did.
        self._passed, self._latest = 0, 0.0

    def mark(self) -> None:
        """Begin a span of work."""
        self._settle()
        self._mark = self._clock()

    def end(self, spans: Spans, units: int = 1) -> None:
        """End the span that was begun, and begin the next one."""
        now = self._clock()
        is_training = spans is self.training
        if is_training:
            self._passed, self._latest = self._passed + units, now
        self._settle()
        if not is_training and self._mark is not None and units > 0:
            spans.add(now - self._mark, units)
        self._mark = now

    def count(self, units: int) -> None:
        """Count units of training that have ended, without an end of the span; takes less time."""
        self._passed += units
        self._latest = self._clock()

    def _settle(self) -> None:
        """End the training that was counted, at its latest unit."""
        if self._passed and self._mark is not None:
            self.training.add(self._latest - self._mark + self._kept, self._passed)
            self._mark, self._kept = self._latest, 0.0
        self._passed = 0

    def keep(self) -> None:
        """Keep the span that was begun for the next one of training, and begin another one."""
        self._settle()
        now = self._clock()
        if self._mark is not None:
            self._kept += now - self._mark
        self._mark = now

    @property
    def used(self) -> float:
        """Share of the clock that validation and deciding have taken; 0 before any work."""
        self._settle()
        spent = self._spent + self.watching.total
        total = self.training.total + spent
        return spent / total if total > 0 else 0.0

    @property
    def _spent(self) -> float:
        return self.validation.total + self.deciding.total

    @property
    def affords_decision(self) -> bool:
        """Whether deciding has taken less than its part of the share."""
        return (
            self.share >= 1 or self.deciding.total <= _DECIDING * self.share * self.training.total
        )

    def budget(self, steps_ahead: int = 0) -> float:
        """Return the seconds of validation in the share of a run that goes on for further steps."""
        if self.share >= 1:
            return math.inf
        ahead = steps_ahead * self.training.unit if steps_ahead else 0.0
        training = self.training.total + (ahead if math.isfinite(ahead) else 0.0)
        return self.share / (1 - self.share) * training

    def allowance(self, steps_ahead: int = 0, pace: float = 0.0) -> float:
        """Return the seconds of validation that the share leaves.

        Args:
            steps_ahead: Further steps that count.
            pace: Power of the part of the training that is over, as a factor of the budget: with 1 the
                further steps do not count, with 0 they do as if they were over. Above 0 at most twice the
                share is taken at any moment, so that an end that is expected too late costs no more.
        """
        budget, now = self.budget(steps_ahead), self.budget()
        if pace > 0 and now > 0 and math.isfinite(budget):
            budget = min(budget * (now / budget) ** pace, _AHEAD * now)
        watching = min(self.watching.total, _WATCHING * now)
        return budget - self._spent - watching

    def stock(self) -> Stock:
        """Return how many units of validation are affordable, by the seconds measured so far."""
        price, now = self.validation.unit, self.readings_in(self.allowance(), 1)
        if math.isinf(now) or price <= 0:
            return Stock(now)
        per_step = self.share / (1 - self.share) * self.training.unit / price
        return Stock(now, per_step if math.isfinite(per_step) else 0.0)

    def readings_in(self, allowance: float, units: int) -> float:
        """Return how many readings of so many units some seconds of validation afford."""
        price = self.validation.unit * units
        if math.isinf(allowance) or price <= 0:
            return math.inf if allowance > 0 else 0.0
        return allowance / price

    def affords_first(self, step: int, steps: int | None, ahead: int = 0, pending: int = 0) -> bool:
        """Return whether the first reading is due, whose price is unknown.

        That of one step of training is assumed, and a debt is paid back before the next reading.

        Args:
            step: Steps so far.
            steps: Steps of the run; None if unknown. After a twentieth of them a first reading is due.
            ahead: Further steps before the reading.
            pending: Earlier readings that are not measured yet.
        """
        is_late = not pending and steps is not None and step >= _FIRST * steps
        return is_late or self.allowance(ahead) >= (1 + pending) * self.training.unit

    def state_dict(self) -> dict[str, Any]:
        """Return the state in plain values; a span that was begun is no part of it."""
        self._settle()
        return {name: spans.state_dict() for name, spans in self._all.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state; those of earlier versions lack the seconds of watching."""
        for name, spans in self._all.items():
            if name in state or name != "watching":
                spans.load_state_dict(state[name])
        self._mark, self._kept, self._passed = None, 0.0, 0

    @property
    def _all(self) -> dict[str, Spans]:
        names = ("training", "validation", "deciding", "watching")
        return {name: getattr(self, name) for name in names}
