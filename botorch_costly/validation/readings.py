"""The readings of a run, the best checkpoint among them, and the belief about the curve."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

from torch import Tensor

from botorch_costly.ask_tell.tariff import Tariff
from botorch_costly.errors import InvalidCallError
from botorch_costly.validation.belief import CurveBelief, Reading
from botorch_costly.validation.partial import PartialReading, Rules
from botorch_costly.validation.stopping import improves


class Checkpoint(NamedTuple):
    """A checkpoint that was read; lower values are better."""

    step: int
    value: float
    losses: Tensor | None  # of its examples in the order of drawing, shape: (n,)
    averaged: bool = False  # whether it is an average of weights, which the curve leaves out


class Best(NamedTuple):
    """The best checkpoint so far, as ``Validation`` reports it; its fields are attributes."""

    step: int
    value: float  # estimated mean of the metric over the whole set
    interval: tuple[float, float] | None  # of this mean; None if the whole set was read
    examples: int | None  # that were read; None for a metric on the whole set
    averaged: bool = False  # whether it is the average of weights, see ``Validation.due_average``

    def __call__(self) -> NoReturn:
        """Raise InvalidCallError: ``best`` is a method of optimizers, and no method of ``Validation``."""
        raise InvalidCallError("best", "validation.best without brackets, an attribute", "a call")


class Readings:
    """The readings of a run; the latest one may still be in progress."""

    def __init__(self) -> None:
        self.all: list[Reading] = []  # without those of steps that training went back behind
        self.best: Checkpoint | None = None
        self.before: Checkpoint | None = None  # the best one before the latest reading
        self.examples = 0  # that the latest reading had, if it was of part of the set
        self.count = self.failures = 0
        self._has_failed = False  # the latest reading
        self._belief: CurveBelief | None = None
        # A value, and the probability that the rest of the run goes below it.
        self._improves: tuple[float, float] | None = None

    @property
    def latest(self) -> int:
        """Step of the latest reading; 0 before the first."""
        return self.all[-1].step if self.all else 0

    def has(self, step: int) -> bool:
        """Return whether the latest reading is of a step."""
        return bool(self.all) and self.latest == step

    @property
    def successes(self) -> int:
        """Number of readings with a finite value."""
        return sum(math.isfinite(reading.value) for reading in self.all)

    @property
    def improved(self) -> float:
        """Improvement of the best value over the worst one; 0 before the first."""
        values = [reading.value for reading in self.all if math.isfinite(reading.value)]
        return max(values) - self.best.value if values and self.best is not None else 0.0

    @property
    def lowest(self) -> float:
        """Best value of a checkpoint; of the curve alone if the best one is an average of weights.

        An average improves with the curve, which may never be as low itself. NaN before the first.
        """
        if self.best is not None and not self.best.averaged:
            return self.best.value
        values = (reading.value for reading in self.all if math.isfinite(reading.value))
        return min(values, default=math.nan)

    @property
    def belief(self) -> CurveBelief | None:
        """The belief given all readings; None before the first successful one."""
        if self._belief is None and self.successes:
            self._belief = CurveBelief(self.all)
        return self._belief

    def improves(self, wanted: float, last: int) -> float:
        """Return a bound of the probability that the rest of a run has a value below ``wanted``."""
        if self._improves is None or self._improves[0] != wanted:
            self._improves = wanted, improves(self.all, wanted, last)
        return self._improves[1]

    @property
    def latest_is_best(self) -> bool:
        """Whether the latest reading, if it is not closed, is of the best checkpoint."""
        return self.best is not None and self.best is not self.before

    def reported(self, rules: Rules | None, sign: float) -> Best | None:
        """Return the best checkpoint with its interval, in the units of the metric.

        Args:
            rules: Options of partial readings, if there are any.
            sign: Factor with which values become losses.
        """
        best = self.best
        if best is None:
            return None
        interval, examples = None, None if rules is None else rules.population
        if best.losses is not None and rules is not None:
            interval, examples = rules.interval(best.losses), len(best.losses)
            if interval is not None and sign < 0:
                interval = -interval[1], -interval[0]
        return Best(best.step, sign * best.value, interval, examples, best.averaged)

    def close(self) -> None:
        """End the latest reading; its checkpoint counts as it stands."""
        self.before = self.best

    def go_back(self, step: int) -> None:
        """Forget the readings after a step; the best checkpoint is a file, and stays."""
        self.all = [reading for reading in self.all if reading.step <= step]
        self._belief = self._improves = None

    def restore(self, good: int, now: int) -> None:
        """Forget the readings after a good step, whose network is the one of the present step again."""
        self.go_back(good)
        if self.all:
            self.all[-1] = self.all[-1]._replace(step=now)

    def record_whole(self, reading: Reading, *, averaged: bool = False) -> None:
        """Add a reading of the whole set."""
        is_better = self.before is None or reading.value < self.before.value
        self._record(reading, None, is_new=True, is_better=is_better, averaged=averaged)

    def record(
        self, step: int, partial: PartialReading, training: float, *, is_new: bool, averaged: bool
    ) -> None:
        """Add a reading of part of the set, or replace the latest one, which has more examples now."""
        before = self.before
        value = partial.value(None if before is None else before.value)
        is_compared = before is None or before.losses is not None
        is_better = (
            partial.is_better if is_compared else before is not None and value < before.value
        )
        self.examples = len(partial.losses)
        reading = Reading(step, value, partial.variance, training)
        self._record(reading, partial.losses, is_new=is_new, is_better=is_better, averaged=averaged)

    def _record(
        self,
        reading: Reading,
        losses: Tensor | None,
        *,
        is_new: bool,
        is_better: bool,
        averaged: bool,
    ) -> None:
        is_finite = math.isfinite(reading.value)
        if not is_new:
            self.failures -= self._has_failed
        self.count += is_new
        self._has_failed = not is_finite
        self.failures += self._has_failed
        if not averaged:
            self.all = [*(self.all if is_new else self.all[:-1]), reading]
            self._belief = self._improves = None
        found = Checkpoint(reading.step, reading.value, losses, averaged)
        self.best = found if is_better and is_finite else self.before

    def state_dict(self) -> dict[str, Any]:
        """Return the state in tensors and plain values; a reading in progress counts as it stands."""
        best = self.best
        return {
            "all": [list(reading) for reading in self.all],
            "best": None if best is None else [best.step, best.value, best.averaged],
            "losses": None if best is None or best.losses is None else best.losses.clone(),
            "examples": self.examples,
            "counts": [self.count, self.failures],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from a state."""
        self.all = [Reading(*reading) for reading in state["all"]]
        losses = None if state["losses"] is None else state["losses"].clone()
        best = state["best"]
        self.best = (
            None if best is None else Checkpoint(best[0], best[1], losses, best[2:] == [True])
        )
        self.before = self.best
        self.examples, (self.count, self.failures) = state["examples"], state["counts"]
        self._belief = self._improves = None


def counts_of(
    history: Readings, tariff: Tariff, examples: int, population: int | None
) -> dict[str, Any]:
    """Return ``Validation.counts``.

    Args:
        history: Readings of the run.
        tariff: Its seconds.
        examples: Examples that were read.
        population: Examples of the set; None if it is read as a whole.
    """
    whole = history.count * (population or 0)
    return {
        "readings": history.count,
        "failed": history.failures,
        "examples": examples if whole else None,
        "saved": 1 - examples / whole if whole else None,
        "seconds": tariff.validation.total,
        "share": tariff.used,
        "best": None if history.best is None else history.best.step,
    }


def summary_of(counts: Mapping[str, Any], best: Best | None) -> str:
    """Return a sentence about ``Validation.counts`` and the best checkpoint."""
    examples = "" if counts["examples"] is None else f" of {counts['examples']:,} examples"
    saved = "" if counts["saved"] is None else f" ({counts['saved']:.0%} of all were saved)"
    found = "none has succeeded" if best is None else f"best at step {best.step}: {best.value:.4g}"
    return (
        f"{counts['readings']} readings{examples}{saved} in {counts['seconds']:.3g} s, "
        f"{100 * counts['share']:.3g} % of the clock; {found}"
    )
