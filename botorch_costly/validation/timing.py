"""When a reading of the validation set pays: the rule of ``Validation``, a function of its belief."""

import logging
import math
import sys
from typing import Any, NamedTuple

from botorch_costly.ask_tell.tariff import Tariff
from botorch_costly.validation.options import Options
from botorch_costly.validation.partial import PartialReading, Rules
from botorch_costly.validation.readings import Readings
from botorch_costly.validation.stopping import LEAST
from botorch_costly.validation.training_loss import TrainingLoss

_logger = logging.getLogger(__name__)
_PACE = 0.7  # power of the part of a planned run that is over: the part of the share that is due
_READINGS = 20  # of part of the examples, among which the share of the run is divided at most
_STOCK = 2.0  # credit at which a reading is due whatever the belief is
_REACHED = 0.6  # probability of having reached the target, times the credit, at which one is due
_IMPROVEMENT = 0.05  # expected improvement at which one is due, in units of that of the run so far,
_SPARE = 1.5  # with so much credit
_CHECKS = 128  # the belief is asked again after one of so many shares of the steps so far
_LAST = "the last step"  # reason of a reading
_LONG = 300.0  # seconds until a first reading that is warned of, where the end is unknown
_FEW = 3  # steps after which their price is known
_PRICED = 2  # readings after which theirs is
_BEYOND = 2.0  # times the patience that the share needs for a reading, from which on that is said
_RATIO = 1.6  # of the steps at two readings, at which one is due if the share sets no limit


class Outlook(NamedTuple):
    """The value of a reading now."""

    reaches_target: float  # probability of having reached the target; 0 without one, or after it
    improvement: float  # expected improvement of the best value
    improved: float  # of the best value over the worst one, so far
    ratio: float  # of this step to that of the latest reading
    credit: float  # readings that the share of the clock affords; inf without a limit


def pays(outlook: Outlook) -> str | None:
    """Return the reason for a reading, or None if it does not pay.

    A reading waits until the share affords two, so that there is always one in stock for the moment at
    which the belief says that it shows the target, or a large improvement. Readings are regular while the
    belief says nothing; however wrong it is, none is later than the stock allows.
    """
    credit = outlook.credit
    if credit < 1:
        return None
    if math.isinf(credit) and outlook.ratio >= _RATIO:
        return f"the run is {outlook.ratio:.2g} times as long as at the latest reading"
    if _STOCK <= credit < math.inf:
        return f"the share of the clock affords {credit:.2g} readings"
    if outlook.reaches_target > _REACHED / min(credit, _STOCK):
        return f"the target is reached with a probability of {outlook.reaches_target:.2g}"
    if credit >= _SPARE and outlook.improvement > _IMPROVEMENT * outlook.improved:
        return f"an improvement by {outlook.improvement:.2g} is expected"
    return None


class Timing:
    """When the next reading is made, and of how many examples.

    Args:
        options: Options of the run.
        rules: Options of partial readings; None for readings of the whole set.
        tariff: Measured seconds.
        training: Training loss.
        history: Readings so far.
    """

    def __init__(
        self,
        options: Options,
        rules: Rules | None,
        tariff: Tariff,
        training: TrainingLoss,
        history: Readings,
    ) -> None:
        self._options, self._rules = options, rules
        self._tariff, self._training, self._history = tariff, training, history
        self.expected: int | None = None  # last step, if the options name none
        self.next_check = -1  # step at which the belief is asked again
        self._next_look = -1  # first step that may be read
        self.has_spiked = False  # since the latest reading
        self.has_asked = False  # the belief, at the latest step
        self.reason = "no step yet"
        self._was_last = False  # whether the latest step was read as the last one
        # Of the seconds until the first reading, and of a patience that the share does not afford.
        self._has_warned = self._is_impatient = False
        self._averages = False  # whether averages of weights are read, too

    def is_average_due(self, step: int) -> bool:
        """Return whether an average of weights is read after the reading of a step."""
        self._averages = True
        is_read = self._history.has(step)
        if is_read and (self._was_last or self._credit(step) >= 1):
            self.reason = "the average of weights"
            return True
        return False

    @property
    def steps(self) -> int | None:
        """Last step of the run by the options, or as it is expected; None if it is unknown."""
        return self.expected if self._options.steps is None else self._options.steps

    def note_last(self, *, last: bool) -> None:
        """Note that the latest step, which is read, is the last one."""
        if last:
            self.reason, self._was_last = _LAST, True

    def may_pass(self, step: int, since: int) -> bool:
        """Return whether a step cannot be read, without a look at the clock or the belief.

        Args:
            step: The step.
            since: The step before it.
        """
        return since < step < self._next_look and not self._training.has_spiked

    def _look_again(self, step: int) -> int:
        """Return the first step after one that may be read."""
        known = [self.next_check, *(at for at in self._options.read_at if at > step)]
        end = self.steps
        return min(known if end is None or end <= step else [*known, end])

    def is_due(self, step: int, since: int, *, last: bool) -> bool:
        """Return whether a step is read; ``reason`` says why.

        Args:
            step: The step.
            since: The step before it, perhaps by more than one.
            last: Whether it is the last one.
        """
        reason, self.has_asked = self._demanded(step, since, last=last), False
        if reason is None and (step >= self.next_check or self._training.has_spiked):
            self._training.read()
            self.has_spiked |= self._training.take_spike()
            self.next_check = step + max(1, step // _CHECKS)
            reason = self._paying(step) if self._history.all else self._first(step)
        self._next_look = self._look_again(step)
        if reason is None:
            return False
        self.reason, self.has_spiked = reason, False
        return True

    def _demanded(self, step: int, since: int, *, last: bool) -> str | None:
        """Return the reason for a reading whatever it costs."""
        end = self.steps
        self._was_last = last or (end is not None and since < end <= step)
        if self._was_last:
            return _LAST
        is_known = any(since < known <= step for known in self._options.read_at)
        return "a step of read_at" if is_known else None

    def _first(self, step: int) -> str | None:
        """Return the reason for the first reading, or None."""
        self.reason = "the first reading waits for training to begin"
        is_due = self._tariff.affords_first(step, self.steps)
        if not is_due:
            self._warn_of_wait(step)
        return "the first reading" if is_due else None

    def _warn_of_wait(self, step: int) -> None:
        """Warn once if the first reading comes late, as after the end of a run of few, long steps."""
        is_planned = self.steps is not None or any(at > step for at in self._options.read_at)
        is_known = self._has_warned or self._history.count > 0
        if is_planned or is_known or self._tariff.training.units < _FEW:
            return
        unit, overhead = self._tariff.training.unit, self._options.overhead
        wait = unit * (1 - overhead) / overhead
        if wait >= _LONG:
            self._has_warned = True
            _logger.warning(
                "A step takes %.3g s, and the first reading waits for about %d of them, until "
                "overhead=%.3g pays for the length of one. If the run has fewer, give its last step as "
                "steps=, or call due after each batch.",
                *(unit, math.ceil(wait / unit), overhead),
            )

    def _paying(self, step: int) -> str | None:
        """Return the reason for a reading that the share affords, or None."""
        if self.has_spiked and self._credit(step, runs_ahead=True) >= 1:
            return "the training loss has spiked"
        credit, since = self._credit(step), step - self._history.latest
        if credit < 1:
            self.reason = f"{100 * self._options.overhead:.3g} % of the clock afford no reading yet"
            self._warn_of_patience(since)
            return None
        if self._options.patience is not None and since >= self._options.patience:
            return f"{since} steps without a reading"
        self.reason = "a reading is not worth its price"
        ratio = (step + 1) / (self._history.latest + 1)
        blind = Outlook(0.0, 0.0, 0.0, ratio, credit)
        reason = pays(blind)
        if reason is None and self._tariff.affords_decision:  # only then the belief matters
            self.has_asked = True
            reason = pays(self._outlook(step, blind))
        return reason

    def _warn_of_patience(self, since: int) -> None:
        """Warn once if the share affords readings that are much further apart than the patience."""
        patience, overhead = self._options.patience, self._options.overhead
        step, is_known = self._tariff.training.unit, self._history.count >= _PRICED
        if patience is None or self._is_impatient or not (is_known and step > 0):
            return
        reading = self._price() / step  # in steps
        wait = reading * (1 - overhead) / overhead
        if min(wait, since) >= _BEYOND * patience:
            self._is_impatient = True
            _logger.warning(
                "patience=%d is not kept: a reading takes as long as %.3g steps, and %.3g %% of the "
                "clock afford one in %d steps. Raise overhead, or read fewer examples. (patience bounds "
                "the steps between two readings; what ends a run early is false_stop.)",
                *(patience, reading, 100 * overhead, math.ceil(wait)),
            )

    def _credit(self, step: int, *, runs_ahead: bool = False) -> float:
        """Return the number of readings that the share affords at a step."""
        allowance = self._allowance(step, runs_ahead=runs_ahead)
        return self._tariff.readings_in(allowance, self._units())

    def _units(self) -> int:
        """Return the examples that a reading is expected to take; 1 for readings of the whole set."""
        first = 1 if self._rules is None else self._rules.first_plan()
        return self._history.examples or first

    def _price(self) -> float:
        """Return the seconds that a reading is expected to take."""
        return self._tariff.validation.unit * self._units()

    def _allowance(self, step: int, *, runs_ahead: bool = False) -> float:
        """Return the seconds of validation that the share leaves at a step.

        Where the end is known the share is that of the whole run. Early readings, in which the curve
        changes most, run ahead of an even pace; the last one is put aside.

        Args:
            step: The step.
            runs_ahead: Whether a reading may take all that is left, as that of a spike.
        """
        if self.steps is None or step >= self.steps:
            return self._tariff.allowance()
        ahead = self.steps - step
        readings = 2 if self._averages else 1  # of the last step
        at_the_end = self._tariff.allowance(ahead) - readings * self._price()
        return min(self._tariff.allowance(ahead, 0.0 if runs_ahead else _PACE), at_the_end)

    def _outlook(self, step: int, blind: Outlook) -> Outlook:
        """Return the value of a reading at a step by the belief, if a reading has succeeded."""
        history, target = self._history, self._options.target
        if history.belief is None or history.best is None:
            return blind
        forecast, reaches = history.belief.at(step, self._training.level), 0.0
        if target is not None and history.best.value > self._options.sign * target:
            reaches = forecast.below(self._options.sign * target)
        improvement = forecast.improvement(history.lowest)
        return Outlook(reaches, improvement, history.improved, blind.ratio, blind.credit)

    def reading(self, step: int, rules: Rules) -> PartialReading:
        """Return a new reading of part of the examples at a step.

        Many readings of few examples find better checkpoints than few of many.
        """
        best, most = self._history.best, self._most(step, rules)
        if best is None or best.losses is None:
            return PartialReading(rules, None, rules.first_plan(), most)
        planned = min(max(most // 2, rules.least()), len(best.losses))
        return PartialReading(rules, best.losses, planned, most)

    def _most(self, step: int, rules: Rules) -> int:
        """Return the largest number of examples of a reading.

        A run whose end is unknown is expected to last as long again.
        """
        end = 2 * step if self.steps is None else self.steps
        budget = self._tariff.budget(max(end - step, 0))
        unit = self._tariff.validation.unit
        if not (unit > 0 and math.isfinite(budget)):
            return rules.population
        return min(max(int(budget / unit / _READINGS), rules.least()), rules.population)

    def affordable(self, step: int) -> int:
        """Return the number of further examples that the share of the clock leaves at a step."""
        unit, allowance = self._tariff.validation.unit, self._allowance(step)
        is_limited = unit > 0 and math.isfinite(allowance)
        return max(int(allowance / unit), 0) if is_limited else sys.maxsize

    def should_stop(self, step: int) -> bool:
        """Return whether the rest of the run is unlikely to improve the metric; see ``Validation``."""
        limit, history, last = self._options.false_stop, self._history, self._options.steps or 0
        if limit is None or history.best is None or history.successes < LEAST:
            return False
        if step < max(self._options.read_at, default=0):  # the rate still has to fall
            return False
        return history.improves(history.lowest - self._options.min_delta, last) < limit

    def warn_of_price(self, step: int) -> None:
        """Warn once, after the first reading, if the share of the whole run affords no such reading."""
        end, price = self.steps, self._price()
        if self._history.count != 1 or end is None or step >= end:
            return
        budget = self._tariff.budget(end - step)
        if price > budget:
            _logger.warning(
                "A reading took %.3g s, and %.3g %% of the clock of the whole run are %.3g s: the next "
                "one is that of the last step. Raise overhead, or read fewer examples.",
                *(price, 100 * self._options.overhead, budget),
            )

    def state_dict(self) -> dict[str, Any]:
        """Return the state in plain values."""
        return {
            "next": self.next_check,
            "spiked": self.has_spiked,
            "reason": self.reason,
            "averages": self._averages,
            "last": self._was_last,
            "expected": self.expected,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.next_check, self.has_spiked = state["next"], state["spiked"]
        self.reason = state["reason"]
        # States of earlier versions lack these.
        self._averages, self._was_last = state.get("averages", False), state.get("last", False)
        self.expected = state.get("expected")
