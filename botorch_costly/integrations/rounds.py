"""How long a round of training is: steps, epochs or seconds."""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

from botorch_costly.calls import advised
from botorch_costly.errors import (
    InvalidArgumentError,
    StateMismatchError,
    check,
    check_count,
    check_positive,
)

_MEASURED = 10  # steps of the first round in seconds, whose time sets the steps of the next round


@advised
@dataclass(frozen=True)
class RoundLength:
    """The length of a round, in one of three units.

    Args:
        steps: Steps of the optimizer.
        epochs: Passes over the training data.
        seconds: Approximate seconds of training. The time of a step in one round sets the number of steps
            of the next round; the first round has ten steps.

    Raises:
        InvalidArgumentError: If not exactly one of them is given, or it is not positive.

    Example:
        >>> RoundLength(steps=50)
        RoundLength(steps=50, epochs=None, seconds=None)
    """

    _: KW_ONLY
    steps: int | None = None
    epochs: int | None = None
    seconds: float | None = None

    @property
    def unit(self) -> str:
        """``"steps"``, ``"epochs"`` or ``"seconds"``."""
        return next(name for name, value in vars(self).items() if value is not None)

    def __post_init__(self) -> None:
        units = [name for name, value in vars(self).items() if value is not None]
        check(len(units) == 1, "RoundLength", "one of steps, epochs and seconds", units)
        if self.seconds is not None:
            check_positive("seconds", self.seconds)
        for name in ("steps", "epochs"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, check_count(name, getattr(self, name), minimum=1))


@advised
class RoundClock:
    """Counts steps and epochs of a round, and tells when the round ends.

    Args:
        length: Length of a round.
        now: Clock in seconds.

    Attributes:
        is_running: Whether a round has begun and not ended.
        done: Steps of the running round, or of the last one.
        enough: Fewer steps than these do not end the running round, unless an epoch ends with them; 0
            without a round. A caller may add such steps to ``done`` itself, in place of ``step``.

    Example:
        >>> clock = RoundClock(RoundLength(steps=2))
        >>> clock.begin()
        >>> clock.step(), clock.step()
        (False, True)
    """

    def __init__(self, length: RoundLength, now: Callable[[], float] = time.monotonic) -> None:
        check(isinstance(length, RoundLength), "length", "a RoundLength", length)
        self.length, self._now = length, now
        self._in_epochs = length.epochs is not None
        self.done = self._epochs = 0
        self._planned: int | None = None
        self._step_seconds: float | None = None
        self._began: float | None = None  # None after a resume: the time before it is unknown
        self.is_running, self.enough = False, 0.0

    @property
    def steps(self) -> int:
        """Steps of the running round; 0 without one."""
        return self.done if self.is_running else 0

    def begin(self, agree: Callable[[float], float] = float) -> None:
        """Begin a round.

        Args:
            agree: Function from the steps that this process has measured to the common steps of all
                processes of a distributed run.
        """
        self.done = self._epochs = 0
        self._run_for(self._plan(agree))
        self._began = self._now()

    def _run_for(self, planned: int | None) -> None:
        """Run a round of some steps or epochs; None for no round."""
        self._planned, self.is_running = planned, planned is not None
        self.enough = 0 if planned is None else math.inf if self._in_epochs else planned

    def step(self, *, steps: int = 1, ends_epoch: bool = False) -> bool:
        """Count steps, and return whether the round ends with them.

        Args:
            steps: Number of optimizer steps since the last call; 0 if an epoch ends without one.
            ends_epoch: Whether an epoch ends with the steps.

        Raises:
            InvalidArgumentError: If no round has begun.
        """
        planned = self._planned
        if planned is None:
            raise InvalidArgumentError("step", "a round that has begun", "none")
        self.done += steps
        if ends_epoch:
            self._epochs += 1
        if (self._epochs if self._in_epochs else self.done) < planned:
            return False
        if self._began is not None and self.done > 0:
            self._step_seconds = (self._now() - self._began) / self.done
        self._planned = self._began = None  # without a call, in which an interrupt might come
        self.is_running, self.enough = False, 0
        return True

    def rounds_in(self, steps: float | None, epochs: float | None) -> float | None:
        """Return the number of rounds that are to begin; None if unknown.

        Args:
            steps: Remaining steps of the run, if known.
            epochs: Remaining passes over the training data, if known.
        """
        in_epochs = self._in_epochs
        left, length = (epochs, self.length.epochs) if in_epochs else (steps, self.length.steps)
        if left is None or length is None or not math.isfinite(left):
            return None
        if self._planned is not None:
            left -= self._planned - (self._epochs if in_epochs else self.done)
        return max(left, 0.0) / length

    def state_dict(self) -> dict[str, Any]:
        """Return the progress of the round in plain values."""
        done = {"steps": self.done, "epochs": self._epochs, "planned": self._planned}
        return {**done, "step_seconds": self._step_seconds, "unit": self.length.unit}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue within the round of ``state_dict``.

        Raises:
            StateMismatchError: If the state is damaged, or has another unit. Older states have no unit.
        """
        names = set(self.state_dict())
        is_valid = isinstance(state, Mapping) and set(state) in (names, names - {"unit"})
        check(is_valid, "state", "a state_dict of RoundClock", state, StateMismatchError)
        unit = state.get("unit", self.length.unit)
        expected = f"a state of rounds in {self.length.unit}"
        check(unit == self.length.unit, "length", expected, unit, StateMismatchError)
        counts = {name: state[name] for name in ("steps", "epochs", "planned")}
        for name, count in counts.items():
            counted = isinstance(count, int) or (name == "planned" and count is None)
            check(counted, name, "a number of steps or epochs", count, StateMismatchError)
        seconds = state["step_seconds"]
        timed = seconds is None or isinstance(seconds, int | float)
        check(timed, "step_seconds", "seconds, or None", seconds, StateMismatchError)
        self.done, self._epochs = state["steps"], state["epochs"]
        self._step_seconds, self._began = state["step_seconds"], None
        self._run_for(state["planned"])

    def _plan(self, agree: Callable[[float], float]) -> int:
        length = self.length
        if length.seconds is None:
            return length.steps or length.epochs or 1
        measured = self._step_seconds
        steps = _MEASURED if not measured else max(round(length.seconds / measured), 1)
        return int(agree(steps))
