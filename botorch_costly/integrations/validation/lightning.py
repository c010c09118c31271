"""``Validation`` within a Trainer of Lightning; its extra is ``botorch_costly[lightning]``."""

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor

from botorch_costly.calls import advised
from botorch_costly.integrations.extras import require
from botorch_costly.integrations.lightning_trainer import (
    Decides,
    MetricReaders,
    check_validates,
    end_validation,
    further_parts,
    last_step,
    only_loader,
    set_validation,
    validate_now,
)
from botorch_costly.integrations.validation.in_trainer import TrainerValidation
from botorch_costly.states import Stateful
from botorch_costly.validation import Validation

try:
    from lightning.pytorch import Callback
except ImportError:
    Callback = object

__all__ = ["ValidationCallback"]


class ValidationCallback(Decides, Callback):
    """Validate in a ``Trainer`` when a reading is worth its price.

    After each step of the optimizer the validation decides whether the trainer validates now, in place
    of its ``val_check_interval``; the last step of the run is validated. Steps are those of
    ``trainer.global_step``. Validation leaves the global generators as they were, so that training is
    the same with any number of readings.

    A ``ModelCheckpoint`` or ``EarlyStopping`` with this metric reads it after each validation: at the
    end of an epoch, where Lightning reads it by default, the metric may be missing or old. The trainer's
    checkpoints hold the whole state, and a resumed run continues.

    In a distributed run rank 0 decides, and the metric is the mean over the ranks.

    Without the option ``steps`` the last step is the one that the trainer estimates. After each reading
    the loggers of the trainer get ``validation/readings``, ``validation/share`` of the clock,
    ``validation/saved`` of the examples, ``validation/best`` and ``validation/best_step``; at the end of
    the fit a line at level INFO sums up.

    With ``Validation(examples=..)`` a reading ends after the batches that decide. The loader is read in a
    random order that is fixed for the run. If ``examples`` is the number of examples, ``validation_step``
    returns their losses, a tensor with one for each; if it is the number of batches, the mean of a batch,
    and batches are drawn. Either may be an entry of a dictionary, under the name of the metric or
    ``"loss"``. The callback logs the estimate for the whole set under the name of the metric.

    Args:
        validation: A ``Validation``; with ``false_stop`` it stops the trainer.
        monitor: Name under which ``validation_step`` logs the metric.
        guard: Whether a run that has diverged goes back to its last good state (network, optimizers,
            gradient scaler, and averages that callbacks hold), while schedulers count on.
        margin: How much worse than the best level a diverged reading is, see ``GoodState``.
        parts: Further objects that the guard puts back with the network.
        timeout: Seconds after which a missing rank is lost.
        changed: Options of the validation that may differ from those in the resumed checkpoint, such as
            ``["steps"]``.
        device: Device of the last good state; ``"cpu"`` saves memory of an accelerator. That of each part
            if omitted. A part of your own moves what it loads to its device, as those of torch do.

    Raises:
        InvalidArgumentError: If an option is invalid; when training starts, if there is no validation,
            another ``check_val_every_n_epoch`` than 1, a time as ``val_check_interval``, a
            ``ReduceLROnPlateau`` that reads the metric, or another callback that decides when to
            validate; in the first validation, if it does not log the metric. With ``examples`` also if
            there are several ranks, several loaders, data without indices, a sampler of another kind, or
            another number of examples or batches.
        InvalidShapeError: If ``validation_step`` does not return the losses of a partial reading.
        StateMismatchError: When training starts, if the checkpoint has other options.
        MissingExtraError: If Lightning is missing, or older than 2.4.

    Example::

        callback = ValidationCallback(bc.Validation(overhead=0.03), "val_loss", guard=True)
        Trainer(callbacks=[callback]).fit(model, train_loader, val_loader)
    """

    @advised
    def __init__(
        self,
        validation: Validation,
        monitor: str,
        *,
        guard: bool = False,
        margin: float | None = None,
        parts: Iterable[Stateful] = (),
        timeout: float = 60.0,
        changed: Collection[str] = (),
        device: torch.device | str | None = None,
    ) -> None:
        require("lightning", "2.4", "lightning")
        super().__init__()
        self.run = TrainerValidation(
            validation,
            monitor,
            guard=guard,
            margin=margin,
            timeout=timeout,
            changed=changed,
            device=device,
        )
        self._parts = tuple(parts)
        self._readers = MetricReaders(monitor)
        self._steps, self._fits = 0, False
        self._losses: list[Tensor] = []  # of the batches since the latest step
        self._before: dict[str, Any] | None = None  # the validation before a fast_dev_run

    @property
    def validation(self) -> Validation:
        """The validation, which decides on rank 0."""
        return self.run.validation

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Begin a fit: connect the ranks."""
        self._fits = stage == "fit"
        if self._fits:
            self.run.connect()
            self._before = self.run.snapshot() if trainer.fast_dev_run else None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin, or continue from the state that the trainer has loaded."""
        check_validates(trainer)
        self._readers.read_after_validation(trainer)
        schedulers = [config.scheduler for config in trainer.lr_scheduler_configs]
        trained = (pl_module, *trainer.optimizers, *schedulers, *self._parts)
        if self.run.reader is not None and not trainer.fast_dev_run:
            self.run.reader.use(only_loader(trainer))
        parts = trained + further_parts(trainer, pl_module)
        self.run.begin(parts, trainer.global_step, last=last_step(trainer))
        self._allow_divergence(trainer)
        self._steps, self._losses = trainer.global_step, []
        if self.run.is_due:  # the checkpoint was saved between the step and its validation
            validate_now(trainer)

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Tell the trainer whether to validate after this batch."""
        self._add_loss(trainer, outputs)
        is_due, step = False, trainer.global_step
        if step != self._steps:
            self._steps, loss, self._losses = step, _mean(self._losses), []
            is_due = self.run.after_step(step, train_loss=loss, last=_is_last(trainer))
        set_validation(trainer, batch_idx, is_due=is_due)

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """Forget the metric of the previous validation, which the trainer keeps."""
        if self._fits:
            self._readers.forget_metric(trainer)
            if self.run.reader is not None:
                self.run.reader.begin()

    def on_validation_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> None:
        """End a validation that is complete, before a batch that workers have loaded ahead."""
        if self.run.reader is not None and self.run.reader.is_complete:
            end_validation(trainer)

    def on_validation_batch_end(
        self,
        trainer: Any,
        pl_module: Any,
        outputs: Any,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int = 0,
    ) -> None:
        """Add the losses of a batch to a partial reading."""
        if self.run.reader is not None:
            named = (self.run.monitor, "loss")
            if isinstance(outputs, Mapping):
                outputs = next((outputs[name] for name in named if name in outputs), None)
            self.run.reader.add(outputs)

    def on_validation_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Log the estimate of a partial reading, in place of the mean of the batches in it."""
        result = None if self.run.reader is None else self.run.reader.result()
        if result is not None:
            self.log(self.run.monitor, result)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Tell the metric, and stop the trainer if the validation says so."""
        if trainer.sanity_checking or not self._fits:
            return
        shared = self.run.connect()
        if shared.ranks.is_first:
            self._readers.warn_of_others(trainer)
        self.run.validated(trainer.callback_metrics)
        self.run.restore_generators()
        self._allow_divergence(trainer)
        if shared.ranks.is_first and self._before is None:
            for logger in trainer.loggers:
                logger.log_metrics(self.run.figures(), step=trainer.global_step)
        if self.run.should_stop:
            trainer.should_stop = True

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Validate at the last step, if a callback has stopped the run before."""
        step, shared = trainer.global_step, self.run.connect()
        if shared.read < step and step > 0:
            self.run.after_step(step, last=True)
            validate_now(trainer)
        if self._before is None:
            self.run.log()

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Restore the options of other callbacks, and after a ``fast_dev_run`` the validation."""
        self._readers.restore()
        if self.run.reader is not None:
            self.run.reader.release()
        if self._before is not None:
            self.run.begin_from(self._before)
            self._before = None

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Call ``teardown``, which Lightning does not do after an exception."""
        self.teardown(trainer, pl_module, "fit")

    def state_dict(self) -> dict[str, Any]:
        """Return the state that the trainer saves."""
        return self.run.state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from the state that the trainer loads."""
        self.run.load_state_dict(state_dict)

    def _allow_divergence(self, trainer: Any) -> None:
        if self.run.can_restore:
            self._readers.allow_divergence(trainer)

    def _add_loss(self, trainer: Any, outputs: Any) -> None:
        """Keep the loss of a batch on its device, without the division by the accumulated batches."""
        loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        if isinstance(loss, Tensor) and loss.numel() == 1 and loss.dtype.is_floating_point:
            is_divided = trainer.lightning_module.automatic_optimization
            factor = trainer.accumulate_grad_batches if is_divided else 1
            self._losses.append(loss.detach().reshape(()) * factor)


def _mean(losses: list[Tensor]) -> Tensor | None:
    """Return the mean of losses on their device; None without any."""
    return torch.stack(losses).mean() if losses else None


def _is_last(trainer: Any) -> bool:
    """Return whether the present batch ends the run, as far as its bounds say."""
    bounds = (trainer.max_steps, trainer.max_epochs)
    max_steps, max_epochs = (math.inf if n is None or n < 0 else n for n in bounds)
    ends_epochs = trainer.is_last_batch and trainer.current_epoch + 1 >= max_epochs
    return bool(trainer.global_step >= max_steps or ends_epochs)
