"""``Validation`` within a Trainer of Transformers; its extra is ``botorch_costly[transformers]``."""

import logging
import os
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import torch

from botorch_costly.ask_tell.saving import load, save
from botorch_costly.calls import advised
from botorch_costly.errors import check
from botorch_costly.integrations.extras import require
from botorch_costly.integrations.parts import inner_network
from botorch_costly.integrations.transformers_trainer import (
    check_decides_alone,
    loading_folder,
    optimizer_and_scaler,
    saving_folder,
    warn_of_best_model,
)
from botorch_costly.integrations.validation.evaluation import PartialEvaluation
from botorch_costly.integrations.validation.in_trainer import TrainerValidation
from botorch_costly.states import Stateful
from botorch_costly.validation import Validation

try:
    from transformers import TrainerCallback
except ImportError:
    TrainerCallback = object

__all__ = ["ValidationCallback"]

STATE_FILE = "botorch_costly_validation.pt"  # in the folder of a checkpoint
_logger = logging.getLogger(__name__)


class ValidationCallback(TrainerCallback):
    """Evaluate in a ``Trainer`` when a reading is worth its price.

    After each step of the optimizer the validation decides whether the trainer evaluates now, whatever
    its ``eval_strategy``; the last step of the run is evaluated. Steps are those of
    ``state.global_step``. Evaluation leaves the global generators as they were, so that training is the
    same with any number of readings.

    The trainer tells its callbacks the training loss only when it logs it; that loss is used, so a small
    ``logging_steps`` shows spikes sooner. Each checkpoint of the trainer holds the whole state, and a
    resumed run continues. In a distributed run rank 0 decides. Without the option ``steps`` the last step
    is ``state.max_steps``. At the end of training a line at level INFO sums up.

    With ``trainer=`` the trackers of the trainer get ``validation/readings``, ``validation/share`` of the
    clock, ``validation/saved`` of the examples, ``validation/best`` and ``validation/best_step`` after
    each reading. Then a reading may also be partial: with ``Validation(examples=..)`` it ends after the
    batches that decide. The trainer tells the mean loss of a batch, so batches are drawn, and
    ``examples`` is their number; with one example in a batch it is that of examples. They are read in a
    random order that is fixed for the run, and ``eval_loss`` is the estimate for the whole set.

    Args:
        validation: A ``Validation``; with ``false_stop`` it stops the trainer.
        monitor: Name of the metric in the result of ``evaluate``.
        guard: Whether a run that has diverged goes back to its last good state (network, optimizer and
            gradient scaler), while the scheduler counts on.
        margin: How much worse than the best level a diverged reading is, see ``GoodState``.
        save_best: Whether the trainer saves a checkpoint whenever a reading is the best one. Set its
            ``metric_for_best_model`` for it to know which one that is.
        parts: Further objects that the guard puts back with the network.
        trainer: The trainer, to which the callback is added by ``trainer.add_callback``.
        resume_from: Checkpoint that the trainer resumes from, if it is not in its ``output_dir``.
        timeout: Seconds after which a missing rank is lost.
        changed: Options of the validation that may differ from those in the resumed checkpoint, such as
            ``["steps"]``.
        device: Device of the last good state; ``"cpu"`` saves memory of an accelerator. That of each part
            if omitted. A part of your own moves what it loads to its device, as those of torch do.

    Raises:
        InvalidArgumentError: If an option is invalid, or ``examples`` lacks the trainer; when training
            starts, if another callback decides when to evaluate; in training, if the first evaluation
            does not return the metric. With ``examples`` also if there are several ranks or sets, data
            without indices, a sampler of another kind, ``compute_metrics``, a ``monitor`` that is not the
            loss, or another number of batches.
        InvalidShapeError: If the network returns no loss in a partial reading.
        StateMismatchError: When training starts, if the checkpoint has other options.
        MissingExtraError: If Transformers is missing, or older than 4.46.

    Example::

        trainer = Trainer(model, args, train_dataset=train, eval_dataset=val)
        validation = bc.Validation(overhead=0.03)
        trainer.add_callback(ValidationCallback(validation, guard=True, trainer=trainer))
        trainer.train()
    """

    @advised
    def __init__(
        self,
        validation: Validation,
        monitor: str = "eval_loss",
        *,
        guard: bool = False,
        margin: float | None = None,
        save_best: bool = False,
        parts: Iterable[Stateful] = (),
        trainer: Any = None,
        resume_from: str | os.PathLike[str] | None = None,
        timeout: float = 60.0,
        changed: Collection[str] = (),
        device: torch.device | str | None = None,
    ) -> None:
        require("transformers", "4.46", "transformers")
        self.run = TrainerValidation(
            validation,
            monitor,
            guard=guard,
            margin=margin,
            timeout=timeout,
            changed=changed,
            device=device,
        )
        check(isinstance(save_best, bool), "save_best", "a bool", save_best)
        self._save_best, self._parts, self._resume_from = save_best, tuple(parts), resume_from
        expected = "the trainer, for Validation(examples=..)"
        check(trainer is not None or not self.run.reads_parts, "trainer", expected, trainer)
        self._trainer = trainer
        self._partial = PartialEvaluation(trainer, self.run) if self.run.reads_parts else None
        self._loss: float | None = None  # the latest that was logged, until the next step
        self._is_training = False
        self._seen: set[str] = set()

    @property
    def validation(self) -> Validation:
        """The validation, which decides on rank 0."""
        return self.run.validation

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begin, or continue from the checkpoint that the trainer has loaded."""
        check_decides_alone(state, self)
        warn_of_best_model(args, state, saves=self._save_best, instead=", or save_best=True")
        self.run.connect()
        if self._partial is not None:
            self._partial.install()
        if state.global_step > 0:
            file = loading_folder(args, state, self._resume_from) / STATE_FILE
            if file.exists():
                load(file, validation=self.run)
            else:
                _logger.warning(
                    "%s is missing: validation begins anew (see resume_from=).", str(file)
                )
        optimizer, scaler = optimizer_and_scaler(kwargs["optimizer"])
        network = inner_network(kwargs["model"])
        trained = (network, optimizer, kwargs["lr_scheduler"], *self._parts, *scaler)
        last = state.max_steps if state.max_steps > 0 else None
        self.run.begin(trained, state.global_step, last=last)
        self._loss, self._is_training = _logged_loss(state), True

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Check that an evaluation has returned the metric."""
        self._check_evaluated()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """Tell the trainer whether to evaluate now."""
        loss, self._loss = self._loss, None
        is_last = state.global_step >= state.max_steps or control.should_training_stop
        control.should_evaluate = self.run.after_step(
            state.global_step, train_loss=loss, last=is_last
        )
        return control

    def on_log(
        self,
        args: Any,
        state: Any,
        control: Any,
        logs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        """Remember the training loss of the latest steps."""
        loss = (logs or {}).get("loss")
        self._loss = self._loss if loss is None else loss

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """Keep the trainer from evaluating each epoch; evaluate if a callback has stopped the run."""
        step = state.global_step
        control.should_evaluate = False
        if control.should_training_stop and step > self.run.connect().read:
            control.should_evaluate = self.run.after_step(step, last=True)
        return control

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: Mapping[str, float], **kwargs: Any
    ) -> Any:
        """Tell the metric; stop the trainer, or let it save, if the validation says so."""
        self._seen |= set(metrics)
        self.run.restore_generators()
        if not self._is_training or self.run.monitor not in metrics:
            return control
        self.run.validated(metrics)
        shared = self.run.connect()
        if self._trainer is not None:
            self._trainer.log(self.run.figures())
        if self.run.should_stop:
            control.should_training_stop = True
        if shared.is_best and self._save_best:
            control.should_save = True
        return control

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Save the state beside that of the trainer."""
        if state.is_world_process_zero:
            save(saving_folder(args, state) / STATE_FILE, validation=self.run)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Check the last evaluation."""
        self._is_training = False
        self._check_evaluated()
        if self._partial is not None:
            self._partial.remove()
        self.run.log()

    def _check_evaluated(self) -> None:
        """Raise if the first evaluation has not returned the metric; a later one is a failed reading."""
        if self.run.is_due:
            self.run.validated(dict.fromkeys(self._seen - {self.run.monitor}))


def _logged_loss(state: Any) -> float | None:
    """Return the training loss that was logged at the present step, such as before a checkpoint."""
    logs = [log for log in state.log_history if log.get("step") == state.global_step]
    return next((log["loss"] for log in reversed(logs) if "loss" in log), None)
