"""From validation metrics to rewards: what the configuration did, not how good the network is.

A metric says how good the *network* is, and that depends on everything played so far: while
training progresses, whatever is played at the moment gets the credit. A tuner needs to know what
its *configuration* did, so it is paid by the gain over a reference metric. Rounds without a query
have no metric, and two references remain:

    last_query      the metric at the last query, the gain divided by the rounds elapsed since (or the
                   intervals, where configurations are held for some rounds): one validation pass a
                   query, blurred over the rounds between (the default)
    before_after   the metric just before the round: exact, but two passes a query, unless the round
                   before was measured as well and its metric is passed on

Prefer the loss over the accuracy where both are known. The accuracy on a few hundred examples
counts a few of them crossing a threshold, and is a much noisier reward than the loss, to which
every example contributes at every round.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, get_args

from botorch_costly.errors import (
    InvalidArgumentError,
    StateMismatchError,
    check,
    check_count,
    check_positive,
)
from botorch_costly.records import Decision
from botorch_costly.rewards.scale import as_number

Kind = Literal["loss", "accuracy"]
Reference = Literal["last_query", "before_after"]
_DEFAULT_SCALE = {"loss": 1.0, "accuracy": 100.0}
_DEFAULT_CLIP = {"loss": 1.0, "accuracy": 2.0}


class When(NamedTuple):
    """A round, and the interval it belongs to if that is known."""

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
        """Return the intervals in between, at least one, or the rounds where an interval is not known."""
        if self.interval is None or earlier.interval is None:
            return self.round - earlier.round
        return max(self.interval - earlier.interval, 1)


@dataclass
class _Query:
    """The metric that the next gain is measured against, and when it was seen."""

    metric: float | None = None
    round: int | None = None
    interval: int | None = None


class GainReward:
    r"""Gain of a validation metric over a reference, per round.

    .. math::

        \text{loss:}\quad s \log(m_\text{ref} / m) / \Delta t \qquad
        \text{accuracy:}\quad s\, (m - m_\text{ref}) / \Delta t

    both clipped to ``[-clip, clip]``, positive when things got better. A metric that is not
    finite gives the reward NaN, a failed query, and leaves the reference as it is.

    References:
        "Cost-efficient online hyperparameter optimization", Wang, Ren, Bogunovic, Xiong & Urtasun,
        2021, for the gain in accuracy in per cent, clipped to [-2, 2].

    Args:
        kind: ``"loss"`` for positive metrics to be minimized, ``"accuracy"`` for fractions in
            [0, 1] to be maximized.
        reference: ``"last_query"`` or ``"before_after"``, see the head of this module.
        clip: Largest size of a gain per round, after scaling; ``math.inf`` for no clipping. By
            default 2 percentage points for accuracies, as in the paper, and one nat for losses: a
            tighter clip hides from the tuner how bad a ruinous round was.
        scale: Factor ``s``. By default 100 for accuracies, so gains are percentage points, and 1
            for losses, so gains are nats.

    Raises:
        InvalidArgumentError: If an option is unknown, or ``clip`` or ``scale`` is not positive.

    Example:
        >>> reward = GainReward("accuracy")
        >>> reward(0.50, round=0)  # no reference yet: tell None
        >>> round(reward(0.53, round=4), 6)  # three points in four rounds
        0.75
    """

    def __init__(
        self,
        kind: Kind = "loss",
        reference: Reference = "last_query",
        clip: float | None = None,
        scale: float | None = None,
    ) -> None:
        for name, value, known in (("kind", kind, Kind), ("reference", reference, Reference)):
            check(value in get_args(known), name, f"one of {list(get_args(known))}", value)
        self.kind, self.reference = kind, reference
        limit = _DEFAULT_CLIP[kind] if clip is None else clip
        self.clip = limit if limit == math.inf else check_positive("clip", limit)
        self.scale = check_positive("scale", _DEFAULT_SCALE[kind] if scale is None else scale)
        self._query = _Query()

    def __repr__(self) -> str:
        options = f"{self.kind!r}, {self.reference!r}, clip={self.clip}, scale={self.scale}"
        return f"GainReward({options})"

    def __call__(self, metric: float, round: int | Decision) -> float | None:
        """Gain per round, or per interval, since the last query.

        Args:
            metric: The metric after the round.
            round: The decision, or the round, later than that of the last finite metric. Intervals are
                counted where both queries came with their decisions.

        Returns:
            The reward; NaN for a metric that is not finite; None at the first query, which has no
            reference: tell the tuner ``None``, a query without a reward.

        Raises:
            InvalidArgumentError: If the metric is impossible for its kind, the round is not later,
                or the reference is ``"before_after"``.
        """
        self._check_reference("last_query")
        metric, last, when = self._check_metric(metric), self._query, When.of(round)
        if last.round is not None:
            later = when.round > last.round
            check(later, "round", f"a round after {last.round}", when.round)
        if not math.isfinite(metric):
            return math.nan
        self._query = _Query(metric, *when)
        if last.metric is None or last.round is None:
            return None
        return self._gain(last.metric, metric, when.since(When(last.round, last.interval)))

    def before(self, metric: float) -> None:
        """Take the metric just before a round as the reference.

        If the round before was measured too, its ``after`` metric is this one: pass it on instead
        of paying a second time. After a metric that is not finite, the next reward is NaN.

        Raises:
            InvalidArgumentError: If the metric is impossible for its kind, or the reference is
                ``"last_query"``.
        """
        self._check_reference("before_after")
        self._query = _Query(self._check_metric(metric))

    def after(self, metric: float) -> float:
        """Gain of the round over the metric given to ``before``.

        Returns:
            The reward; NaN if one of the two metrics is not finite.

        Raises:
            InvalidArgumentError: If ``before`` was not called for this round, the metric is
                impossible for its kind, or the reference is ``"last_query"``.
        """
        self._check_reference("before_after")
        metric, reference = self._check_metric(metric), self._query.metric
        if reference is None:
            raise InvalidArgumentError("after", "a metric given to before first", metric)
        if not math.isfinite(metric):
            return math.nan
        self._query = _Query()  # used up: the next round needs its own
        return self._gain(reference, metric, elapsed=1) if math.isfinite(reference) else math.nan

    def _check_reference(self, needed: Reference) -> None:
        call = (
            "before and after" if self.reference == "before_after" else "reward(metric, decision)"
        )
        expected = f"calls of {call} with reference={self.reference!r}"
        check(self.reference == needed, "GainReward", expected, f"a call for {needed!r}")

    def _check_metric(self, metric: float) -> float:
        metric = as_number("metric", metric)
        if math.isfinite(metric):
            if self.kind == "loss":
                check(metric > 0, "metric", "a loss > 0", metric)
            else:
                check(0 <= metric <= 1, "metric", "an accuracy as a fraction in [0, 1]", metric)
        return metric

    def level(self, metric: float) -> float:
        """Return what gains are differences of: ``-s log(m)`` of a loss, ``s m`` of an accuracy.

        Of a metric that is not finite it is NaN.

        Raises:
            InvalidArgumentError: If the metric is impossible for its kind.
        """
        metric = self._check_metric(metric)
        if not math.isfinite(metric):
            return math.nan
        return self.scale * (-math.log(metric) if self.kind == "loss" else metric)

    def rebase(self, metric: float, round: int | Decision) -> None:
        """Count the next gain from this metric and round, as after a return to an earlier state.

        Raises:
            InvalidArgumentError: If the metric is impossible for its kind or not finite, or the
                reference is ``"before_after"``.
        """
        self._check_reference("last_query")
        metric = self._check_metric(metric)
        check(math.isfinite(metric), "metric", "a finite metric", metric)
        self._query = _Query(metric, *When.of(round))

    def _gain(self, reference: float, metric: float, elapsed: int) -> float:
        gain = (self.level(metric) - self.level(reference)) / elapsed
        return min(max(gain, -self.clip), self.clip)

    def state_dict(self) -> dict[str, Any]:
        """Options and reference in plain values."""
        options = {"kind": self.kind, "reference": self.reference}
        return {**options, "clip": self.clip, "scale": self.scale, "query": asdict(self._query)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from the reference of ``state_dict``.

        Raises:
            StateMismatchError: If the state was saved with other options, or is none of ours.
        """
        expected = {**self.state_dict(), "query": None}
        try:
            query, received = _Query(**state["query"]), {**state, "query": None}
            if query.metric is not None:
                self._check_metric(query.metric)
            for part, number in (("round", query.round), ("interval", query.interval)):
                if number is not None:
                    check_count(part, number)
        except (KeyError, TypeError, InvalidArgumentError) as error:
            raise StateMismatchError("state", "a state_dict of GainReward", state) from error
        check(received == expected, "state", f"the options of {self}", state, StateMismatchError)
        self._query = query
