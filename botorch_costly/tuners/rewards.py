"""From validation metrics to rewards, and from rewards to the units of the model.

A metric says how good the *network* is, and that depends on everything played so far: while
training progresses, whatever is played at the moment gets the credit. A tuner needs to know what
its *configuration* did, so it is paid by the gain over a reference metric. Rounds without a look
have no metric, and two references remain:

    last_look      the metric at the last look, the gain divided by the rounds elapsed since: one
                   validation pass a look, blurred over the rounds between (the default)
    before_after   the metric just before the round: exact, but two passes a look, unless the round
                   before was measured as well and its metric is passed on

Prefer the loss over the accuracy where both are known. The accuracy on a few hundred examples
counts a few of them crossing a threshold, and is a much noisier reward than the loss, to which
every example contributes at every round.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, get_args

import torch
from torch import Tensor

from botorch_costly.errors import (
    InvalidArgumentError,
    StateMismatchError,
    check,
    check_count,
    check_positive,
)

Kind = Literal["loss", "accuracy"]
Reference = Literal["last_look", "before_after"]
_DEFAULT_SCALE = {"loss": 1.0, "accuracy": 100.0}
_NORMAL_MEDIAN = 1.4826  # standard deviation of normal numbers over their median distance ...
_NORMAL_MEAN = math.sqrt(math.pi / 2)  # ... and over their mean distance
_DEFAULT_CLIP = {"loss": 1.0, "accuracy": 2.0}


def as_number(name: str, value: object) -> float:
    """Return a number as a float; scalars of torch and NumPy are welcome.

    Raises:
        InvalidArgumentError: If it is no number.
    """
    try:
        if not isinstance(value, str | bytes | bool):
            return float(value.detach() if isinstance(value, Tensor) else value)  # type: ignore[arg-type]
    except (TypeError, ValueError, RuntimeError, OverflowError):
        pass
    raise InvalidArgumentError(name, "a number", value)


@dataclass
class _Look:
    """The metric that the next gain is measured against, and the round it was seen in."""

    metric: float | None = None
    round: int | None = None


class GainReward:
    r"""Gain of a validation metric over a reference, per round.

    .. math::

        \text{loss:}\quad s \log(m_\text{ref} / m) / \Delta t \qquad
        \text{accuracy:}\quad s\, (m - m_\text{ref}) / \Delta t

    both clipped to ``[-clip, clip]``, positive when things got better. A metric that is not
    finite gives the reward NaN, a failed look, and leaves the reference as it is.

    References:
        "Cost-efficient online hyperparameter optimization", Wang, Ren, Bogunovic, Xiong & Urtasun,
        2021, for the gain in accuracy in per cent, clipped to [-2, 2].

    Args:
        kind: ``"loss"`` for positive metrics to be minimized, ``"accuracy"`` for fractions in
            [0, 1] to be maximized.
        reference: ``"last_look"`` or ``"before_after"``, see the head of this module.
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
        reference: Reference = "last_look",
        clip: float | None = None,
        scale: float | None = None,
    ) -> None:
        for name, value, known in (("kind", kind, Kind), ("reference", reference, Reference)):
            check(value in get_args(known), name, f"one of {list(get_args(known))}", value)
        self.kind, self.reference = kind, reference
        limit = _DEFAULT_CLIP[kind] if clip is None else clip
        self.clip = limit if limit == math.inf else check_positive("clip", limit)
        self.scale = check_positive("scale", _DEFAULT_SCALE[kind] if scale is None else scale)
        self._look = _Look()

    def __repr__(self) -> str:
        options = f"{self.kind!r}, {self.reference!r}, clip={self.clip}, scale={self.scale}"
        return f"GainReward({options})"

    def __call__(self, metric: float, round: int) -> float | None:
        """Gain per round since the last look.

        Args:
            metric: The metric after the round.
            round: The round, later than that of the last finite metric.

        Returns:
            The reward; NaN for a metric that is not finite; None at the first look, which has no
            reference: tell the tuner ``None``, a look without a reward.

        Raises:
            InvalidArgumentError: If the metric is impossible for its kind, the round is not later,
                or the reference is ``"before_after"``.
        """
        self._check_reference("last_look")
        metric, last = self._check_metric(metric), self._look
        check_count("round", round)
        if last.round is not None:
            check(round > last.round, "round", f"a round after {last.round}", round)
        if not math.isfinite(metric):
            return math.nan
        self._look = _Look(metric, round)
        if last.metric is None or last.round is None:
            return None
        return self._gain(last.metric, metric, rounds=round - last.round)

    def before(self, metric: float) -> None:
        """Take the metric just before a round as the reference.

        If the round before was measured too, its ``after`` metric is this one: pass it on instead
        of paying a second time. After a metric that is not finite, the next reward is NaN.

        Raises:
            InvalidArgumentError: If the metric is impossible for its kind, or the reference is
                ``"last_look"``.
        """
        self._check_reference("before_after")
        self._look = _Look(self._check_metric(metric))

    def after(self, metric: float) -> float:
        """Gain of the round over the metric given to ``before``.

        Returns:
            The reward; NaN if one of the two metrics is not finite.

        Raises:
            InvalidArgumentError: If ``before`` was not called for this round, the metric is
                impossible for its kind, or the reference is ``"last_look"``.
        """
        self._check_reference("before_after")
        metric, reference = self._check_metric(metric), self._look.metric
        if reference is None:
            raise InvalidArgumentError("after", "a metric given to before first", metric)
        if not math.isfinite(metric):
            return math.nan
        self._look = _Look()  # used up: the next round needs its own
        return self._gain(reference, metric, rounds=1) if math.isfinite(reference) else math.nan

    def _check_reference(self, needed: Reference) -> None:
        call = "before and after" if self.reference == "before_after" else "reward(metric, round)"
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

    def rebase(self, metric: float, round: int) -> None:
        """Count the next gain from this metric and round, as after a return to an earlier state.

        Raises:
            InvalidArgumentError: If the metric is impossible for its kind or not finite, or the
                reference is ``"before_after"``.
        """
        self._check_reference("last_look")
        metric = self._check_metric(metric)
        check(math.isfinite(metric), "metric", "a finite metric", metric)
        self._look = _Look(metric, check_count("round", round))

    def _gain(self, reference: float, metric: float, rounds: int) -> float:
        gain = (self.level(metric) - self.level(reference)) / rounds
        return min(max(gain, -self.clip), self.clip)

    def state_dict(self) -> dict[str, Any]:
        """Options and reference in plain values."""
        options = {"kind": self.kind, "reference": self.reference}
        return {**options, "clip": self.clip, "scale": self.scale, "look": asdict(self._look)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from the reference of ``state_dict``.

        Raises:
            StateMismatchError: If the state was saved with other options, or is none of ours.
        """
        expected = {**self.state_dict(), "look": None}
        try:
            look, received = _Look(**state["look"]), {**state, "look": None}
            if look.metric is not None:
                self._check_metric(look.metric)
            if look.round is not None:
                check_count("round", look.round)
        except (KeyError, TypeError, InvalidArgumentError) as error:
            raise StateMismatchError("state", "a state_dict of GainReward", state) from error
        check(received == expected, "state", f"the options of {self}", state, StateMismatchError)
        self._look = look


class Affine(NamedTuple):
    """The map between rewards and the model's units of unit variance."""

    center: float
    scale: float

    def standardize(self, reward: float) -> float:
        """Reward in units of the model."""
        return (reward - self.center) / self.scale

    def restore(self, value: float) -> float:
        """Value of the model as a reward: the inverse of ``standardize``."""
        return self.center + self.scale * value


def estimate_scale(rewards: Sequence[float], weights: Sequence[float] | None = None) -> Affine:
    """Weighted median of the finite rewards, and 1.4826 times their median distance from it.

    One ruinous round costs a network more than a hundred good ones gain. It would stretch a standard
    deviation until all other rewards look alike; median and median absolute deviation do not notice
    it. Where more than half of the rewards coincide the mean distance takes the place of the median
    one (times 1.2533, which makes both the standard deviation of normal rewards), and the scale is 1
    where all of them do: it is never zero and never NaN.

    Args:
        rewards: The rewards; those that are not finite (failed looks) are left out.
        weights: Their weights, at least 0; equal by default. Only their ratios matter.

    Returns:
        Center and scale; ``Affine(0, 1)`` without any reward.

    Raises:
        InvalidArgumentError: If there are not as many weights as rewards, or one is negative or
            not finite.

    Example:
        >>> estimate_scale([1.0, 2.0, 3.0, -1000.0, float("nan")])
        Affine(center=1.5, scale=1.4826)
    """
    weights = [1.0] * len(rewards) if weights is None else weights
    matched = len(weights) == len(rewards)
    check(matched, "weights", f"{len(rewards)} weights, one a reward", len(weights))
    valid = all(0 <= weight < math.inf for weight in weights)
    check(valid, "weights", "finite numbers >= 0", list(weights))
    kept = [(y, w) for w, y in zip(weights, rewards, strict=True) if w > 0 and math.isfinite(y)]
    if not kept:
        return Affine(0.0, 1.0)
    center = weighted_median(kept)
    distances = [(abs(y - center), w) for y, w in kept]
    scale = _NORMAL_MEDIAN * weighted_median(distances)
    # Rounding alone separates constant rewards.
    negligible = 1e-12 * max(abs(y) for y, _ in kept)
    if scale <= negligible:
        largest = max(w for _, w in kept)  # divided by first: a sum could over- or underflow
        shares = [w / largest for _, w in kept]
        mean = math.fsum(d * p for (d, _), p in zip(distances, shares, strict=True)) / sum(shares)
        scale = _NORMAL_MEAN * mean
    return Affine(center, scale if negligible < scale < math.inf else 1.0)


def weighted_median(values: Sequence[tuple[float, float]]) -> float:
    """Return the median of ``(value, weight)`` pairs, the middle of two where it falls between them.

    Raises:
        InvalidArgumentError: If there is no pair.

    Example:
        >>> weighted_median([(1.0, 1.0), (2.0, 1.0), (10.0, 5.0)])
        10.0
    """
    check(len(values) > 0, "values", "at least one", values)
    ordered = sorted(values)
    largest = max(w for _, w in ordered)
    half = math.fsum(w / largest for _, w in ordered) / 2
    reached = 0.0
    for i, (value, weight) in enumerate(ordered):
        reached += weight / largest
        if reached > half * (1 + 1e-12):
            return value
        if reached >= half * (1 - 1e-12) and i + 1 < len(ordered):
            return value / 2 + ordered[i + 1][0] / 2
    return ordered[-1][0]


def normal_scores(rewards: Tensor) -> Tensor:
    """Return the normal quantile of each reward's rank, ``Phi^{-1}((rank - 1/2) / n)``.

    Equal rewards share their mean rank.

    Args:
        rewards: Finite, shape ``(n,)``.

    Example:
        >>> [round(z, 2) for z in normal_scores(torch.tensor([5.0, -1000.0, 6.0])).tolist()]
        [0.0, -0.97, 0.97]
    """
    _, place, copies = rewards.unique(return_inverse=True, return_counts=True)
    copies = copies.to(rewards)  # or integers would be divided in the default dtype
    middle = copies.cumsum(0) - copies / 2  # rank - 1/2 of the middle one
    return torch.special.ndtri(middle / len(rewards))[place]


@dataclass(frozen=True)
class RewardScale:
    """How rewards become values of a model whose prior has mean 0 and variance 1.

    Args:
        center: The reward the prior expects; estimated from the rewards if None.
        scale: The prior's standard deviation in units of the reward; estimated if None.
        clip: Scaled rewards are clipped to ``[-clip, clip]``, beyond which the prior calls them
            impossible; ``math.inf`` for no clipping.
        ranks: Whether only the order of the rewards counts: each takes the normal score of its rank
            among those the model remembers, old and new alike.
            The surest protection from ruinous rounds, at the price of how much better is better.

    Raises:
        InvalidArgumentError: If ``center`` is not finite, ``scale`` or ``clip`` not positive, or
            ``ranks`` no bool.

    Example:
        >>> RewardScale(center=0.0).fit([1.0, 3.0])
        Affine(center=0.0, scale=1.4826)
    """

    center: float | None = None
    scale: float | None = None
    clip: float = 3.0
    ranks: bool = False

    def __post_init__(self) -> None:
        if self.center is not None:
            number = isinstance(self.center, int | float) and not isinstance(self.center, bool)
            finite = number and math.isfinite(self.center)
            check(finite, "center", "a finite number or None", self.center)
        if self.scale is not None:
            check_positive("scale", self.scale)
        if self.clip != math.inf:
            check_positive("clip", self.clip)
        check(isinstance(self.ranks, bool), "ranks", "a bool", self.ranks)

    def targets(self, rewards: Tensor, affine: Affine) -> Tensor:
        """Return the values of the model: scaled and clipped rewards, or their normal scores.

        Args:
            rewards: Finite, shape ``(n,)``.
            affine: What ``fit`` returned.
        """
        if self.ranks:
            return normal_scores(rewards)
        return ((rewards - affine.center) / affine.scale).clamp(-self.clip, self.clip)

    def fit(self, rewards: Sequence[float], weights: Sequence[float] | None = None) -> Affine:
        """Fixed parts as given, the others by ``estimate_scale``."""
        center, scale = estimate_scale(rewards, weights)
        return Affine(
            center if self.center is None else self.center,
            scale if self.scale is None else self.scale,
        )
