"""The gain of a single round: the metric after it over the metric just before it."""

import math
from collections.abc import Mapping
from typing import Any

from botorch_costly.errors import InvalidArgumentError, StateMismatchError
from botorch_costly.rewards.gain import Kind, MetricGain


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

    def before(self, metric: float) -> None:
        """Set the metric just before a round as the reference.

        If the previous round was queried too, its ``after`` metric is this one: pass it on instead
        of paying a second time. After a metric that is not finite, the next reward is NaN.

        Raises:
            InvalidArgumentError: If the metric is impossible for its kind.
        """
        self._before = metric = self.check_metric(metric)
        self._least = self._least_with(metric)

    def after(self, metric: float) -> float:
        """Return the gain of the round over the metric given to ``before``.

        Returns:
            The reward; NaN if one of the two metrics is not finite. If only the metric after the round
            is not finite, the reference stays, and that metric can be measured again.

        Raises:
            InvalidArgumentError: If ``before`` was not called for this round, or the metric is
                impossible for its kind.
        """
        metric, reference = self.check_metric(metric), self._before
        if reference is None:
            raise InvalidArgumentError("after", "a metric given to before first", metric)
        if not math.isfinite(metric):
            return math.nan
        self._before = None  # the next round needs its own
        self._least = self._least_with(metric)
        if metric == reference:  # also if both are 0 and no loss above 0 is known
            return 0.0
        return self.gain(reference, metric, elapsed=1)

    def state_dict(self) -> dict[str, Any]:
        """Return options, reference and smallest loss as plain values."""
        return {**self.options(), "before": self._before, "least": self._least}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from the reference of ``state_dict``.

        Raises:
            StateMismatchError: If the state was saved with other options, or by another class; the
                reference is unchanged.
        """
        if isinstance(state, Mapping):
            state = {"least": None, **state}  # which states of earlier versions lack
        self.check_options(state)
        try:
            before, least = (
                None if state[name] is None else self.check_metric(state[name])
                for name in ("before", "least")
            )
        except InvalidArgumentError as error:
            raise StateMismatchError("state", "a state_dict of BeforeAfterReward", state) from error
        self._before, self._least = before, least
