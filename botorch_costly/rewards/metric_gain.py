"""Levels of a metric, whose differences are gains: the base of rewards."""

import math
import numbers
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, Literal, NamedTuple, get_args

from botorch_costly.errors import (
    StateMismatchError,
    check,
    check_count,
    check_positive,
)
from botorch_costly.lookups import Advising
from botorch_costly.plain import agree, as_number
from botorch_costly.records import Decision
from botorch_costly.rewards.direction import Direction
from botorch_costly.rewards.sample import Reading, Sample

Kind = Literal["loss", "accuracy"]
_POSSIBLE = {
    "loss": "a loss >= 0, and no gain (tell math.exp(loss) if yours can be negative, such as a log "
    "density; declare a metric to be maximized as an accuracy)",
    "accuracy": "an accuracy as a fraction in [0, 1], and no gain",
}
_LARGEST_VARIANCE = 1e12  # of a level, about which nothing is known: sums stay finite
_DEFAULT_SCALE = {"loss": 1.0, "accuracy": 100.0}
_DEFAULT_CLIP = {"loss": 1.0, "accuracy": 2.0}


class When(NamedTuple):
    """A round, and its interval; None for a round without a decision."""

    round: int
    interval: int | None = None

    @classmethod
    def from_decision(cls, round: "int | Decision") -> "When":
        """Return round and interval of a decision, or the round alone.

        Raises:
            InvalidArgumentError: If ``round`` is neither a decision nor an integer >= 0.
        """
        if isinstance(round, Decision):
            return cls(round.round, round.interval)
        is_number = isinstance(round, numbers.Real)
        check(is_number, "round", "the decision, or its round", round)
        return cls(check_count("round", round))

    def since(self, earlier: "When") -> int:
        """Return the intervals elapsed, at least one; the rounds elapsed where there are no intervals."""
        if self.interval is None or earlier.interval is None:
            return self.round - earlier.round
        return max(self.interval - earlier.interval, 1)


def check_metric(kind: Kind, metric: float) -> float:
    """Return a metric as a float; scalars of torch and NumPy are accepted.

    Raises:
        InvalidArgumentError: If it is no number, or finite and impossible for its kind.
    """
    number = as_number("metric", metric)
    if math.isfinite(number):
        is_possible = number >= 0 if kind == "loss" else 0 <= number <= 1
        check(is_possible, "metric", _POSSIBLE[kind], metric)
    return number


def least_loss(losses: Iterable[float | None]) -> float | None:
    """Return the smallest finite loss above 0; None without one."""
    above = (loss for loss in losses if loss is not None and 0 < loss < math.inf)
    return min(above, default=None)


def log_gain(loss: float, least: float | None) -> float:
    """Return ``-log`` of a loss, the one measure of how good a loss is.

    A loss of exactly 0 has no logarithm; networks reach it on a small validation set in float32. It
    counts as the smallest loss above 0 so far: a smaller stand-in would make the next loss above 0 look
    like a divergence.

    Args:
        loss: Loss of at least 0, or a number that is not finite.
        least: Smallest loss above 0 so far; None without one.

    Returns:
        The level, larger is better; NaN for a loss that is not finite, and for 0 without a smallest loss.
    """
    if not math.isfinite(loss) or (loss == 0 and least is None):
        return math.nan
    return -math.log(loss or least or 0.0)


class MetricGain(Advising, ABC):
    """The base of rewards that are gains of a metric: its kind, its level and the clip.

    Args:
        kind: Kind of the metric, ``"loss"`` or ``"accuracy"``.
        clip: Largest size of a gain per round, after scaling; ``math.inf`` for no clipping. By
            default 2 percentage points for accuracies, as in the paper, and one nat for losses: with a
            tighter clip a round in which training diverged looks like an ordinary bad one.
        scale: Factor ``s`` of the gain; by default 100 for accuracies and 1 for losses.

    Raises:
        InvalidArgumentError: If ``kind`` is unknown, or ``clip`` or ``scale`` is not positive.
    """

    def __init__(
        self, kind: Kind = "loss", *, clip: float | None = None, scale: float | None = None
    ) -> None:
        kinds = list(get_args(Kind))
        check(isinstance(kind, str) and kind in kinds, "kind", f"one of {kinds}", kind)
        self.kind = kind
        limit = _DEFAULT_CLIP[kind] if clip is None else clip
        self.clip = limit if limit == math.inf else check_positive("clip", limit)
        self.scale = check_positive("scale", _DEFAULT_SCALE[kind] if scale is None else scale)
        self._least: float | None = None  # smallest loss above 0 so far
        self._direction = Direction(kind)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.kind!r}, clip={self.clip}, scale={self.scale})"

    def level(self, metric: float, least: float | None = None) -> float:
        """Return the level, whose differences are gains: ``-s log(m)`` of a loss, ``s m`` of an accuracy.

        Args:
            metric: The metric.
            least: Smallest loss above 0 so far, see ``log_gain``; that of the calls so far if omitted.

        Raises:
            InvalidArgumentError: If the metric is impossible for its kind.
        """
        metric = self.check_metric(metric)
        if self.kind == "accuracy":
            return self.scale * metric if math.isfinite(metric) else math.nan
        return self.scale * log_gain(metric, self._least if least is None else least)

    def level_variance(self, metric: float, variance: float) -> float:
        """Return the variance of the level of a metric with a variance, by the delta method.

        The slope of the level is ``-s / m`` for a loss, ``s`` for an accuracy. A loss of 0 counts as the
        smallest one above 0 so far; without one the variance is 0.
        """
        deviation = self._slope(metric) * math.sqrt(variance) if variance else 0.0
        return min(deviation * deviation, _LARGEST_VARIANCE)

    def variance_of(self, sample: Sample | None) -> float:
        """Return the variance of the level of a sample's mean; 0 of None."""
        return 0.0 if sample is None else self.level_variance(sample.mean, sample.variance)

    def covariance_of(self, sample: Sample | None, other: Sample | None) -> float:
        """Return the covariance of the levels of two samples' means; 0 where one is None."""
        if sample is None or other is None:
            return 0.0
        covariance = sample.covariance(other)
        slopes = self._slope(sample.mean) * self._slope(other.mean) if covariance else 0.0
        return min(max(slopes * covariance, -_LARGEST_VARIANCE), _LARGEST_VARIANCE)

    def _slope(self, metric: float) -> float:
        """Return the derivative of the level by the metric."""
        if self.kind == "accuracy":
            return self.scale
        loss = metric or self._least
        return -self.scale / loss if loss else 0.0

    def reading(self, gain: float, variance: float) -> Reading:
        """Return a gain per round, clipped, with its variance.

        A gain beyond the clip has its deviation reduced as it is itself: noise does not move it.
        """
        reward = self.clipped(gain)
        if math.isnan(reward):
            return Reading(reward, 0.0)
        reduced = 1.0 if reward == gain else reward / gain
        return Reading(reward, max(variance, 0.0) * reduced**2)

    def check_metric(self, metric: float) -> float:
        """Return the metric as a float; arguments and errors of the function of this name."""
        return check_metric(self.kind, metric)

    def _least_with(self, metric: float) -> float | None:
        """Return the smallest loss above 0 so far, including a new one."""
        return least_loss([self._least, metric]) if self.kind == "loss" else None

    def clipped(self, gain: float) -> float:
        """Return the gain within ``[-clip, clip]``; NaN stays NaN."""
        return gain if math.isnan(gain) else min(max(gain, -self.clip), self.clip)

    def options(self) -> dict[str, Any]:
        """Return the options as plain values, with the name of the class."""
        name = type(self).__name__
        return {"type": name, "kind": self.kind, "clip": self.clip, "scale": self.scale}

    def check_options(self, state: object) -> None:
        """Raise unless a state was saved with the options of this reward.

        Raises:
            StateMismatchError: With the name of the first option that differs.
        """
        expected = f"a state_dict of {type(self).__name__}"
        if not isinstance(state, Mapping) or set(state) != set(self.state_dict()):
            raise StateMismatchError("state", expected, state)
        for name, value in self.options().items():
            saved = state[name]
            check(agree(saved, value), f"state {name}", repr(value), saved, StateMismatchError)

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Return options and reference as plain values."""
