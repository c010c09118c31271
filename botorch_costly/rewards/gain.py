r"""From validation metrics to rewards: what a configuration changed, not how good the network is.

A metric says how good the *network* is, and that depends on all configurations played so far: while
training progresses, the latest configuration gets the credit. A tuner needs to know what one
*configuration* did, so its reward is the gain of the metric over a reference.

.. math::

    \text{loss:}\quad s \log(m_\text{ref} / m) / \Delta t \qquad
    \text{accuracy:}\quad s\, (m - m_\text{ref}) / \Delta t

Rounds without a query have no metric, and two references remain:

    GainReward          the metric at the last query; the gain is divided by the rounds elapsed since (or
                        by the intervals, where configurations are held for some rounds). One validation
                        pass a query, and the gain is shared by the rounds between.
    BeforeAfterReward   the metric just before the round. The gain is that of the round alone, for two
                        passes a query, unless the round before was queried as well and its metric is
                        passed on.

A round often changes the metric for some rounds to come: under a strong augmentation a network gets
worse at first, and gains for a while once the augmentation is dropped. Measured against the last query
alone, such gains go to the successors of the configuration that caused them, and a good one has none
left after a few rounds. With ``memory`` the reference of ``GainReward`` is an average of earlier
metrics, and a change that lasts is credited for longer.

Prefer the loss over the accuracy where both are known. The accuracy on a few hundred examples
counts a few of them crossing a threshold, and is a much noisier reward than the loss, to which
every example contributes in every round.

References:
    "Cost-efficient online hyperparameter optimization", Wang, Ren, Bogunovic, Xiong & Urtasun, 2021,
    for the gain in accuracy in per cent, clipped to [-2, 2]. The memory is ours.
"""

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

from botorch_costly.errors import (
    InvalidArgumentError,
    StateMismatchError,
    check,
    check_count,
    check_positive,
    check_rate,
)
from botorch_costly.plain import as_number
from botorch_costly.records import Decision
from botorch_costly.rewards.average import NOTHING, DiscountedAverage
from botorch_costly.rewards.direction import Direction

Kind = Literal["loss", "accuracy"]
_LOSS = "a loss >= 0 (tell math.exp(loss) if yours can be negative, such as a log density)"
_DEFAULT_SCALE = {"loss": 1.0, "accuracy": 100.0}
_DEFAULT_CLIP = {"loss": 1.0, "accuracy": 2.0}


class When(NamedTuple):
    """A round, and the interval it belongs to; None for a bare round."""

    round: int
    interval: int | None = None

    @classmethod
    def of(cls, round: "int | Decision") -> "When":
        """Return when a decision, or a round, was.

        Raises:
            InvalidArgumentError: If it is neither.
        """
        if isinstance(round, Decision):
            return cls(round.round, round.interval)
        return cls(check_count("round", round))

    def since(self, earlier: "When") -> int:
        """Return the intervals elapsed, at least one, or the rounds elapsed between bare rounds."""
        if self.interval is None or earlier.interval is None:
            return self.round - earlier.round
        return max(self.interval - earlier.interval, 1)


class MetricGain(ABC):
    """What gains have in common: the kind of the metric, its level, the clipped gain of two metrics.

    Args:
        kind: ``"loss"`` for metrics of at least 0 to be minimized, ``"accuracy"`` for fractions in
            [0, 1] to be maximized.
        clip: Largest size of a gain per round, after scaling; ``math.inf`` for no clipping. By
            default 2 percentage points for accuracies, as in the paper, and one nat for losses: a
            tighter clip hides from the tuner how bad a round was in which training diverged.
        scale: Factor ``s``. By default 100 for accuracies, so gains are percentage points, and 1
            for losses, so gains are nats.

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

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.kind!r}, clip={self.clip}, scale={self.scale})"

    def level(self, metric: float) -> float:
        """Return what gains are differences of: ``-s log(m)`` of a loss, ``s m`` of an accuracy.

        The level is NaN for a metric that is not finite, and finite for a loss of exactly 0.

        Raises:
            InvalidArgumentError: If the metric is impossible for its kind.
        """
        metric = self.check_metric(metric)
        if not math.isfinite(metric):
            return math.nan
        if self.kind == "accuracy":
            return self.scale * metric
        return -self.scale * math.log(metric or sys.float_info.min)

    def check_metric(self, metric: float) -> float:
        """Return the metric as a float; scalars of torch and NumPy are numbers, too.

        Raises:
            InvalidArgumentError: If it is no number, or finite and impossible for its kind.
        """
        metric = as_number("metric", metric)
        if math.isfinite(metric):
            if self.kind == "loss":
                check(metric >= 0, "metric", _LOSS, metric)
            else:
                check(0 <= metric <= 1, "metric", "an accuracy as a fraction in [0, 1]", metric)
        return metric

    def gain(self, reference: float, metric: float, elapsed: int) -> float:
        """Return the clipped gain per round (or interval) of a metric over a reference.

        Args:
            reference: The metric before.
            metric: The metric after.
            elapsed: Rounds, or intervals, in between, at least 1.

        Returns:
            The gain; NaN if one of the two metrics is not finite.
        """
        return self.clipped((self.level(metric) - self.level(reference)) / elapsed)

    def clipped(self, gain: float) -> float:
        """Return the gain within ``[-clip, clip]``; NaN stays NaN."""
        return gain if math.isnan(gain) else min(max(gain, -self.clip), self.clip)

    def options(self) -> dict[str, Any]:
        """Return the options in plain values, with the name of the class."""
        return {
            "type": type(self).__name__,
            "kind": self.kind,
            "clip": self.clip,
            "scale": self.scale,
        }

    def check_options(self, state: object) -> None:
        """Raise unless a state was saved with the options of this reward.

        Raises:
            StateMismatchError: With the name of the first option that differs.
        """
        ours = f"a state_dict of {type(self).__name__}"
        given = isinstance(state, Mapping) and set(state) == set(self.state_dict())
        check(given, "state", ours, state, StateMismatchError)
        for name, value in self.options().items():
            found = state[name]  # type: ignore[index]
            check(found == value, f"state {name}", repr(value), found, StateMismatchError)

    @abstractmethod
    def state_dict(self) -> dict[str, Any]:
        """Return options and reference in plain values."""


@dataclass(frozen=True)
class _Last:
    """The last finite metric, its round, how rounds are given, and the smallest loss so far."""

    metric: float | None = None
    round: int | None = None
    interval: int | None = None
    given: Literal["decision", "round"] | None = None  # None before the first call
    least: float | None = None  # of the losses above 0


class GainReward(MetricGain):
    """Gain of a validation metric since the last query, per round or interval.

    The gain is clipped to ``[-clip, clip]``, and positive when the metric improved. A metric that is
    not finite gives the reward NaN, a failed query, and leaves the reference as it is.

    With a ``memory`` the reference is the weighted average of all metrics since the start, or since
    ``rebase``; one that is ``k`` rounds older than the last has the weight ``memory ** k``, and of losses
    the logarithms are averaged. The gain is divided by the weighted average of the rounds elapsed, so a
    metric that grows steadily has the same gain under every memory.

    A loss of exactly 0, as of a network that fits a small validation set in single precision, has no
    logarithm. It counts as the smallest loss above 0 so far: nothing is known to be gained or lost
    below that. Before the first loss above 0 there is no reference.

    Rounds are given as decisions throughout, or as bare rounds throughout: between decisions the
    intervals are counted, between bare rounds the rounds, and the two cannot be mixed.

    References:
        "Cost-efficient online hyperparameter optimization", Wang, Ren, Bogunovic, Xiong & Urtasun,
        2021, for the gain in accuracy in per cent, clipped to [-2, 2].

    Args:
        kind: ``"loss"`` for metrics of at least 0 to be minimized, ``"accuracy"`` for fractions in
            [0, 1] to be maximized.
        clip: Largest size of a gain per round, after scaling; ``math.inf`` for no clipping. By
            default 2 percentage points for accuracies and one nat for losses.
        scale: Factor of the gain: by default 100 for accuracies, so gains are percentage points, and
            1 for losses, so gains are nats.
        memory: Weight in the reference of a metric that is a round (or an interval) older, in [0, 1):
            0 for the last metric alone; 0.8 averages over about five rounds.

    Raises:
        InvalidArgumentError: If ``kind`` is unknown, ``clip`` or ``scale`` is not positive, or ``memory``
            is outside its range.

    Example:
        >>> reward = GainReward("accuracy")
        >>> reward(0.50, round=0)  # no reference yet: tell None
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
        self._reference = NOTHING
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
                or a bare round follows decisions or a decision follows bare rounds. The reference
                is unchanged.
        """
        metric, last, when = self.check_metric(metric), self._last, When.of(round)
        given = self._check_given(round)
        if last.round is not None:
            later = when.round > last.round
            check(later, "round", f"a round after {last.round}", when.round)
        self._direction.watch(metric)
        if not math.isfinite(metric):
            self._last = replace(last, given=given)
            return math.nan
        level, reference = self.level(metric), self._reference
        if math.isnan(level):
            self._last = replace(last, given=given)
            return None
        self._last = _Last(metric, when.round, when.interval, given, self._least(metric))
        if last.round is None:
            self._reference = DiscountedAverage.of(level)
            return None
        elapsed = when.since(When(last.round, last.interval))
        self._reference = reference.then(level, elapsed, self.memory)
        return self.clipped((level - reference.level) / (reference.age + elapsed))

    def level(self, metric: float) -> float:
        """Return what gains are differences of: ``-s log(m)`` of a loss, ``s m`` of an accuracy.

        Returns:
            The level. A loss of 0 has that of the smallest loss above 0 so far. The level is NaN if
            there was none yet, and for a metric that is not finite.

        Raises:
            InvalidArgumentError: If the metric is impossible for its kind.
        """
        metric = self.check_metric(metric)
        if metric == 0 and self.kind == "loss":
            return math.nan if self._last.least is None else super().level(self._last.least)
        return super().level(metric)

    def _least(self, metric: float) -> float | None:
        """Return the smallest loss above 0 so far, a new one included."""
        positive = [one for one in (self._last.least, metric) if one is not None and one > 0]
        return min(positive, default=None) if self.kind == "loss" else None

    def rebase(self, metric: float, round: int | Decision) -> None:
        """Count the next gain from this metric and round, as after a return to an earlier state.

        Raises:
            InvalidArgumentError: If the metric is impossible for its kind or not finite, or the
                round is given in another way than in the calls before.
        """
        metric, when = self.check_metric(metric), When.of(round)
        check(math.isfinite(metric), "metric", "a finite metric", metric)
        given, level = self._check_given(round), self.level(metric)
        check(not math.isnan(level), "metric", "a loss > 0, for there was none yet", metric)
        self._last = _Last(metric, when.round, when.interval, given, self._least(metric))
        self._reference = DiscountedAverage.of(level)

    def _check_given(self, round: int | Decision) -> Literal["decision", "round"]:
        given: Literal["decision", "round"] = "decision" if isinstance(round, Decision) else "round"
        before = self._last.given or given
        ways = {"decision": "decisions, as in the calls before, and no bare round"}
        ways["round"] = "bare rounds, as in the calls before, and no decision"
        check(given == before, "round", ways[before], round)
        return given

    def options(self) -> dict[str, Any]:
        """Return the options in plain values, with the name of the class."""
        return {**super().options(), "memory": self.memory}

    def state_dict(self) -> dict[str, Any]:
        """Return options and reference in plain values."""
        reference = asdict(self._reference)
        return {**self.options(), "last": asdict(self._last), "reference": reference}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from the reference of ``state_dict``.

        Raises:
            StateMismatchError: If the state was saved with other options, or by another class; the
                reference is unchanged.
        """
        self.check_options(state)
        try:
            last = _Last(**state["last"])
            for metric in (last.metric, last.least):
                if metric is not None:
                    self.check_metric(metric)
            for name, number in (("round", last.round), ("interval", last.interval)):
                if number is not None:
                    check_count(name, number)
            check(last.given in (None, "decision", "round"), "given", "a way", last.given)
            reference = DiscountedAverage(**state["reference"])
            known = (reference.weight > 0) == (last.round is not None)
            check(known, "reference", "an average of what was measured", state["reference"])
        except (TypeError, InvalidArgumentError) as error:
            raise StateMismatchError("state", "a state_dict of GainReward", state) from error
        self._last, self._reference = last, reference
