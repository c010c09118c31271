r"""Rewards from validation metrics: the effect of one configuration, not the quality of the network.

A metric measures the *network*, which depends on all configurations played so far: while training
progresses, the latest configuration gets the credit. A tuner needs the effect of one *configuration*, so
its reward is the gain of the metric over a reference.

.. math::

    \text{loss:}\quad s \log(m_\text{ref} / m) / \Delta t \qquad
    \text{accuracy:}\quad s\, (m - m_\text{ref}) / \Delta t

Rounds without a query have no metric, which leaves two references:

    GainReward          the metric at the last query; the gain is divided by the rounds elapsed since (or
                        by the intervals, where configurations are held for some rounds). One validation
                        pass a query, and the rounds in between share the gain.
    BeforeAfterReward   the metric just before the round. The gain is that of the round alone, for two
                        passes a query, unless the round before was queried as well and its metric is
                        passed on.

A round often changes the metric of several later rounds: strong augmentation worsens a network at first,
and it gains for a while once the augmentation is dropped. Measured against the last query alone, the
successors of a configuration get the credit for such gains. With ``memory`` the reference of
``GainReward`` is an average of earlier metrics, and a lasting change is credited for longer.

Prefer the loss over the accuracy where both are available. The accuracy on a few hundred examples
depends on the few that cross a threshold, and is a much noisier reward than the loss, to which every
example contributes in every round.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

from botorch_costly.errors import (
    InvalidArgumentError,
    StateMismatchError,
    check,
    check_count,
    check_nonnegative,
    check_positive,
    check_rate,
)
from botorch_costly.plain import as_number
from botorch_costly.records import Decision
from botorch_costly.rewards.direction import Direction

Kind = Literal["loss", "accuracy"]
_POSSIBLE = {
    "loss": "a loss >= 0 (tell math.exp(loss) if yours can be negative, such as a log density; "
    "declare a metric to be maximized as an accuracy)",
    "accuracy": "an accuracy as a fraction in [0, 1]",
}
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


class MetricGain(ABC):
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

    def check_metric(self, metric: float) -> float:
        """Return the metric as a float; arguments and errors of the function of this name."""
        return check_metric(self.kind, metric)

    def _least_with(self, metric: float) -> float | None:
        """Return the smallest loss above 0 so far, including a new one."""
        return least_loss([self._least, metric]) if self.kind == "loss" else None

    def gain(self, reference: float, metric: float, elapsed: int) -> float:
        """Return the clipped gain per round (or interval) of a metric over a reference.

        Args:
            reference: The metric before.
            metric: The metric after.
            elapsed: Rounds, or intervals, from one to the other, at least 1.

        Returns:
            The gain; NaN if one of the two metrics has no level.
        """
        return self.clipped((self.level(metric) - self.level(reference)) / elapsed)

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
            check(saved == value, f"state {name}", repr(value), saved, StateMismatchError)

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Return options and reference as plain values."""


@dataclass(frozen=True)
class DiscountedAverage:
    r"""The average of observations in which one from ``k`` rounds ago has the weight :math:`\mu^k`.

    Args:
        level: The average; 0 before the first observation.
        age: Mean age of the observations in rounds before the last one, with the same weights.
        weight: Sum of the weights; 0 before the first observation.

    Raises:
        InvalidArgumentError: If an argument is no finite number, or age or weight is negative.
    """

    level: float
    age: float
    weight: float

    def __post_init__(self) -> None:
        check(math.isfinite(as_number("level", self.level)), "level", "a finite number", self.level)
        check_nonnegative("age", self.age)
        check_nonnegative("weight", self.weight)

    def updated(self, observation: float, elapsed: int, memory: float) -> "DiscountedAverage":
        """Return the average with one more observation.

        Args:
            observation: The new observation.
            elapsed: Rounds since the last observation.
            memory: Factor of a weight per round, in [0, 1).
        """
        kept = self.weight * memory**elapsed
        share = kept / (kept + 1)  # of the earlier observations; exactly 0 without memory
        level = observation - share * (observation - self.level)
        return DiscountedAverage(level, share * (self.age + elapsed), kept + 1)


@dataclass(frozen=True)
class _Last:
    """The last finite metric with its round, and the form of the ``round`` arguments."""

    metric: float | None = None
    round: int | None = None
    interval: int | None = None
    given: Literal["decision", "round"] | None = None  # None before the first call


class GainReward(MetricGain):
    """Gain of a validation metric since the last query, per round or interval.

    The gain is clipped to ``[-clip, clip]``, and positive when the metric improved. A metric that is
    not finite gives the reward NaN, a failed query, and leaves the reference unchanged.

    With a ``memory`` the reference is the weighted average of all metrics since the start, or since
    ``rebase``; a metric ``k`` rounds older than the last has the weight ``memory ** k``, and for losses
    the logarithms are averaged. The gain is divided by the weighted average of the rounds elapsed, so a
    metric that grows steadily has the same gain under every memory.

    A loss of exactly 0 counts as the smallest loss above 0 so far. Before the first loss above 0 there is
    no reference.

    Pass decisions in all calls, or bare rounds in all calls: elapsed time is counted in intervals
    between decisions and in rounds between bare rounds, which cannot be mixed.

    References:
        "Cost-efficient online hyperparameter optimization", Wang, Ren, Bogunovic, Xiong & Urtasun,
        2021, for the gain in accuracy in per cent, clipped to [-2, 2]. The memory is this package's own.

    Args:
        kind: ``"loss"`` for metrics of at least 0 to be minimized, ``"accuracy"`` for fractions in
            [0, 1] to be maximized.
        clip: Largest size of a gain per round, after scaling; ``math.inf`` for no clipping. By
            default 2 percentage points for accuracies and one nat for losses.
        scale: Factor of the gain: by default 100 for accuracies, so gains are percentage points, and
            1 for losses, so gains are nats.
        memory: Factor by which the weight of a metric in the reference decreases per round (or interval),
            in [0, 1): 0 for the last metric alone; 0.8 averages over about five rounds.

    Raises:
        InvalidArgumentError: If ``kind`` is unknown, ``clip`` or ``scale`` is not positive, or ``memory``
            is outside its range.

    Example:
        >>> reward = GainReward("accuracy")
        >>> reward(0.50, round=0)  # None: there is no reference yet
        >>> round(reward(0.53, round=4), 6)  # three points in four rounds
        0.75
    """

    def __init__(
        self,
        kind: Kind = "loss",
        *,
        clip: float | None = None,
        scale: float | None = None,
        memory: float = 0.0,
    ) -> None:
        super().__init__(kind, clip=clip, scale=scale)
        check(check_rate("memory", memory) < 1, "memory", "a number in [0, 1)", memory)
        self.memory = float(memory)
        self._last = _Last()
        self._reference = DiscountedAverage(level=0.0, age=0.0, weight=0.0)
        self._direction = Direction(kind)

    def __repr__(self) -> str:
        memory = f", memory={self.memory})" if self.memory else ")"
        return super().__repr__()[:-1] + memory

    def __call__(self, metric: float, round: int | Decision) -> float | None:
        """Return the gain per round, or per interval, since the last query.

        Args:
            metric: The metric after the round.
            round: The decision, or the round, later than that of the last finite metric.

        Returns:
            The reward; NaN for a metric that is not finite; None at the first query, which has no
            reference: tell the tuner ``None``, a query without a reward.

        Raises:
            InvalidArgumentError: If the metric is impossible for its kind, the round is not later,
                or decisions and bare rounds are mixed. The reference is unchanged.
        """
        metric, last, when = self.check_metric(metric), self._last, When.from_decision(round)
        form = self._check_form(round)
        if last.round is not None:
            later = when.round > last.round
            check(later, "round", f"a round after {last.round}", when.round)
        self._direction.watch(metric)
        level, reference = self.level(metric), self._reference
        if math.isnan(level):
            self._last = replace(last, given=form)
            return None if math.isfinite(metric) else math.nan
        self._last = _Last(metric, when.round, when.interval, form)
        self._least = self._least_with(metric)
        if last.round is None:
            self._reference = DiscountedAverage(level, age=0.0, weight=1.0)
            return None
        elapsed = when.since(When(last.round, last.interval))
        self._reference = reference.updated(level, elapsed, self.memory)
        return self.clipped((level - reference.level) / (reference.age + elapsed))

    def rebase(self, metric: float, round: int | Decision) -> None:
        """Set the reference to this metric and round, as after a return to an earlier state.

        Raises:
            InvalidArgumentError: If the metric is impossible for its kind or not finite, or decisions and
                bare rounds are mixed.
        """
        metric, when = self.check_metric(metric), When.from_decision(round)
        check(math.isfinite(metric), "metric", "a finite metric", metric)
        form, level = self._check_form(round), self.level(metric)
        check(not math.isnan(level), "metric", "a loss > 0, for there was none yet", metric)
        self._last = _Last(metric, when.round, when.interval, form)
        self._least = self._least_with(metric)
        self._reference = DiscountedAverage(level, age=0.0, weight=1.0)

    def _check_form(self, round: int | Decision) -> Literal["decision", "round"]:
        form: Literal["decision", "round"] = "decision" if isinstance(round, Decision) else "round"
        before = self._last.given or form
        forms = {"decision": "decisions, as in the calls before, and no bare round"}
        forms["round"] = "bare rounds, as in the calls before, and no decision"
        check(form == before, "round", forms[before], round)
        return form

    def options(self) -> dict[str, Any]:
        """Return the options as plain values, with the name of the class."""
        return {**super().options(), "memory": self.memory}

    def state_dict(self) -> dict[str, Any]:
        """Return options and reference as plain values."""
        last = {**asdict(self._last), "least": self._least}
        return {**self.options(), "last": last, "reference": asdict(self._reference)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from the reference of ``state_dict``.

        Raises:
            StateMismatchError: If the state was saved with other options, or by another class; the
                reference is unchanged.
        """
        self.check_options(state)
        try:
            fields = dict(state["last"])
            least = fields.pop("least", None)
            last = _Last(**fields)
            for metric in (last.metric, least):
                if metric is not None:
                    self.check_metric(metric)
            for name, number in (("round", last.round), ("interval", last.interval)):
                if number is not None:
                    check_count(name, number)
            check(last.given in (None, "decision", "round"), "given", "a form", last.given)
            reference = DiscountedAverage(**state["reference"])
            consistent = (reference.weight > 0) == (last.round is not None)
            check(consistent, "reference", "an average of the metrics", state["reference"])
        except (TypeError, InvalidArgumentError) as error:
            raise StateMismatchError("state", "a state_dict of GainReward", state) from error
        self._last, self._reference, self._least = last, reference, least
