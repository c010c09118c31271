"""Operations on a Trainer of Lightning that callbacks share which decide when to validate."""

import logging
import math
import sys
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from torch import nn
from torch.optim.swa_utils import AveragedModel

from botorch_costly.errors import check
from botorch_costly.states import Stateful

_logger = logging.getLogger(__name__)
NEVER = sys.maxsize  # batches until the next validation


class Decides:
    """A callback that decides when a trainer validates, of which a trainer has one."""


def check_validates(trainer: Any) -> None:
    """Raise unless a trainer can validate after any batch, and one callback decides about it.

    Raises:
        InvalidArgumentError: If it has no validation, another ``check_val_every_n_epoch`` than 1, a time
            as ``val_check_interval``, or several such callbacks.
    """
    kinds = [
        type(callback).__name__ for callback in trainer.callbacks if isinstance(callback, Decides)
    ]
    check(len(kinds) == 1, "callbacks", "one that decides when to validate", kinds)
    every = trainer.check_val_every_n_epoch
    check(every == 1, "check_val_every_n_epoch", "1: the callback decides when to validate", every)
    interval = getattr(trainer, "_val_check_time_interval", None)
    expected = "no time: the callback decides when to validate"
    check(interval is None, "val_check_interval", expected, interval)
    validates = trainer.enable_validation
    check(validates, "validation", "a validation_step and data for it", "none")


def set_validation(trainer: Any, batch_idx: int, *, is_due: bool) -> None:
    """Make a trainer validate after this batch, or not."""
    trainer.val_check_batch = batch_idx + 1 if is_due else NEVER


def validate_now(trainer: Any) -> None:
    """Validate outside of a batch, where the trainer does not by itself."""
    loop = trainer.fit_loop.epoch_loop.val_loop
    loop.restarting = False
    trainer.validating = True
    loop.run()
    trainer.training = True


class StepCounter:
    """The steps of a trainer so far, as ``completed`` of Lightning's own counters.

    Args:
        trainer: The trainer.
    """

    def __init__(self, trainer: Any) -> None:
        self._loop = trainer.fit_loop.epoch_loop

    @property
    def completed(self) -> int:
        """Number of steps."""
        return int(self._loop.global_step)


def counter_of(trainer: Any) -> Any:
    """Return the counter of a trainer's steps, with an attribute ``completed``.

    ``global_step`` goes through six properties, which takes longer than all else in the hook of a step.
    The counter behind it is not public: where it is missing, or has another number, it is not used.
    """
    loop = trainer.fit_loop.epoch_loop
    try:
        if trainer.lightning_module.automatic_optimization:
            counter = loop.automatic_optimization.optim_progress.optimizer.step.total
        else:
            counter = loop.manual_optimization.optim_step_progress.total
        if counter.completed == trainer.global_step:
            return counter
    except AttributeError:
        pass
    return StepCounter(trainer)


def further_parts(trainer: Any, network: nn.Module) -> tuple[Stateful, ...]:
    """Return objects that training changes beside network and optimizers.

    These are the gradient scaler, and averages of the network that callbacks hold: without restoring
    they stay diverged.
    """
    scaler = trainer.precision_plugin
    held = [value for callback in trainer.callbacks for value in vars(callback).values()]
    copies = (AveragedModel, type(network))
    averages = [value for value in held if isinstance(value, copies) and value is not network]
    return (*([scaler] if scaler.state_dict() else []), *averages)


def left_of(trainer: Any) -> dict[str, float]:
    """Return the remaining steps and epochs of a trainer, if known; infinity without a bound."""
    bounds = (trainer.max_steps, trainer.max_epochs)
    max_steps, max_epochs = (math.inf if n is None or n < 0 else n for n in bounds)
    if not trainer.lightning_module.automatic_optimization:  # the module itself steps the optimizer
        return _left_of_one(max_steps - trainer.global_step, max_epochs - trainer.current_epoch)
    batches = trainer.num_training_batches / trainer.accumulate_grad_batches
    epoch_steps = math.ceil(batches) if math.isfinite(batches) else math.inf
    steps = min(max_steps, max_epochs * epoch_steps) - trainer.global_step
    has_length = math.isfinite(epoch_steps)
    epochs = steps / epoch_steps if has_length else max_epochs - trainer.current_epoch
    return {"steps": steps, "epochs": epochs}


def _left_of_one(steps: float, epochs: float) -> dict[str, float]:
    """Return the rest of the only bound; empty with two bounds, because either may come first."""
    if math.isfinite(steps) and math.isfinite(epochs):
        return {}
    return {"steps": steps, "epochs": epochs}


def last_step(trainer: Any) -> int | None:
    """Return the last step of a trainer as it estimates it; None if it is unknown or infinite."""
    last = trainer.global_step + left_of(trainer).get("steps", math.inf)
    return int(last) if 0 < last < math.inf else None


def only_loader(trainer: Any) -> Any:
    """Return the only validation loader of a trainer, whose readings may end before all batches.

    Raises:
        InvalidArgumentError: If there are several, or it is limited or reloaded.
    """
    loaders = trainer.val_dataloaders
    listed = list(loaders) if isinstance(loaders, list | tuple) else [loaders]
    check(
        len(listed) == 1, "validation data", "one loader, for Validation(examples=..)", len(listed)
    )
    limit, every = trainer.limit_val_batches, trainer.reload_dataloaders_every_n_epochs
    is_whole = limit == 1.0 and isinstance(limit, float)
    check(is_whole, "limit_val_batches", "1.0, for Validation(examples=..)", limit)
    expected = "0, for Validation(examples=..) reads the same examples again"
    check(every == 0, "reload_dataloaders_every_n_epochs", expected, every)
    return listed[0]


def end_validation(trainer: Any) -> NoReturn:
    """End the validation before the present batch; called in ``on_validation_batch_start``.

    Lightning ends its evaluation loop at a ``StopIteration`` of a step or hook.
    """
    trainer.fit_loop.epoch_loop.val_loop.batch_progress.is_last_batch = True
    raise StopIteration


class MetricReaders:
    """The callbacks and schedulers of a trainer that read validation metrics.

    Args:
        monitor: Name of the metric that is measured whenever the callback decides to validate.
    """

    def __init__(self, monitor: str) -> None:
        self.monitor = monitor
        self._logged: set[str] = set()  # names that were logged before the last validation
        self._earlier: list[tuple[Any, str, Any]] = []  # options of other callbacks before the fit

    def read_after_validation(self, trainer: Any) -> None:
        """Make callbacks with this metric read it after a validation, not at the end of every epoch.

        An existing callback has no public option for this: both kinds decide by the trainer's interval.

        Raises:
            InvalidArgumentError: If a ``ReduceLROnPlateau`` reads the metric.
        """
        for config in trainer.lr_scheduler_configs:
            reads = config.reduce_on_plateau and config.monitor == self.monitor
            expected = f"one that does not read {self.monitor}, which is measured in queries only"
            check(not reads, "lr_scheduler", expected, "ReduceLROnPlateau")
        for callback in self._of(trainer.early_stopping_callbacks):
            self._set(callback, "_check_on_train_epoch_end", False)
        for callback in self._of(trainer.checkpoint_callbacks):
            self._set(callback, "_save_on_train_epoch_end", False)

    def allow_divergence(self, trainer: Any) -> None:
        """Keep a metric that is not finite from ending a run whose network is restored."""
        for callback in self._of(trainer.early_stopping_callbacks):
            self._set(callback, "check_finite", False)

    def forget_metric(self, trainer: Any) -> None:
        """Forget the metric of the previous validation, which the trainer keeps."""
        trainer.callback_metrics.pop(self.monitor, None)
        self._logged = set(trainer.callback_metrics)

    def warn_of_others(self, trainer: Any) -> None:
        """Warn of readers of another metric of the latest validation in every epoch."""
        measured = set(trainer.callback_metrics) - self._logged - {self.monitor}
        for name, reader in _read_each_epoch(trainer):
            if name in measured:
                _logger.warning(
                    "%s reads %r, which is measured in queries only: in between it reads an old "
                    "value. Let it read %r, or a metric of training.",
                    reader,
                    name,
                    self.monitor,
                )

    def restore(self) -> None:
        """Restore the options of other callbacks."""
        while self._earlier:
            setattr(*self._earlier.pop())

    def _of(self, callbacks: Iterable[Any]) -> list[Any]:
        """Return the callbacks that monitor the metric; not every ``Checkpoint`` has a monitor."""
        return [c for c in callbacks if getattr(c, "monitor", None) == self.monitor]

    def _set(self, callback: Any, option: str, value: Any) -> None:
        """Set an option of another callback until the end of the fit."""
        if getattr(callback, option) != value:
            self._earlier.append((callback, option, getattr(callback, option)))
            setattr(callback, option, value)


def _read_each_epoch(trainer: Any) -> Iterator[tuple[str, str]]:
    """Iterate over the metrics that are read in every epoch, and the class names of their readers."""
    for config in trainer.lr_scheduler_configs:
        if config.reduce_on_plateau:
            yield config.monitor, type(config.scheduler).__name__
    options = ("_check_on_train_epoch_end", "_save_on_train_epoch_end")
    groups = (trainer.early_stopping_callbacks, trainer.checkpoint_callbacks)
    for option, callbacks in zip(options, groups, strict=True):
        for callback in callbacks:
            monitor = getattr(callback, "monitor", None)
            if monitor is not None and getattr(callback, option, None) is not False:
                yield monitor, type(callback).__name__
