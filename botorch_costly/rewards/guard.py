"""A way back once training has diverged: a copy of the last good network, and a return to it."""

import contextlib
import copy
import logging
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

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
    check_states_of,
    have_diverged,
    kinds_of,
    nans,
    outside_inference,
)

_logger = logging.getLogger(__name__)
_DEFAULT_MARGIN = {"loss": 0.1, "accuracy": 0.1}  # nats, share
_SHARE_OF_THE_NEW = 0.3  # of the latest level in the smoothed one: single queries are noisy
_SUSPICIOUS = 8  # restores in a row, and all powers of two from there
# What schedulers write in a group: it belongs to the time that has passed, and does not go back.
_SCHEDULED = ("lr", "initial_lr", "momentum", "betas")
_STAYS_NAN = 2  # restores in a row by metrics that are not finite, and all powers of two from there
_WORTH_KEEPING = 2 / 3  # of the margin: how far below the best a state may lie and still be kept


class Stateful(Protocol):
    """Whatever can be saved and restored, such as a network or an optimizer."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state."""

    def load_state_dict(self, state: Any) -> Any:
        """Continue from it."""


@dataclass(frozen=True)
class _Parts:
    """What ``GuardedReward.of`` saves and restores; pickled and copied with the guard."""

    parts: tuple[Stateful, ...]

    def save(self) -> list[Any]:
        return [part.state_dict() for part in self.parts]

    def restore(self, states: list[Any]) -> None:
        for part, state in zip(self.parts, states, strict=True):
            if isinstance(part, Optimizer):
                part.load_state_dict(_with_groups_of_today(state, part.state_dict()))
            elif not _is_scheduler(part):  # which counts time, and that goes on
                part.load_state_dict(state)


def _is_scheduler(part: Stateful) -> bool:
    """Return whether a part moves the rates of an optimizer, of torch or with such a face."""
    if hasattr(part, "get_last_lr") or hasattr(part, "last_epoch"):
        return True
    wraps = hasattr(part, "zero_grad") or hasattr(part, "parameters")  # an optimizer or a network
    return isinstance(getattr(part, "optimizer", None), Optimizer) and not wraps


def _with_groups_of_today(kept: dict[str, Any], today: dict[str, Any]) -> dict[str, Any]:
    """Return the state of an optimizer with what has been added to its groups since, which has none."""
    numbers: dict[Any, Any] = {}
    groups = []
    for before, now in zip(kept["param_groups"], today["param_groups"], strict=False):
        if len(before["params"]) > len(now["params"]):
            return kept  # of another optimizer, which refuses it
        numbers |= zip(before["params"], now["params"], strict=False)
        rates = {key: now[key] for key in _SCHEDULED if key in now}
        groups.append({**now, **before, **rates, "params": now["params"]})
    groups += today["param_groups"][len(kept["param_groups"]) :]
    state = {numbers.get(number, number): value for number, value in kept["state"].items()}
    return {**kept, "state": state, "param_groups": groups}


@dataclass(frozen=True)
class _Kept:
    """The last good state, what was measured of it, and how good the run has been."""

    state: Any
    metric: float
    last: float  # level of the last good query
    smooth: float  # level
    best: float  # level
    round: int  # of the last query
    interval: int | None  # of the last query; None if rounds are given bare
    restores: int = 0
    in_a_row: int = 0  # of the restores, since the last good query

    def __post_init__(self) -> None:
        for name in ("metric", "last", "smooth", "best"):
            value = as_number(name, getattr(self, name))
            check(math.isfinite(value), name, "a finite number", value)
        for name in ("round", "restores", "in_a_row"):
            check_count(name, getattr(self, name))
        if self.interval is not None:
            check_count("interval", self.interval)


class GuardedReward:
    r"""A gain that rolls the network back when a query finds that it has diverged.

    After each query the level of the metric, :math:`-s \log m` of a loss or :math:`s m` of an
    accuracy, is compared with the best level so far, smoothed, since single queries are noisy. A
    network more than the margin below it has diverged, and is rolled back to the last good state. The
    tuner is still told how bad the gain was, and the next gain counts from the restored state: no
    configuration is rewarded for repairing what another one broke.

    Time does not go back: a scheduler among the parts goes on (known by its ``get_last_lr``, its
    ``last_epoch`` or the ``optimizer`` that it holds), and the rates and momenta of an
    optimizer's groups stay as they are, so that a schedule ends where it would have. Parameters that an
    optimizer has taken up since the good state stay in it, without a state of their own. If a part
    refuses its earlier state, all parts are as they were before.

    A metric that is not finite is the worst gain there is, ``-clip``: a failed query would teach the
    tuner nothing, and it would play the same configuration again. Before the first finite metric there
    is no state to return to, and such a query fails. A metric that is reversed, or on another scale
    after a break, looks like a divergence at every query: after 8 restores in a row a warning says so.

    A state with numbers that are not finite, in tensors that were finite before, has diverged whatever
    its metric: an average of the weights may be well while the weights are broken. Before there is a good
    state, one that holds a NaN is not kept: such a query fails, and a warning names the tensor. The
    reverse cannot be mended: once a part that the guard does not hold, such as that average, is broken,
    every metric is NaN, and every round is given back. Name all that training changes, averages among it;
    a warning says so after two such restores in a row.

    What no query finds is not mended: query after the last round. The schedule of a guarded run holds
    the rounds that were rolled back, too, and needs a guard when it is replayed.

    A guard can be pickled and copied. With its parts (or with functions that refer to them) in one
    pickle, such as ``pickle.dumps((guard, network, optimizer))``, the new guard restores the new parts.

    Args:
        reward: Gains since the last query, with a finite clip.
        save: Returns everything that training changes, such as weights and the optimizer's state; it is
            copied. ``GuardedReward.of(reward, network, optimizer)`` needs no functions.
        restore: Continues from what ``save`` returned.
        margin: How far the level may fall, in units of the reward; 0.1 nats of a loss and 10 points of an
            accuracy if omitted.

    Raises:
        InvalidArgumentError: If the margin is not positive, ``save`` or ``restore`` cannot be called,
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
        gains = isinstance(reward, GainReward)
        check(gains, "reward", "a GainReward (gains since the last query)", reward)
        check(reward.clip < math.inf, "reward", "a GainReward with a finite clip", reward)
        for name, function in (("save", save), ("restore", restore)):
            check(callable(function), name, "a function", function)
        self.reward = reward
        given = _DEFAULT_MARGIN[reward.kind] * reward.scale if margin is None else margin
        self.margin = check_positive("margin", given)
        self._save, self._restore = save, restore
        self._kept: _Kept | None = None
        self._parts: tuple[Stateful, ...] | None = None  # unknown to functions
        self._warned_of_nans = False

    @classmethod
    def of(
        cls, reward: GainReward, *parts: Stateful, margin: float | None = None
    ) -> "GuardedReward":
        """Guard networks, optimizers and whatever else has a ``state_dict``.

        Args:
            reward: Gains since the last query, with a finite clip.
            parts: Everything that training changes; each part is saved by ``state_dict`` and restored
                by ``load_state_dict``.
            margin: As above.

        Raises:
            InvalidArgumentError: As above, or if there are no parts, a part is a class in place of an
                instance, or a part has no ``state_dict`` and ``load_state_dict``.
        """
        check(len(parts) > 0, "parts", "at least one network, optimizer, ..", parts)
        for part in parts:
            made = not isinstance(part, type)
            check(made, "parts", "networks, optimizers, .. themselves, and no class", part)
            stateful = hasattr(part, "state_dict") and hasattr(part, "load_state_dict")
            check(stateful, "parts", "parts with a state_dict and a load_state_dict", part)
        guarded = _Parts(parts)
        guard = cls(reward, guarded.save, guarded.restore, margin=margin)
        guard._parts = parts
        return guard

    @property
    def restores(self) -> int:
        """How often the network was rolled back."""
        return 0 if self._kept is None else self._kept.restores

    @property
    def has_good_state(self) -> bool:
        """Whether a query has found a state that can be returned to."""
        return self._kept is not None

    @outside_inference()
    def __call__(self, metric: float, round: int | Decision) -> float | None:
        """Return the gain since the last query, and roll the network back if it has diverged.

        After an error or an interruption the guard is as it was before, and the query can be repeated.

        Args:
            metric: The metric after the round.
            round: The decision, or the round, later than that of the last query.

        Returns:
            The gain, as ``GainReward`` returns it; ``-clip`` for a metric that is not finite once there
            is a good state.

        Raises:
            InvalidArgumentError: As ``GainReward``.
            RestoreError: If ``restore`` raised.
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
        when = When.of(round)
        if not level >= kept.best - self.margin:
            self._roll_back(kept, round, metric)
            return -self.reward.clip if math.isnan(level) else gain
        state = self._save()
        if have_diverged(state, kept.state):
            self._roll_back(kept, round, math.nan)
            return -self.reward.clip
        share = 1 - (1 - _SHARE_OF_THE_NEW) ** when.since(When(kept.round, kept.interval))
        smooth = kept.smooth + share * (level - kept.smooth)
        # Two good queries in a row are no luck; the smoothed level lags where a run improves quickly.
        best = max(kept.best, smooth, min(kept.last, level) - self.margin / 2)
        kept = replace(kept, **when._asdict(), last=level, smooth=smooth, best=best, in_a_row=0)
        good = max(best, self.reward.level(kept.metric))
        if level >= good - _WORTH_KEEPING * self.margin:
            kept = replace(kept, state=copy.deepcopy(state), metric=metric)
        self._kept = kept
        return gain

    def _begin(self, metric: float, round: int | Decision) -> float | None:
        """Keep the first state that is good."""
        before = self.reward.state_dict()
        gain, level = self.reward(metric, round), self.reward.level(metric)
        if not math.isfinite(level):
            return gain
        state = self._save()
        broken = nans(state)
        if broken:
            self._warn_of_nans(broken[0])
            self.reward.load_state_dict(before)
            return self.reward(math.nan, round)
        self._kept = _Kept(copy.deepcopy(state), metric, level, level, level, *When.of(round))
        return gain

    def _warn_of_nans(self, path: tuple[Any, ...]) -> None:
        if self._warned_of_nans:
            return
        self._warned_of_nans = True
        if self._parts is not None:
            path = (kinds_of(self._parts)[path[0]], *path[1:])
        _logger.warning(
            "There is no good state to go back to, and the present one holds a NaN (%s): it is not "
            "kept, and the query fails. Build the parts anew, or leave out a part whose NaNs are meant.",
            ", ".join(map(str, path)) or "state",
        )

    def _roll_back(self, kept: _Kept, round: int | Decision, metric: float) -> None:
        before = copy.deepcopy(self._save())
        try:
            self._restore(copy.deepcopy(kept.state))
        except BaseException as error:
            with contextlib.suppress(Exception):  # else some parts were of then, and others of now
                self._restore(before)
            if not isinstance(error, Exception):
                raise
            raise RestoreError("restore", "to continue from the last good state", error) from error
        self.reward.rebase(kept.metric, round)
        again = kept.in_a_row + 1
        restores, when = kept.restores + 1, When.of(round)
        self._kept = replace(kept, **when._asdict(), restores=restores, in_a_row=again)
        if not math.isfinite(metric) and again >= _STAYS_NAN and is_power_of_two(again):
            _logger.warning(
                "The network was rolled back %d times in a row, for the metric or the weights are not "
                "finite: training diverges with every configuration, or something is broken that the "
                "guard does not hold, such as an average of the weights. Guard all that training "
                "changes.",
                again,
            )
        elif again >= _SUSPICIOUS and is_power_of_two(again):
            _logger.warning(
                "The network was rolled back %d times in a row: training diverges with every "
                "configuration, or the metric is reversed, or on another scale than %g, which was "
                "the last good one.",
                again,
                kept.metric,
            )

    def state_dict(self) -> dict[str, Any]:
        """Return the last good state, and everything that decides when to return to it."""
        kept = None if self._kept is None else dict(vars(self._kept))
        state = {"reward": self.reward.state_dict(), "margin": self.margin, "kept": kept}
        return state if self._parts is None else {**state, "parts": kinds_of(self._parts)}

    @outside_inference()
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``.

        Raises:
            StateMismatchError: If the state was saved with other options, or by another class, or is of
                other parts or in another order, as far as that can be told; the guard is unchanged.
        """
        try:
            kept = None if state["kept"] is None else _Kept(**copy.deepcopy(state["kept"]))
            reward, margin = state["reward"], state["margin"]
        except (KeyError, TypeError, InvalidArgumentError) as error:
            received = (
                sorted(map(str, state)) if isinstance(state, Mapping) else type(state).__name__
            )
            raise StateMismatchError("state", "a state_dict of GuardedReward", received) from error
        check(margin == self.margin, "state margin", str(self.margin), margin, StateMismatchError)
        if self._parts is not None:
            held = [] if kept is None else [kept.state]
            check_states_of(self._parts, held, state.get("parts"))
        self.reward.load_state_dict(reward)
        self._kept = kept
