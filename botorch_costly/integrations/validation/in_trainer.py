"""A ``Validation`` within the fits of a trainer: the part that the callbacks of all trainers share."""

import logging
from collections.abc import Collection, Mapping
from typing import Any

import torch
from torch import Tensor

from botorch_costly.ask_tell.generators import global_generators, set_global_generators
from botorch_costly.device import check_device
from botorch_costly.errors import InvalidArgumentError, StateMismatchError, check, check_positive
from botorch_costly.integrations.metric_names import warn_of_kind
from botorch_costly.integrations.validation.parts import PartReader
from botorch_costly.integrations.validation.shared import SharedValidation, fresh_state
from botorch_costly.rewards import GoodState
from botorch_costly.states import Stateful
from botorch_costly.validation import Validation

_logger = logging.getLogger(__name__)
_KEYS = {"shared", "good"}
_FURTHER = {"level"}  # keys that states of earlier versions lack


class TrainerValidation:
    """A ``Validation`` that the callback of a trainer asks and tells, on all ranks.

    A callback calls ``connect`` when the processes of a fit exist, ``begin`` when network and optimizer
    are initialized or restored, ``after_step`` after each step of the optimizer, and ``validated`` with
    the metrics of each validation. Validations leave the global generators as they were.

    A validation belongs to one run: in a fit that begins anew it returns to its state at the first one.

    Args:
        validation: A ``Validation``; with ``examples`` on a single rank only.
        monitor: Name of the metric.
        guard: Whether a diverged run is put back to its last good state.
        margin: Margin of the guard, see ``GoodState``.
        timeout: Seconds after which a missing rank is lost.
        changed: Options of the validation that may differ from those in a loaded state.
        device: Device of the guard's good state; that of each part if omitted.

    Raises:
        InvalidArgumentError: If an option is invalid.
    """

    def __init__(
        self,
        validation: Validation,
        monitor: str,
        *,
        guard: bool,
        margin: float | None,
        timeout: float,
        changed: Collection[str],
        device: torch.device | str | None = None,
    ) -> None:
        is_validation = isinstance(validation, Validation)
        check(is_validation, "validation", "a Validation", validation)
        is_name = isinstance(monitor, str) and bool(monitor)
        check(is_name, "monitor", "the name of a metric", monitor)
        warn_of_kind(monitor, validation.options.metric)
        check(isinstance(guard, bool), "guard", "a bool", guard)
        if margin is not None:
            check(guard, "margin", "guard=True, whose margin it is", "guard=False")
            check_positive("margin", margin)
        if device is not None:
            check(guard, "device", "guard=True, whose state is kept there", "guard=False")
            check_device(device)
        is_list = not isinstance(changed, str)
        check(is_list, "changed", "names of options in a list, such as ['steps']", changed)
        self.validation, self.monitor = validation, monitor
        self._guards, self._margin, self._device = guard, margin, device
        self._timeout, self._changed = check_positive("timeout", timeout), tuple(changed)
        self.reader: PartReader | None = None  # of partial readings, once connected
        self._shared: SharedValidation | None = None
        self._initial: dict[str, Any] = {}
        self._loaded: Mapping[str, Any] | None = None
        self._good: GoodState | None = None
        self._generators: dict[str, Any] | None = None  # before the reading that is due
        self._has_metric = self._has_warned = False  # of this fit

    def connect(self) -> SharedValidation:
        """Connect the ranks of the run, once; all ranks call it. Return their shared validation.

        Raises:
            InvalidArgumentError: If several ranks are to read parts of the examples.
        """
        if self._shared is None:
            self._shared = SharedValidation(self.validation, timeout=self._timeout)
            if self.reads_parts:
                self.reader = PartReader(self._shared)
            self._initial = self.snapshot()
        return self._shared

    @property
    def reads_parts(self) -> bool:
        """Whether readings may be of part of the examples."""
        return self.validation.options.examples is not None

    @property
    def _level(self) -> float | None:
        return None if self.reader is None else self.reader.level

    def _set_level(self, level: float | None) -> None:
        if self.reader is not None:
            self.reader.level = level

    def snapshot(self) -> dict[str, Any]:
        """Return the state of the validation, for ``begin_from`` on this rank."""
        shared = {**self.connect().state_dict(), "validation": self.validation.state_dict()}
        return {"shared": shared, "level": self._level}

    def begin_from(self, snapshot: Mapping[str, Any]) -> None:
        """Return to a snapshot; the clock of the run goes on from there."""
        self.connect().load_state_dict(snapshot["shared"])
        self._set_level(snapshot["level"])

    def begin(self, parts: tuple[Stateful, ...], step: int, *, last: int | None) -> None:
        """Begin a fit, or continue from the loaded state.

        Args:
            parts: Everything that training changes, for the guard.
            step: Number of steps so far.
            last: Last step of the run as the trainer estimates it; None if it is unknown.

        Raises:
            StateMismatchError: If the loaded state has other options or parts.
        """
        shared, metric = self.connect(), self.validation.options.metric
        self._good = None
        if self._guards:
            self._good = GoodState(*parts, metric=metric, margin=self._margin, device=self._device)
        loaded, self._loaded = self._loaded, None
        latest = shared.step if loaded is None else loaded["shared"]["step"]
        if latest > step:
            self.begin_from(self._initial)
        elif loaded is None:
            self.begin_from(self.snapshot())
        else:
            shared.load_state_dict(loaded["shared"], self._changed)
            if self._good is not None and loaded["good"] is not None:
                self._good.load_state_dict(loaded["good"])
            self._set_level(loaded.get("level"))
        self.validation.expect(last)
        if shared.is_due and self.reads_parts:  # states hold no reading in progress: it begins anew
            shared.due(shared.step, last=True)
        self._generators = global_generators() if shared.is_due else None
        self._has_metric = self._has_warned = False
        self.validation.start()

    @property
    def is_due(self) -> bool:
        """Whether a reading waits for its metric."""
        return self._shared is not None and self._shared.is_due

    @property
    def should_stop(self) -> bool:
        """Whether the trainer is to stop, which it never is without ``false_stop``."""
        return self.validation.options.false_stop is not None and self.connect().should_stop

    @property
    def can_restore(self) -> bool:
        """Whether there is a good state to put a diverged run back to."""
        return self._good is not None and self._good.step is not None

    @property
    def restores(self) -> int:
        """Number of times that the run was put back."""
        return 0 if self._good is None else self._good.restores

    def after_step(self, step: int, *, train_loss: Any = None, last: bool = False) -> bool:
        """Return whether to validate after a step.

        Args:
            step: Number of steps so far.
            train_loss: Training loss of the step; another object than a number is no loss.
            last: Whether this is the last step of the run.
        """
        loss = train_loss if _is_number(train_loss) else None
        is_due = self.connect().due(step, train_loss=loss, last=last)
        self._generators = global_generators() if is_due else None
        return is_due

    def restore_generators(self) -> None:
        """Set the global generators to their states before the reading that was due."""
        if self._generators is not None:
            set_global_generators(self._generators)

    def validated(self, metrics: Mapping[str, Any]) -> None:
        """Tell the metric of a validation, and put back a run that has diverged.

        Args:
            metrics: Metrics of this rank by their names. The first validation of a fit has the metric; a
                later one without it is a failed reading.

        Raises:
            InvalidArgumentError: If the first validation of a fit lacks the metric.
        """
        shared = self.connect()
        if self.reader is None:
            self._check_metric(metrics)
        if shared.step < 0:
            return
        mean = self._read(metrics.get(self.monitor))
        if self._good is not None and mean is not None and self._good.follow(mean, shared.step):
            self._put_back(mean, self._good.step or 0)

    def _read(self, value: Any) -> float | None:
        """Record a metric of the whole set; or end a partial reading, whose losses are told already."""
        if self.reader is None:
            return self.connect().tell(value)
        self.connect().close()
        return self.reader.end()

    def _check_metric(self, metrics: Collection[str]) -> None:
        """Raise if the first validation lacks the metric, and warn once of a later one."""
        if self.monitor in metrics:
            self._has_metric = True
        elif not self._has_metric:
            expected = f"a metric of validation, of {sorted(metrics)}"
            raise InvalidArgumentError("monitor", expected, self.monitor)
        elif not self._has_warned:
            self._has_warned = True
            _logger.warning(
                "A validation has no metric %r, and counts as a failed reading.", self.monitor
            )

    def _put_back(self, metric: float, step: int) -> None:
        shared = self.connect()
        shared.restored_to(step)
        if shared.ranks.is_first:
            _logger.warning(
                "The run has diverged by step %d (%s: %g), and goes on from its state of step %d.",
                shared.step,
                self.monitor,
                metric,
                step,
            )

    def log(self) -> None:
        """Log a sentence about the run, on rank 0."""
        if self.connect().ranks.is_first:
            _logger.info("Validation: %s.", self.validation.summary())

    def figures(self) -> dict[str, float]:
        """Return numbers of the run so far by names, for trackers."""
        counts, best = self.validation.counts, self.validation.best
        named = {"readings": counts["readings"], "share": counts["share"], "saved": counts["saved"]}
        if best is not None:
            named |= {"best": best.value, "best_step": best.step}
        return {f"validation/{k}": float(v) for k, v in named.items() if v is not None}

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values from which the run continues."""
        if self._loaded is not None:
            return dict(self._loaded)
        shared = fresh_state(self.validation) if self._shared is None else self._shared.state_dict()
        good = None if self._good is None else self._good.state_dict()
        return {"shared": shared, "good": good, "level": self._level}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict`` at ``begin``, when the network exists.

        Raises:
            StateMismatchError: If it is no such state.
        """
        is_valid = isinstance(state, Mapping) and set(state) - _FURTHER == _KEYS
        is_valid = is_valid and isinstance(state["shared"], Mapping) and "step" in state["shared"]
        check(is_valid, "state", "the state of a ValidationCallback", state, StateMismatchError)
        self._loaded = state


def _is_number(loss: Any) -> bool:
    """Return whether a training loss is a number, or a tensor with one."""
    if isinstance(loss, Tensor):
        return loss.numel() == 1 and loss.dtype.is_floating_point
    return isinstance(loss, int | float)
