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

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from torch import Tensor

from botorch_costly.calls import advised
from botorch_costly.errors import (
    InvalidArgumentError,
    StateMismatchError,
    check,
    check_count,
    check_rate,
)
from botorch_costly.records import Decision
from botorch_costly.rewards.discounted_average import DiscountedAverage
from botorch_costly.rewards.metric_gain import Kind, MetricGain, When
from botorch_costly.rewards.sample import Reading, Sample

# By how many nats, or which share, a network that was not loaded is worse.
_ANOTHER = {"loss": 1.0, "accuracy": 0.3}
_logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Last:
    """The last finite metric with its round, and the form of the ``round`` arguments."""

    metric: float | None = None
    round: int | None = None
    interval: int | None = None
    given: Literal["decision", "round"] | None = None  # None before the first call


@advised
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
        self._sample: Sample | None = None  # of the last finite metric, if it was of a part
        self._is_resumed = False  # whether a state was loaded before the first metric

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
        return self.follow(metric, None, round).reward

    def read(
        self,
        values: Tensor | Sequence[float],
        round: int | Decision,
        *,
        population: int,
        examples: Tensor | Sequence[int] | None = None,
    ) -> Reading:
        """Return the gain since the last query, and its variance, from a part of the validation set.

        The variance is that of sampling without replacement, ``S^2 (1 / n - 1 / N)``, of both metrics;
        for losses divided by the squared mean (delta method: the error of the mean has to be small beside
        it). If the numbers of the examples are given, now and at the last query, the covariance counts,
        and the gain on the same examples is as precise as the paired difference. Without them the parts
        count as drawn anew for each query. With a ``memory`` all parts do, which overstates the variance
        if they are the same. If all values of a part are equal, its variance is 0, however small it is.

        Args:
            values: Loss of each example that was read, or its accuracy in [0, 1], shape ``(n,)``.
            round: The decision, or the round, later than that of the last finite metric.
            population: Number of examples of the whole set, ``N``; of ``n = N`` the variance is 0.
            examples: Number of each example in the set, from 0, shape ``(n,)``, if known.

        Returns:
            The reward, as of a call with the mean of the values, and its variance in units of the reward
            squared: ``tuner.tell(decision, reading.reward, variance=reading.variance)``.

        Raises:
            InvalidShapeError: If there is not one value for each example.
            InvalidArgumentError: If an argument is outside its range, as for a call, or a part has one
                value alone, or ``population`` differs from that of the last query. The reference is
                unchanged.

        Example:
            >>> reward = GainReward("loss")
            >>> reward.read([0.9, 1.1, 1.3, 0.7], round=0, population=40, examples=range(4)).reward
            >>> reading = reward.read([0.8, 0.9, 1.1, 0.6], round=1, population=40, examples=range(4))
            >>> round(reading.reward, 3), round(reading.variance**0.5, 3)
            (0.163, 0.016)
        """
        sample = Sample.from_values(values, population, examples)
        return self.follow(sample.mean, sample, round)

    def follow(self, metric: float, sample: Sample | None, round: int | Decision) -> Reading:
        """Return the reading of a metric, which is the mean of a sample if there is one.

        Arguments and errors are those of a call.
        """
        metric = self.check_metric(metric)
        last, when = self._last, When.from_decision(round)
        form = self._check_form(round)
        if last.round is not None:
            later = when.round > last.round
            expected = f"a round after {last.round}, the last one (a new run needs a new reward)"
            check(later, "round", expected, when.round)
        covariance = self.covariance_of(sample, self._sample)
        self._direction.watch(metric)
        level, reference = self.level(metric), self._reference
        self._check_resumed(metric, level)
        if math.isnan(level):
            self._last = replace(last, given=form)
            return Reading(None if math.isfinite(metric) else math.nan, 0.0)
        self._begin_at(metric, sample, when, form)
        if last.round is None:
            return Reading(None, 0.0)
        elapsed, variance = when.since(When(last.round, last.interval)), self._reference.variance
        self._reference = reference.updated(level, elapsed, self.memory, variance)
        since = reference.age + elapsed
        total = variance + reference.variance - 2 * covariance
        return self.reading((level - reference.level) / since, total / since**2)

    def _check_resumed(self, metric: float, level: float) -> None:
        """Warn if the first level after a load is that of another network, by far."""
        if not self._is_resumed or math.isnan(level):
            return
        self._is_resumed, last = False, self._last.metric
        if last is not None and level < self.level(last) - _ANOTHER[self.kind] * self.scale:
            _logger.warning(
                "The first metric after the state was loaded is %.3g, and the last one before was %.3g: "
                "were the network and its optimizer loaded, too?",
                metric,
                last,
            )

    def _begin_at(
        self,
        metric: float,
        sample: Sample | None,
        when: When,
        form: Literal["decision", "round"],
    ) -> None:
        """Make a metric with a level the last one, and the only one of the reference."""
        self._reference = DiscountedAverage(self.level(metric), 0.0, 1.0, self.variance_of(sample))
        self._last = _Last(metric, when.round, when.interval, form)
        self._least = self._least_with(metric)
        is_paired = sample is not None and sample.examples is not None and not self.memory
        self._sample = sample if is_paired else None

    def rebase(self, metric: float, round: int | Decision, sample: Sample | None = None) -> None:
        """Set the reference to this metric and round, as after a return to an earlier state.

        Args:
            metric: The metric of the state.
            round: The decision, or the round.
            sample: Sample whose mean the metric is, if it is of a part of the validation set.

        Raises:
            InvalidArgumentError: If the metric is impossible for its kind or not finite, or decisions and
                bare rounds are mixed.
        """
        metric, when = self.check_metric(metric), When.from_decision(round)
        check(math.isfinite(metric), "metric", "a finite metric", metric)
        form, level = self._check_form(round), self.level(metric)
        check(not math.isnan(level), "metric", "a loss > 0, for there was none yet", metric)
        self._begin_at(metric, sample, when, form)

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
        last = {**vars(self._last), "least": self._least}
        sample = None if self._sample is None else self._sample.state_dict()
        reference = dict(vars(self._reference))
        return {**self.options(), "last": last, "reference": reference, "sample": sample}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from the reference of ``state_dict``.

        Raises:
            StateMismatchError: If the state was saved with other options, or by another class; the
                reference is unchanged.
        """
        if isinstance(state, Mapping):
            state = {"sample": None, **state}  # which states of earlier versions lack
        self.check_options(state)
        try:
            sample = Sample.from_state(state["sample"])
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
        self._is_resumed = self._last.given is None  # and no state of this run
        self._last, self._reference, self._least = last, reference, least
        if last.round is not None:
            self._direction.settle()
        self._sample = sample
