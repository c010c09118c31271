"""The last good state of a run: keeping it, telling divergence by a level, and the return to it."""

import contextlib
import copy
import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch.optim import Optimizer

from botorch_costly.device import check_device
from botorch_costly.errors import (
    RestoreError,
    check,
    check_count,
    is_power_of_two,
)
from botorch_costly.plain import as_number
from botorch_costly.rewards.metric_gain import When
from botorch_costly.rewards.outside_optimizers import OutsideOptimizers
from botorch_costly.rewards.turns import Turns
from botorch_costly.states import Stateful, check_states_of, copied, have_diverged, kinds_of, nans

_logger = logging.getLogger(__name__)
DEFAULT_MARGIN = {"loss": 0.1, "accuracy": 0.1}  # nats, share
_SMOOTHING = 0.3  # weight of the new level in the smoothed level: single queries are noisy
# Restores in a row that are reported, as are all larger powers of two.
_SUSPICIOUS = 8
_STAYS_NAN = 2  # if metric or weights are not finite
# Keys of a parameter group that schedulers write: they follow time, and are not restored.
_SCHEDULED = ("lr", "initial_lr", "momentum", "betas")
_WORTH_KEEPING = 2 / 3  # of the margin: how far below the best level a state is still kept

# The result of following a run: there is no good state yet; the first state holds a NaN; the state is
# good; its level has diverged, or its tensors have, and the run is back at the last good state.
Outcome = Literal["none", "nan", "good", "diverged", "broken"]


@dataclass(frozen=True)
class Parts:
    """Networks, optimizers and other objects; pickled and copied with their guard."""

    parts: tuple[Stateful, ...]

    def save(self) -> list[Any]:
        """Return the states of all parts, which share memory with them."""
        return [stateful.state_dict() for stateful in self.parts]

    def restore(self, states: list[Any]) -> None:
        """Load the states; schedulers, and the rates that they write, stay as they are."""
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
class Kept:
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
    worse: int = 0  # those of them after a finite metric

    def __post_init__(self) -> None:
        for name in ("metric", "last", "smooth", "best"):
            value = as_number(name, getattr(self, name))
            check(math.isfinite(value), name, "a finite number", value)
        for name in ("round", "restores", "in_a_row", "worse"):
            check_count(name, getattr(self, name))
        if self.interval is not None:
            check_count("interval", self.interval)

    @classmethod
    def from_state(cls, state: Any) -> "Kept | None":
        """Return a copy of a good state in a ``state_dict``; None if there was none.

        Raises:
            TypeError, InvalidArgumentError: If it is damaged.
        """
        return None if state is None else cls(**copy.deepcopy(state))

    def has_diverged(self, level: float, margin: float) -> bool:
        """Return whether a level is further below the best one than the margin, or not finite."""
        return not level >= self.best - margin

    def after(self, level: float, when: When, margin: float) -> "Kept":
        """Return the levels after a good query."""
        share = 1 - (1 - _SMOOTHING) ** when.since(When(self.round, self.interval))
        smooth = self.smooth + share * (level - self.smooth)
        # Two good queries in a row are no noise; the smoothed level lags where a run improves quickly.
        best = max(self.best, smooth, min(self.last, level) - margin / 2)
        now, interval = when
        return replace(
            self,
            last=level,
            smooth=smooth,
            best=best,
            round=now,
            interval=interval,
            in_a_row=0,
            worse=0,
        )

    def without_levels(self) -> "Kept":
        """Return the same state with levels of 0, for metrics whose levels are not compared."""
        return replace(self, last=0.0, smooth=0.0, best=0.0)


class Recovery:
    """Keeps the last good state of a run, and returns to it once the run has diverged.

    Args:
        save: Function that returns everything that training changes; the result is copied.
        restore: Function that continues from a result of ``save``.
        parts: The objects whose states these are, if known.
        device: Device of the copies of their states; that of each part if omitted.
    """

    def __init__(
        self,
        save: Callable[[], Any],
        restore: Callable[[Any], Any],
        parts: tuple[Stateful, ...] | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        self._device = None if device is None else check_device(device)
        self.save, self.restore, self._parts = save, restore, parts
        self.kept: Kept | None = None
        self._warned_of_nans = False
        advice = "network, optimizer, .."
        self.outside = None if parts is None else OutsideOptimizers(parts, advice)
        self._turns = Turns(parts or (), "guard")

    @classmethod
    def of(
        cls, parts: tuple[Stateful, ...], device: torch.device | str | None = None
    ) -> "Recovery":
        """Return the recovery of networks, optimizers and other objects with a ``state_dict``.

        Raises:
            InvalidArgumentError: If there are no parts, a part is a class instead of an instance, or
                lacks ``state_dict`` or ``load_state_dict``, or the device does not exist.
        """
        check(len(parts) > 0, "parts", "at least one network, optimizer, ..", parts)
        for stateful in parts:
            is_instance = not isinstance(stateful, type)
            expected = "networks, optimizers, .. themselves, and no class"
            check(is_instance, "parts", expected, stateful)
            has_state = hasattr(stateful, "state_dict") and hasattr(stateful, "load_state_dict")
            check(has_state, "parts", "parts with a state_dict and a load_state_dict", stateful)
        listed = Parts(parts)
        return cls(listed.save, listed.restore, parts, device)

    def _copied(self, state: Any) -> Any:
        """Return a copy of a state.

        Functions of a user may assign the tensors that they receive, so parameters and views stay such.
        Parts load the numbers into their own tensors, and a copy of the numbers is made faster.
        """
        return copy.deepcopy(state) if self._parts is None else copied(state, self._device)

    def follow(
        self, metric: float, when: When, margin: float, level_of: Callable[[float], float]
    ) -> Outcome:
        """Keep the state if it is good, or return to the last good one if it has diverged.

        Args:
            metric: The metric of the state.
            when: Round of the metric.
            margin: Largest decrease of the level.
            level_of: Function that returns the level of a metric, higher is better; NaN without one.

        Raises:
            RestoreError: If ``restore`` raises; the parts have the states that they had before.
        """
        if self.outside is not None:
            self.outside.end()  # a round has been seen
        self._turns.take()
        kept, level = self.kept, level_of(metric)
        if kept is None:
            return self._begin(metric, level, when)
        if kept.has_diverged(level, margin):
            self.roll_back(kept, when, metric)
            return "diverged"
        state = self.save()
        if have_diverged(state, kept.state):
            self.roll_back(kept, when, math.nan)
            return "broken"
        kept = kept.after(level, when, margin)
        good = max(kept.best, level_of(kept.metric))
        if level >= good - _WORTH_KEEPING * margin:
            kept = replace(kept, state=self._copied(state), metric=metric)
        self.kept = kept
        return "good"

    def _begin(self, metric: float, level: float, when: When) -> Outcome:
        """Keep the first good state."""
        if not math.isfinite(level):
            return "none"
        state = self.save()
        paths = nans(state)
        if paths:
            self._warn_of_nans(paths[0])
            return "nan"
        self.kept = Kept(self._copied(state), metric, level, level, level, *when)
        return "good"

    def accept(self, kept: Kept, metric: float, level: float, when: When) -> Outcome:
        """Keep the state although its level is worse than the margin allows, as the first of a new run.

        Raises:
            RestoreError: If a tensor is not finite, and ``restore`` raises.
        """
        state = self.save()
        if have_diverged(state, kept.state):
            self.roll_back(kept, when, math.nan)
            return "broken"
        _logger.warning(
            "After %d returns in a row from a worse metric it is %g: this is taken as the level of the "
            "run, and the last good metric of %g as luck. A larger margin goes back less often.",
            kept.worse,
            metric,
            kept.metric,
        )
        begun = Kept(self._copied(state), metric, level, level, level, *when)
        self.kept = replace(begun, restores=kept.restores)
        return "good"

    def roll_back(self, kept: Kept, when: When, metric: float) -> None:
        """Return to a good state, because of a metric.

        Raises:
            RestoreError: If ``restore`` raises; the parts have the states that they had before.
        """
        before = self._copied(self.save())
        try:
            self.restore(self._copied(kept.state))
        except BaseException as error:
            with contextlib.suppress(Exception):  # some parts may be restored already
                self.restore(before)
            if not isinstance(error, Exception):
                raise
            raise RestoreError("restore", "to continue from the last good state", error) from error
        restores, count = kept.restores + 1, kept.in_a_row + 1
        worse = kept.worse + math.isfinite(metric)
        kept_on = replace(kept, **when._asdict(), restores=restores)
        self.kept = replace(kept_on, in_a_row=count, worse=worse)
        _warn_of_restores(metric, kept.metric, count)

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

    def state_dict(self) -> dict[str, Any]:
        """Return the last good state with its levels, and the kinds of the parts, if they are known."""
        kept = None if self.kept is None else dict(vars(self.kept))
        return (
            {"kept": kept}
            if self._parts is None
            else {"kept": kept, "parts": kinds_of(self._parts)}
        )

    def check_fits(self, kept: Kept | None, kinds: Any) -> None:
        """Raise if a good state of parts of these kinds evidently does not belong to these parts.

        Raises:
            StateMismatchError: If it does not fit.
        """
        if self._parts is not None:
            check_states_of(self._parts, [] if kept is None else [kept.state], kinds)


def _warn_of_restores(metric: float, good: float, count: int) -> None:
    """Warn of many restores in a row, given the metric and that of the good state."""
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
            good,
        )
