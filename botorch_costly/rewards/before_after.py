"""The gain of a single round: the metric after it over the metric just before it."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor

from botorch_costly.calls import advised
from botorch_costly.errors import InvalidArgumentError, StateMismatchError
from botorch_costly.rewards.metric_gain import Kind, MetricGain
from botorch_costly.rewards.sample import Reading, Sample


@advised
class BeforeAfterReward(MetricGain):
    """Gain of a validation metric over the metric just before the round.

    The gain is clipped to ``[-clip, clip]``, and positive when the metric improved. It takes two
    validation passes for each query; ``GainReward`` takes one. A loss of exactly 0 counts as the smallest
    loss above 0 so far.

    Args:
        kind: ``"loss"`` for metrics of at least 0 to be minimized, ``"accuracy"`` for fractions in
            [0, 1] to be maximized.
        clip: Largest size of a gain, after scaling; ``math.inf`` for no clipping. By default 2
            percentage points for accuracies and one nat for losses.
        scale: Factor of the gain: by default 100 for accuracies, so gains are percentage points, and
            1 for losses, so gains are nats.

    Raises:
        InvalidArgumentError: If ``kind`` is unknown, or ``clip`` or ``scale`` is not positive.

    Example:
        >>> reward = BeforeAfterReward("accuracy")
        >>> reward.before(0.50)
        >>> round(reward.after(0.51), 6)  # one percentage point
        1.0
    """

    def __init__(
        self, kind: Kind = "loss", *, clip: float | None = None, scale: float | None = None
    ) -> None:
        super().__init__(kind, clip=clip, scale=scale)
        self._before: float | None = None
        self._sample: Sample | None = None  # whose mean that is, if it is of a part

    def before(self, metric: float) -> None:
        """Set the metric just before a round as the reference.

        If the previous round was queried too, its ``after`` metric is this one: pass it on instead
        of paying a second time. After a metric that is not finite, the next reward is NaN.

        Raises:
            InvalidArgumentError: If the metric is impossible for its kind.
        """
        self._before = metric = self.check_metric(metric)
        self._sample = None
        self._least = self._least_with(metric)

    def read_before(
        self,
        values: Tensor | Sequence[float],
        *,
        population: int,
        examples: Tensor | Sequence[int] | None = None,
    ) -> None:
        """Set the metric just before a round from a part of the validation set.

        Args:
            values: Loss of each example that was read, or its accuracy in [0, 1], shape ``(n,)``.
            population: Number of examples of the whole set.
            examples: Number of each example in the set, from 0, shape ``(n,)``, if known.

        Raises:
            InvalidShapeError: If there is not one value for each example.
            InvalidArgumentError: If an argument is outside its range, or a part has one value alone.
        """
        sample = Sample.from_values(values, population, examples)
        self.before(sample.mean)
        self._sample = sample if math.isfinite(sample.mean) else None

    def after(self, metric: float) -> float:
        """Return the gain of the round over the metric given to ``before``.

        Returns:
            The reward; NaN if one of the two metrics is not finite. If only the metric after the round
            is not finite, the reference stays, and that metric can be measured again.

        Raises:
            InvalidArgumentError: If ``before`` was not called for this round, or the metric is
                impossible for its kind.
        """
        reward = self._gained(metric, None).reward
        return math.nan if reward is None else reward

    def read_after(
        self,
        values: Tensor | Sequence[float],
        *,
        population: int,
        examples: Tensor | Sequence[int] | None = None,
    ) -> Reading:
        """Return the gain of the round and its variance, from a part of the validation set.

        The variance is that of ``GainReward.read``. On the examples that were read before the round,
        named by their numbers both times, it is that of the paired difference.

        Args:
            values: Loss of each example that was read, or its accuracy in [0, 1], shape ``(n,)``.
            population: Number of examples of the whole set.
            examples: Number of each example in the set, from 0, shape ``(n,)``, if known.

        Returns:
            The reward, as of ``after`` with the mean of the values, and its variance in units of the
            reward squared.

        Raises:
            InvalidShapeError: If there is not one value for each example.
            InvalidArgumentError: If ``after`` refuses the mean, an argument is outside its range, or a
                part has one value alone.
        """
        sample = Sample.from_values(values, population, examples)
        return self._gained(sample.mean, sample)

    def _gained(self, metric: float, sample: Sample | None) -> Reading:
        """Return the reading of a metric, which is the mean of a sample if there is one."""
        metric, reference, before = self.check_metric(metric), self._before, self._sample
        if reference is None:
            raise InvalidArgumentError("after", "a metric given to before first", metric)
        if not math.isfinite(metric):
            return Reading(math.nan, 0.0)
        self._direction.watch(metric)
        covariance = self.covariance_of(sample, before)
        self._before = self._sample = None  # the next round needs its own
        self._least = self._least_with(metric)
        total = self.variance_of(sample) + self.variance_of(before) - 2 * covariance
        # Without a difference the gain is 0, also if both are 0 and no loss above 0 is known.
        gain = 0.0 if metric == reference else self.level(metric) - self.level(reference)
        return self.reading(gain, total)

    def state_dict(self) -> dict[str, Any]:
        """Return options, reference and smallest loss as plain values."""
        sample = None if self._sample is None else self._sample.state_dict()
        rest = {"before": self._before, "least": self._least, "sample": sample}
        return {**self.options(), **rest}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from the reference of ``state_dict``.

        Raises:
            StateMismatchError: If the state was saved with other options, or by another class; the
                reference is unchanged.
        """
        if isinstance(state, Mapping):
            # States of earlier versions lack these.
            state = {"least": None, "sample": None, **state}
        self.check_options(state)
        try:
            before, least = (
                None if state[name] is None else self.check_metric(state[name])
                for name in ("before", "least")
            )
            sample = Sample.from_state(state["sample"])
        except (TypeError, InvalidArgumentError) as error:
            raise StateMismatchError("state", "a state_dict of BeforeAfterReward", state) from error
        self._before, self._least, self._sample = before, least, sample
        self._direction.settle()
