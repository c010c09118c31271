"""Recovery from divergence: a copy of the last good state of training, and the return to it."""

import contextlib
import copy
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch.optim import Optimizer

from botorch_costly.errors import (
    InvalidArgumentError,
    RestoreError,
    StateMismatchError,
    check,
    check_count,
    check_positive,
    is_power_of_two,
)
from botorch_costly.plain import as_number
from botorch_costly.records import Decision
from botorch_costly.rewards.gain import GainReward, When
from botorch_costly.states import (
    Stateful,
    check_states_of,
    have_diverged,
    kinds_of,
    nans,
    outside_inference,
)

_logger = logging.getLogger(__name__)
_DEFAULT_MARGIN = {"loss": 0.1, "accuracy": 0.1}  # nats, share
_SMOOTHING = 0.3  # weight of the new level in the smoothed level: single queries are noisy
# Restores in a row that are reported, as are all larger powers of two.
_SUSPICIOUS = 8
_STAYS_NAN = 2  # if metric or weights are not finite
# Keys of a parameter group that schedulers write: they follow time, and are not restored.
_SCHEDULED = ("lr", "initial_lr", "momentum", "betas")
_WORTH_KEEPING = 2 / 3  # of the margin: how far below the best level a state is still kept


@dataclass(frozen=True)
class _Parts:
    """The parts of ``GuardedReward.of``; pickled and copied with the guard."""

    parts: tuple[Stateful, ...]

    def save(self) -> list[Any]:
        return [stateful.state_dict() for stateful in self.parts]

    def restore(self, states: list[Any]) -> None:
        for stateful, state in zip(self.parts, states, strict=True):
            if isinstance(stateful, Optimizer):
                stateful.load_state_dict(_with_current_groups(state, stateful.state_dict()))
            elif not _is_scheduler(stateful):  # a scheduler counts time, which goes on
                stateful.load_state_dict(state)


def _is_scheduler(stateful: Stateful) -> bool:
    """Return whether an object schedules the rates of an optimizer, in torch or with that interface."""
    if hasattr(stateful, "get_last_lr") or hasattr(stateful, "last_epoch"):
        return True
    wraps = hasattr(stateful, "zero_grad") or hasattr(
        stateful, "parameters"
    )  # optimizer or network
    return isinstance(getattr(stateful, "optimizer", None), Optimizer) and not wraps


def _with_current_groups(kept: dict[str, Any], current: dict[str, Any]) -> dict[str, Any]:
    """Return a kept state of an optimizer with the parameters added since, which have no state."""
    numbers: dict[Any, Any] = {}
    groups = []
    for before, now in zip(kept["param_groups"], current["param_groups"], strict=False):
        if len(before["params"]) > len(now["params"]):
            return kept  # of another optimizer, which refuses it
        numbers |= zip(before["params"], now["params"], strict=False)
        rates = {key: now[key] for key in _SCHEDULED if key in now}
        groups.append({**now, **before, **rates, "params": now["params"]})
    groups += current["param_groups"][len(kept["param_groups"]) :]
    state = {numbers.get(number, number): value for number, value in kept["state"].items()}
    return {**kept, "state": state, "param_groups": groups}


@dataclass(frozen=True)
class _Kept:
    """The last good state with its metric, and the levels of the run."""

    state: Any
    metric: float
    last: float  # level of the last good query
    smooth: float  # level
    best: float  # level
    round: int  # of the last query
    interval: int | None  # of the last query; None for bare rounds
    restores: int = 0
    in_a_row: int = 0  # restores since the last good query

    def __post_init__(self) -> None:
        for name in ("metric", "last", "smooth", "best"):
            value = as_number(name, getattr(self, name))
            check(math.isfinite(value), name, "a finite number", value)
        for name in ("round", "restores", "in_a_row"):
            check_count(name, getattr(self, name))
        if self.interval is not None:
            check_count("interval", self.interval)


class GuardedReward:
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
        for name, function in (("save", save), ("restore", restore)):
            check(callable(function), name, "a function", function)
        self.reward = reward
        if margin is None:
            margin = _DEFAULT_MARGIN[reward.kind] * reward.scale
        self.margin = check_positive("margin", margin)
        self._save, self._restore = save, restore
        self._kept: _Kept | None = None
        self._parts: tuple[Stateful, ...] | None = None  # unknown if there are functions
        self._warned_of_nans = False

    @classmethod
    def of(
        cls, reward: GainReward, *parts: Stateful, margin: float | None = None
    ) -> "GuardedReward":
        """Guard networks, optimizers and other objects with a ``state_dict``.

        Args:
            reward: Gains since the last query, with a finite clip.
            parts: Everything that training changes; each part is saved by ``state_dict`` and restored
                by ``load_state_dict``.
            margin: Largest decrease of the level, in units of the reward; 0.1 nats of a loss and 10
                points of an accuracy if omitted.

        Raises:
            InvalidArgumentError: If the reward or the margin is invalid, there are no parts, a part is a
                class instead of an instance, or a part lacks ``state_dict`` or ``load_state_dict``.
        """
        check(len(parts) > 0, "parts", "at least one network, optimizer, ..", parts)
        for stateful in parts:
            is_instance = not isinstance(stateful, type)
            check(
                is_instance, "parts", "networks, optimizers, .. themselves, and no class", stateful
            )
            has_state = hasattr(stateful, "state_dict") and hasattr(stateful, "load_state_dict")
            check(has_state, "parts", "parts with a state_dict and a load_state_dict", stateful)
        guarded = _Parts(parts)
        guard = cls(reward, guarded.save, guarded.restore, margin=margin)
        guard._parts = parts
        return guard

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
        before = self.reward.state_dict()
        try:
            return self._guard(as_number("metric", metric), round)
        except BaseException:
            self.reward.load_state_dict(before)
            raise

    def _guard(self, metric: float, round: int | Decision) -> float | None:
        kept = self._kept
        if kept is None:
            return self._begin(metric, round)
        gain, level = self.reward(metric, round), self.reward.level(metric)
        when = When.from_decision(round)
        if not level >= kept.best - self.margin:
            self._roll_back(kept, round, metric)
            return -self.reward.clip if math.isnan(level) else gain
        state = self._save()
        if have_diverged(state, kept.state):
            self._roll_back(kept, round, math.nan)
            return -self.reward.clip
        share = 1 - (1 - _SMOOTHING) ** when.since(When(kept.round, kept.interval))
        smooth = kept.smooth + share * (level - kept.smooth)
        # Two good queries in a row are no noise; the smoothed level lags where a run improves quickly.
        best = max(kept.best, smooth, min(kept.last, level) - self.margin / 2)
        kept = replace(kept, **when._asdict(), last=level, smooth=smooth, best=best, in_a_row=0)
        good = max(best, self.reward.level(kept.metric))
        if level >= good - _WORTH_KEEPING * self.margin:
            kept = replace(kept, state=copy.deepcopy(state), metric=metric)
        self._kept = kept
        return gain

    def _begin(self, metric: float, round: int | Decision) -> float | None:
        """Keep the first good state."""
        before = self.reward.state_dict()
        gain, level = self.reward(metric, round), self.reward.level(metric)
        if not math.isfinite(level):
            return gain
        state = self._save()
        paths = nans(state)
        if paths:
            self._warn_of_nans(paths[0])
            self.reward.load_state_dict(before)
            return self.reward(math.nan, round)
        when = When.from_decision(round)
        self._kept = _Kept(copy.deepcopy(state), metric, level, level, level, *when)
        return gain

    def _warn_of_nans(self, path: tuple[Any, ...]) -> None:
        if self._warned_of_nans:
            return
        self._warned_of_nans = True
        if self._parts is not None:
            path = (kinds_of(self._parts)[path[0]], *path[1:])
        _logger.warning(
            "There is no good state to return to, and the current one holds a NaN (%s): it is not kept, "
            "and the query fails. Build the parts anew, or leave out a part with intended NaNs.",
            ", ".join(map(str, path)) or "state",
        )

    def _roll_back(self, kept: _Kept, round: int | Decision, metric: float) -> None:
        before = copy.deepcopy(self._save())
        try:
            self._restore(copy.deepcopy(kept.state))
        except BaseException as error:
            with contextlib.suppress(Exception):  # some parts may be restored already
                self._restore(before)
            if not isinstance(error, Exception):
                raise
            raise RestoreError("restore", "to continue from the last good state", error) from error
        self.reward.rebase(kept.metric, round)
        count = kept.in_a_row + 1
        restores, when = kept.restores + 1, When.from_decision(round)
        self._kept = replace(kept, **when._asdict(), restores=restores, in_a_row=count)
        if not math.isfinite(metric) and count >= _STAYS_NAN and is_power_of_two(count):
            _logger.warning(
                "The network was rolled back %d times in a row, for the metric or the weights are not "
                "finite: training diverges with every configuration, or an object outside the guard is "
                "broken, such as an average of the weights. Guard everything that training changes.",
                count,
            )
        elif count >= _SUSPICIOUS and is_power_of_two(count):
            _logger.warning(
                "The network was rolled back %d times in a row: training diverges with every "
                "configuration, or the metric is reversed, or on another scale than %g, the last good "
                "metric.",
                count,
                kept.metric,
            )

    def state_dict(self) -> dict[str, Any]:
        """Return the last good state, and the levels that decide when to return to it."""
        kept = None if self._kept is None else dict(vars(self._kept))
        state = {"reward": self.reward.state_dict(), "margin": self.margin, "kept": kept}
        return state if self._parts is None else {**state, "parts": kinds_of(self._parts)}

    @outside_inference()
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``.

        Raises:
            StateMismatchError: If the state was saved with other options, by another class, or with other
                parts or in another order, as far as a check is possible; the guard is unchanged.
        """
        try:
            kept = None if state["kept"] is None else _Kept(**copy.deepcopy(state["kept"]))
            reward, margin = state["reward"], state["margin"]
        except (KeyError, TypeError, InvalidArgumentError) as error:
            kind = type(state).__name__
            received = sorted(map(str, state)) if isinstance(state, Mapping) else kind
            raise StateMismatchError("state", "a state_dict of GuardedReward", received) from error
        check(margin == self.margin, "state margin", str(self.margin), margin, StateMismatchError)
        if self._parts is not None:
            held = [] if kept is None else [kept.state]
            check_states_of(self._parts, held, state.get("parts"))
        self.reward.load_state_dict(reward)
        self._kept = kept
