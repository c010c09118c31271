"""Gains of a run that goes back to its last good state once it has diverged."""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from botorch_costly.calls import advised, check_takes
from botorch_costly.errors import InvalidArgumentError, StateMismatchError, check, check_positive
from botorch_costly.lookups import Advising
from botorch_costly.plain import agree, as_number
from botorch_costly.records import Decision
from botorch_costly.rewards.applied_rates import AppliedSettings, rates_in
from botorch_costly.rewards.gain import GainReward
from botorch_costly.rewards.idle_rounds import IdleRounds
from botorch_costly.rewards.metric_gain import When
from botorch_costly.rewards.recovery import DEFAULT_MARGIN, Kept, Recovery
from botorch_costly.rewards.sample import Reading, Sample
from botorch_costly.states import Stateful, outside_inference

_DEVIATIONS = 2.0  # of a level that is read from a part, by which the margin is larger


@advised
class GuardedReward(Advising):
    r"""A gain that rolls the network back when a query shows that it has diverged.

    After each query the level of the metric, :math:`-s \log m` of a loss or :math:`s m` of an accuracy,
    is compared with the best level so far, which is smoothed since single queries are noisy. A network
    below it by more than the margin has diverged, and is rolled back to the last good state. The reward
    is still the bad gain, but the next gain counts from the restored state: no configuration is rewarded
    for the recovery from another one.

    Time does not go back: schedulers among the parts go on (they have ``get_last_lr``, ``last_epoch``
    or an attribute ``optimizer``), and the rates and momenta of an optimizer's groups stay as they are,
    so that a schedule ends where it would have. Parameters added to an optimizer after the good state
    stay in it, without a state of their own. If a part refuses its earlier state, all parts get back the
    states that they had before the call.

    A metric that is not finite gives the worst gain, ``-clip``: after a failed query the tuner would
    play the same configuration again. Before the first finite metric there is no good state, and such a
    query fails. A metric that is reversed, or whose scale changes after a break, looks like a divergence
    at every query: a warning reports 8 restores in a row.

    If numbers of a state are not finite, in tensors that were finite before, training has diverged
    whatever the metric: an average of the weights may be fine while the weights are broken. Without a
    good state, a state with a NaN is not kept: such a query fails, and a warning names the tensor. The
    guard cannot repair objects outside its parts: once such an average is broken, every metric is NaN and
    every round is rolled back. Name everything that training changes, including averages; a warning
    reports two such restores in a row.

    Only a query can trigger a restore, so tuners query the last round of a horizon. The
    schedule of a guarded run includes the rounds that were rolled back, and its replay needs a guard as
    well.

    A guard can be pickled and copied. With its parts (or with functions that refer to them) in one
    pickle, such as ``pickle.dumps((guard, network, optimizer))``, the new guard restores the new parts.

    Args:
        reward: Gains since the last query, with a finite clip.
        save: Function that returns everything that training changes, such as weights and the state of the
            optimizer; the guard copies it. ``GuardedReward.of(reward, network, optimizer)`` needs none.
        restore: Function that continues from a result of ``save``.
        margin: Largest decrease of the level, in units of the reward; 0.1 nats of a loss and 10 points of
            an accuracy if omitted.

    Raises:
        InvalidArgumentError: If the margin is not positive, ``save`` or ``restore`` is not callable,
            or the reward is no ``GainReward`` with a finite clip.

    Example:
        >>> weights = {"w": 1.0}
        >>> reward = GuardedReward(GainReward("loss"), weights.copy, weights.update)
        >>> reward(0.5, round=0)
        >>> weights["w"] = 99.0
        >>> reward(1.5, round=1), weights  # three times the loss: rolled back
        (-1.0, {'w': 1.0})
    """

    def __init__(
        self,
        reward: GainReward,
        save: Callable[[], Any],
        restore: Callable[[Any], Any],
        *,
        margin: float | None = None,
    ) -> None:
        is_gain = isinstance(reward, GainReward)
        check(is_gain, "reward", "a GainReward (gains since the last query)", reward)
        check(reward.clip < math.inf, "reward", "a GainReward with a finite clip", reward)
        check_takes("save", save)
        check_takes("restore", restore, "saved")
        self.reward = reward
        if margin is None:
            margin = DEFAULT_MARGIN[reward.kind] * reward.scale
        self.margin = check_positive("margin", margin)
        self._recovery = Recovery(save, restore)
        self._good: Sample | None = None  # whose mean the metric of the good state is
        # Of a loop of the user's, with known parts.
        self._settings: AppliedSettings | None = None
        self._idle: IdleRounds | None = None

    @classmethod
    def of(
        cls,
        reward: GainReward,
        *parts: Stateful,
        margin: float | None = None,
        device: torch.device | str | None = None,
    ) -> "GuardedReward":
        """Guard networks, optimizers and other objects with a ``state_dict``.

        The good state takes as much memory as the parts, and three times that while they are rolled back.

        Args:
            reward: Gains since the last query, with a finite clip.
            parts: Everything that training changes; each part is saved by ``state_dict`` and restored
                by ``load_state_dict``.
            margin: Largest decrease of the level, in units of the reward; 0.1 nats of a loss and 10
                points of an accuracy if omitted.
            device: Device of the good state; ``"cpu"`` saves memory of an accelerator. That of each part
                if omitted. A part of your own moves what it loads to its device, as those of torch do.

        Raises:
            InvalidArgumentError: If the reward or the margin is invalid, there are no parts, a part is a
                class instead of an instance, a part lacks ``state_dict`` or ``load_state_dict``, or the
                device does not exist.
        """
        recovery = Recovery.of(parts, device)
        guard = cls(reward, recovery.save, recovery.restore, margin=margin)
        guard._recovery, guard._settings = recovery, AppliedSettings(parts)
        guard._idle = IdleRounds(parts, recovery.outside)
        return guard

    def trust_rates(self) -> None:
        """Warn of no settings that are not applied: the caller applies them, and checks them."""
        self._settings = self._idle = None

    @property
    def _kept(self) -> Kept | None:
        return self._recovery.kept

    @property
    def restores(self) -> int:
        """Number of times that the network was rolled back."""
        return 0 if self._kept is None else self._kept.restores

    @property
    def has_good_state(self) -> bool:
        """Whether there is a good state to return to."""
        return self._kept is not None

    @outside_inference()
    def __call__(self, metric: float, round: int | Decision) -> float | None:
        """Return the gain since the last query, and roll the network back if it has diverged.

        After an error or an interruption the guard is unchanged, and the query can be repeated.

        Args:
            metric: The metric after the round.
            round: The decision, or the round, later than that of the last query.

        Returns:
            The gain of ``GainReward``; with a good state ``-clip`` for a metric that is not finite.

        Raises:
            InvalidArgumentError: If ``GainReward`` refuses the metric or the round.
            RestoreError: If ``restore`` raises.
        """
        return self._whole(as_number("metric", metric), None, round).reward

    @outside_inference()
    def read(
        self,
        values: Tensor | Sequence[float],
        round: int | Decision,
        *,
        population: int,
        examples: Tensor | Sequence[int] | None = None,
    ) -> Reading:
        """Return the gain and its variance from a part of the validation set, and guard the network.

        A part is noisy: the network has diverged if it is worse by the margin and two standard deviations
        of the level. After a rollback the gain counts from the metric of the restored state, which has
        the variance that it was read with.

        Args:
            values: Value of each example, as for ``GainReward.read``.
            round: The decision, or the round, later than that of the last query.
            population: Number of examples of the whole set.
            examples: Number of each example in the set, if known.

        Returns:
            The reading of ``GainReward.read``, with the rewards of a call.

        Raises:
            InvalidShapeError, InvalidArgumentError: If ``GainReward.read`` refuses an argument.
            RestoreError: If ``restore`` raises.
        """
        sample = Sample.from_values(values, population, examples)
        return self._whole(self.reward.check_metric(sample.mean), sample, round)

    def _whole(self, metric: float, sample: Sample | None, round: int | Decision) -> Reading:
        """Guard a metric; after an error the guard is unchanged."""
        if isinstance(round, Decision):
            self._check_training(round)  # before a rollback, as the round was trained
        before, kept, good = self.reward.state_dict(), self._recovery.kept, self._good
        try:
            reading = self._guard(metric, sample, round, before)
        except BaseException:
            self.reward.load_state_dict(before)
            self._recovery.kept, self._good = kept, good
            raise
        if self._idle is not None:
            self._idle.begin_round()
        return reading

    def _check_training(self, decision: Decision) -> None:
        """Warn if the parts were trained with other settings than those of decisions, or not at all."""
        if self._settings is None or self._idle is None:
            return
        self._idle.end_round()
        if not self._idle.are_trained_elsewhere:
            self._settings.note(decision.config, rates_in(decision.config))

    def _guard(
        self,
        metric: float,
        sample: Sample | None,
        round: int | Decision,
        before: Mapping[str, Any],
    ) -> Reading:
        """Guard a metric; ``before`` is the state of the reward."""
        kept = self._recovery.kept
        gain, when = self.reward.follow(metric, sample, round), When.from_decision(round)
        margin = self.margin + _DEVIATIONS * math.sqrt(self.reward.variance_of(sample))
        outcome = self._recovery.follow(metric, when, margin, self.reward.level)
        if outcome == "nan":
            self.reward.load_state_dict(before)
            return self.reward.follow(math.nan, None, round)
        now = self._recovery.kept
        if now is not None and (kept is None or now.state is not kept.state):
            self._good = sample
        if outcome in ("none", "good") or kept is None:
            return gain
        is_worst = outcome == "broken" or math.isnan(self.reward.level(metric))
        self.reward.rebase(kept.metric, round, self._good)
        return Reading(-self.reward.clip, 0.0) if is_worst else gain

    def state_dict(self) -> dict[str, Any]:
        """Return the last good state, and the levels that decide when to return to it."""
        options = {"reward": self.reward.state_dict(), "margin": self.margin}
        sample = None if self._good is None else self._good.state_dict()
        return {**options, **self._recovery.state_dict(), "sample": sample}

    @outside_inference()
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``.

        Raises:
            StateMismatchError: If the state was saved with other options, by another class, or with other
                parts or in another order, as far as a check is possible; the guard is unchanged.
        """
        try:
            kept = Kept.from_state(state["kept"])
            reward, margin = state["reward"], state["margin"]
            good = Sample.from_state(state.get("sample"))  # states of earlier versions lack it
        except (KeyError, TypeError, InvalidArgumentError) as error:
            kind = type(state).__name__
            received = sorted(map(str, state)) if isinstance(state, Mapping) else kind
            raise StateMismatchError("state", "a state_dict of GuardedReward", received) from error
        check(
            agree(margin, self.margin), "state margin", str(self.margin), margin, StateMismatchError
        )
        self._recovery.check_fits(kept, state.get("parts"))
        self.reward.load_state_dict(reward)
        self._recovery.kept, self._good = kept, good
