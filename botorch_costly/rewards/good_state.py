"""Recovery from loss spikes in a run without a tuner: the last good state, and the return to it."""

import math
from collections.abc import Mapping
from typing import Any, get_args

import torch

from botorch_costly.calls import advised
from botorch_costly.errors import (
    InvalidArgumentError,
    StateMismatchError,
    check,
    check_count,
    check_positive,
)
from botorch_costly.plain import agree, as_number
from botorch_costly.rewards.metric_gain import Kind, When, least_loss, log_gain
from botorch_costly.rewards.recovery import DEFAULT_MARGIN, Kept, Recovery
from botorch_costly.states import Stateful, outside_inference

_KEYS = {"metric", "margin", "readings", "step", "is_relative", "least", "kept", "parts"}


@advised
class GoodState:
    """The last good state of networks, optimizers and other objects, to which a diverged run returns.

    A run has diverged if a reading of its validation metric is not finite, or worse than the best level
    so far by more than the margin, or if tensors of the state are no longer finite. The rule is that of
    ``GuardedReward``: the best level is smoothed, since single readings are noisy. Schedulers among the
    parts go on, and so do the rates that they write into the groups of an optimizer.

    No run is caught at a lucky reading: the margin grows by itself with each return in a row from a
    finite reading, and a level within it is the level of the run from then on. After one return a loss
    may be 20 % worse, after two 30 %, and so on. What is not finite is never accepted, and a return from
    it leaves the margin as it is.

    Losses below 0 have no ratio, and scores outside of [0, 1] no default margin: from the first such
    value on only readings and states that are not finite have diverged. A loss of 0 counts as the
    smallest one above 0 so far.

    The good state takes as much memory as the parts, and three times that while they go back.

    Args:
        parts: Everything that training changes; each part is saved by ``state_dict`` and restored by
            ``load_state_dict``.
        metric: Kind of the metric: ``"loss"`` is minimized, ``"accuracy"``, or another score, maximized.
        margin: Largest decrease of the level: nats of a loss (0.1 by default, a loss 10 % above the best
            one), units of a score (0.1 by default, 10 points of an accuracy).
        device: Device of the good state; ``"cpu"`` saves memory of an accelerator. That of each part if
            omitted. A part of your own moves what it loads to its device, as those of torch do.

    Raises:
        InvalidArgumentError: If there are no parts, a part lacks ``state_dict`` or ``load_state_dict``,
            the metric is of no such kind, the margin is not positive, or the device does not exist.

    Example:
        >>> import torch
        >>> network = torch.nn.Linear(1, 1, bias=False)
        >>> good = GoodState(network)
        >>> good.follow(0.5, step=10)
        False
        >>> _ = network.weight.data.fill_(math.nan)
        >>> good.follow(math.nan, step=20), good.step, bool(network.weight.isfinite())
        (True, 10, True)
    """

    def __init__(
        self,
        *parts: Stateful,
        metric: Kind = "loss",
        margin: float | None = None,
        device: torch.device | str | None = None,
    ) -> None:
        kinds = list(get_args(Kind))
        is_kind = isinstance(metric, str) and metric in kinds
        check(is_kind, "metric", f"one of {kinds}", metric)
        self.metric = metric
        self.margin = None if margin is None else check_positive("margin", margin)
        self._recovery = Recovery.of(parts, device)
        self._readings = 0
        self._step: int | None = None
        self._is_relative = True  # whether levels are compared; False for values without a margin
        self._least: float | None = None  # smallest loss above 0 so far

    @property
    def step(self) -> int | None:
        """Step of the last good state; None before the first."""
        return self._step

    @property
    def restores(self) -> int:
        """Number of returns to a good state."""
        return 0 if self._recovery.kept is None else self._recovery.kept.restores

    @outside_inference()
    def follow(self, value: float, step: int) -> bool:
        """Keep the present state if it is good, or return to the last good state if it has diverged.

        Args:
            value: A reading of the validation metric.
            step: Step of the reading.

        Returns:
            Whether the parts are back at the state of ``good.step``. Before the first good state there
            is none to return to.

        Raises:
            InvalidArgumentError: If the value is no number, or the step no integer of at least 0.
            RestoreError: If a part refuses its earlier state; all parts then stay as they are.
        """
        value, step = as_number("value", value), check_count("step", step)
        if self._is_relative and not self._has_margin(value):
            self._compare_no_more()
        self._least = least_loss([self._least, value])
        before = self._recovery.kept
        when, margin, level = When(self._readings), self._margin, self._level(value)
        if before is not None and _is_usual(before, level, margin):
            outcome = self._recovery.accept(before, value, level, when)
        else:
            outcome = self._recovery.follow(value, when, margin, self._level)
        self._readings += 1
        kept = self._recovery.kept
        if kept is not None and (before is None or kept.state is not before.state):
            self._step = step
        return outcome in ("diverged", "broken")

    @outside_inference()
    def restore(self) -> None:
        """Return to the last good state now, such as after a training loss that is not finite.

        Raises:
            InvalidArgumentError: If there is none.
            RestoreError: If a part refuses its earlier state; all parts then stay as they are.
        """
        kept = self._recovery.kept
        if kept is None:
            raise InvalidArgumentError("restore", "a good state, by follow(value, step)", "none")
        self._recovery.roll_back(kept, When(kept.round), math.nan)

    @property
    def _margin(self) -> float:
        return DEFAULT_MARGIN[self.metric] if self.margin is None else self.margin

    def _has_margin(self, value: float) -> bool:
        """Return whether a margin applies to a value, if it is finite."""
        if not math.isfinite(value):
            return True
        if self.metric == "loss":
            return value >= 0
        return self.margin is not None or 0 <= value <= 1

    def _level(self, value: float) -> float:
        """Return a number that is higher for better values; NaN for one that is not finite."""
        if not math.isfinite(value):
            return math.nan
        if not self._is_relative:
            return 0.0
        return log_gain(value, self._least) if self.metric == "loss" else value

    def _compare_no_more(self) -> None:
        """Give all levels so far the value that they have from now on."""
        self._is_relative = False
        if self._recovery.kept is not None:
            self._recovery.kept = self._recovery.kept.without_levels()

    def state_dict(self) -> dict[str, Any]:
        """Return the last good state with its levels, in tensors and plain values."""
        return {
            "metric": self.metric,
            "margin": self.margin,
            "readings": self._readings,
            "step": self._step,
            "is_relative": self._is_relative,
            "least": self._least,
            **self._recovery.state_dict(),
        }

    @outside_inference()
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``.

        Raises:
            StateMismatchError: If it is no such state, or one with other options or parts; nothing is
                changed.
        """
        is_valid = isinstance(state, Mapping) and set(state) == _KEYS
        check(is_valid, "state", "a state_dict of GoodState", state, StateMismatchError)
        for name in ("metric", "margin"):
            expected, received = getattr(self, name), state[name]
            check(agree(received, expected), name, repr(expected), received, StateMismatchError)
        try:
            kept = Kept.from_state(state["kept"])
            readings = check_count("readings", state["readings"])
            step = None if state["step"] is None else check_count("step", state["step"])
        except (TypeError, InvalidArgumentError) as error:
            raise StateMismatchError("state", "a state_dict of GoodState", error) from error
        self._recovery.check_fits(kept, state["parts"])
        self._recovery.kept, self._readings, self._step = kept, readings, step
        self._is_relative, self._least = bool(state["is_relative"]), state["least"]


def _is_usual(kept: Kept, level: float, margin: float) -> bool:
    """Return whether a level is worse than the margin allows, and the run returns to it each time."""
    returns = kept.worse
    return kept.has_diverged(level, margin) and not kept.has_diverged(level, (1 + returns) * margin)
