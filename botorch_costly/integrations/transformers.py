"""Tuning within a Trainer of Transformers; its extra is ``botorch_costly[transformers]``."""

import logging
import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import torch

from botorch_costly.ask_tell.protocol import AskTell
from botorch_costly.ask_tell.saving import load, save
from botorch_costly.calls import advised
from botorch_costly.errors import InvalidArgumentError, StateMismatchError, check
from botorch_costly.integrations.applying import Rates
from botorch_costly.integrations.driver import Driver
from botorch_costly.integrations.dropout import DROPOUT, warn_if_compiled
from botorch_costly.integrations.extras import require
from botorch_costly.integrations.metric_names import warn_of_kind
from botorch_costly.integrations.rewindable import Rewindable
from botorch_costly.integrations.rounds import RoundLength
from botorch_costly.integrations.training import Trained, TrainerOptions
from botorch_costly.integrations.transformers_trainer import (
    TrainingData,
    batches_of,
    check_decides_alone,
    loading_folder,
    optimizer_and_scaler,
    saves_each_round,
    saving_folder,
    warn_of_best_model,
)
from botorch_costly.rewards.metric_gain import Kind
from botorch_costly.states import Stateful

try:
    from transformers import TrainerCallback
except ImportError:
    TrainerCallback = object

STATE_FILE = "botorch_costly.pt"  # in the folder of a checkpoint
_logger = logging.getLogger(__name__)


class TunerCallback(TrainerCallback):
    """Tune while a ``Trainer`` trains, and evaluate only in rounds with a query.

    The configuration is applied at the beginning of a round, and the trainer evaluates at its end if the
    round is queried, whatever its ``eval_strategy``. The gain of the monitored metric is the reward. If a
    query shows that the network has diverged, it is restored to its last good state, with optimizer and
    gradient scaler. Each checkpoint of the trainer holds the whole state, and a resumed run continues
    identically.

    With a ``TwinTuner`` the run goes back: see :class:`botorch_costly.TwinTuner`. The metric itself is
    told, the guard has no effect, and a run that is stopped early is handed over in the state of the
    incumbent.

    A ``Trainer`` always has a scheduler: unless ``rates="values"``, a learning rate in the space
    multiplies its rate. In a distributed run rank 0 decides.

    Args:
        tuner: An ``OnlineTuner`` or a ``TwinTuner``.
        monitor: Name of the metric in the result of ``evaluate``.
        length: Length of a round; one epoch if omitted.
        metric: ``"loss"`` or ``"accuracy"``, the kind of the metric.
        guard: Whether a diverged network is restored to its last good state.
        rates: ``"multipliers"``, or ``"values"`` for a space without a learning rate.
        others: Names in the configuration that training reads itself, from ``callback.config``.
        parts: Further objects to restore with the network.
        trainer: The trainer, to which the callback is added by ``trainer.add_callback``: then twins see
            the same batches.
        resume_from: Checkpoint that the trainer resumes from, if it is not in its ``output_dir``.
        timeout: Seconds after which a missing rank is lost.
        changed: Options of the tuner that may differ from those in the resumed checkpoint, such as
            ``["horizon"]`` to train for longer.
        device: Device of the kept states, such as the last good one; ``"cpu"`` saves memory of an
            accelerator. That of each part if omitted. A part of your own moves what it loads to its
            device, as those of torch do.

    Raises:
        HorizonExceededError: When training starts, if an earlier run has played all rounds of the tuner.
        InvalidArgumentError: If an option is outside its range; when training starts, if another callback
            decides when to evaluate; in training, if an evaluation does not return the metric.
        InvalidConfigError: When training starts, if a name matches no parameter group.
        StateMismatchError: When training starts, if the checkpoint belongs to another tuner or space, or
            to a run without a tuner.
        MissingExtraError: If Transformers is missing, or older than 4.46.

    Example::

        tuner = bc.OnlineTuner(space, horizon=300, start=default)
        callback = TunerCallback(tuner, length=RoundLength(steps=50))
        Trainer(model, args, train_dataset=train, eval_dataset=val, callbacks=[callback]).train()
    """

    @advised
    def __init__(
        self,
        tuner: AskTell[Any],
        monitor: str = "eval_loss",
        *,
        length: RoundLength | None = None,
        metric: Kind = "loss",
        guard: bool = True,
        rates: Rates = "multipliers",
        others: Collection[str] = (),
        parts: Iterable[Stateful] = (),
        trainer: Any = None,
        resume_from: str | os.PathLike[str] | None = None,
        timeout: float = 60.0,
        changed: Collection[str] = (),
        device: torch.device | str | None = None,
    ) -> None:
        require("transformers", "4.46", "transformers")
        self.monitor, self._parts, self._resume_from = monitor, tuple(parts), resume_from
        length = RoundLength(epochs=1) if length is None else length
        options = TrainerOptions(
            length,
            metric=metric,
            guard=guard,
            rates=rates,
            others=others,
            timeout=timeout,
            changed=changed,
            device=device,
        )
        self.driver = Driver(tuner, options)
        warn_of_kind(monitor, metric, tuner)
        reads = trainer is not None and self.driver.has_twins
        self._data = TrainingData(trainer) if reads else None
        self._batches: tuple[Rewindable, ...] = ()
        self._epoch_steps = 0
        self._seen: set[str] = set()

    @property
    def config(self) -> Mapping[str, Any]:
        """The configuration in effect; empty before the first round."""
        return self.driver.config

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begin, or continue from the checkpoint that the trainer has loaded."""
        check_decides_alone(state, self)
        saves = saves_each_round(self.driver.options.length, args, state)
        warn_of_best_model(args, state, saves=saves)
        self.driver.prepare()
        batches = batches_of(kwargs["train_dataloader"])
        if self.driver.options.length.epochs is not None:
            expected = "steps or seconds, because the data have no length"
            check(batches is not None, "length", expected, "epochs")
        self._epoch_steps = max(-(-(batches or 1) // args.gradient_accumulation_steps), 1)
        optimizer, scaler = optimizer_and_scaler(kwargs["optimizer"])
        if state.global_step > 0:
            load(self._file(args, state), tuning=self.driver)
        if any(name.rpartition(".")[2] == DROPOUT for name in self.driver.tuner.space.names):
            # The trainer compiles a wrapper that callbacks do not see.
            warn_if_compiled([kwargs["model"]], is_compiled=args.torch_compile)
        schedulers = (kwargs["lr_scheduler"],)
        self._batches = self._rewindable(kwargs["train_dataloader"])
        parts = self._parts + scaler
        trained = Trained(kwargs["model"], optimizer, schedulers, parts, self._batches)
        steps = state.max_steps - state.global_step
        epochs = None if batches is None else steps / self._epoch_steps
        self.driver.start(trained, steps=steps, epochs=epochs)
        for one in self._batches:
            one.before = self.driver.before_step

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Begin a round if none is running."""
        if self.driver.is_due:
            self._check_metric()
        self.driver.before_step()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """Tell the trainer whether to evaluate now."""
        ends_epoch = state.global_step % self._epoch_steps == 0
        control.should_evaluate = self.driver.after_step(ends_epoch=ends_epoch)
        return control

    def on_epoch_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> Any:
        """Keep the trainer from evaluating each epoch; hand over the incumbent of twins after the last.

        Before the trainer loads its best model, if it does.
        """
        control.should_evaluate = False
        for batches in self._batches:
            batches.end_pass()
        if control.should_training_stop:
            self._check_metric()
            self.driver.hand_over()
        return control

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: Mapping[str, float], **kwargs: Any
    ) -> None:
        """Tell the metric of a query."""
        self._seen |= set(metrics)
        if self.monitor in metrics:
            self.driver.validated(metrics[self.monitor])

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Save the state beside that of the trainer."""
        # Of twins each rank holds its own states.
        held = _Held(self.driver.gathered_state_dict()) if self.driver.has_twins else self.driver
        if state.is_world_process_zero:
            save(saving_folder(args, state) / STATE_FILE, tuning=held)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Check the last query, warn of steps that no query has measured, and log the last round."""
        for batches in self._batches:
            batches.before = None
        self.driver.finish()
        self._check_metric()

    def finish(self) -> Mapping[str, Any]:
        """Bring the network into the state of the incumbent of twins; return the incumbent.

        Call it after training was interrupted, of which the trainer tells its callbacks nothing. If the
        state of the incumbent is not held, or a part fails to load it, a warning says so.
        """
        for batches in self._batches:
            batches.before = None
        self.driver.hand_over(alone=True)
        return self.config

    def _rewindable(self, loader: Any) -> tuple[Rewindable, ...]:
        """Return the training data if they are rewindable; warn if twins need that."""
        if self._data is not None:
            self._data.begin()
        if not self.driver.has_twins:
            return ()
        if isinstance(loader, Rewindable):
            return (loader,)
        if self.driver.connect().ranks.is_first:
            _logger.warning(
                "The training data do not go back with the network: twins see other batches. Give the "
                "callback the trainer: trainer.add_callback(TunerCallback(.., trainer=trainer))."
            )
        return ()

    def _check_metric(self) -> None:
        """Raise if a query has not returned the metric."""
        if self.driver.is_due:
            expected = f"a metric of an evaluation, of {sorted(self._seen)}"
            raise InvalidArgumentError("monitor", expected, self.monitor)

    def _file(self, args: Any, state: Any) -> Path:
        file = loading_folder(args, state, self._resume_from) / STATE_FILE
        expected = "a checkpoint of a run with this callback, complete (see resume_from=)"
        check(file.exists(), "checkpoint", expected, str(file), StateMismatchError)
        return file


class _Held:
    """A state of a driver that was gathered before."""

    def __init__(self, state: dict[str, Any]) -> None:
        self._state = state

    def state_dict(self) -> dict[str, Any]:
        return self._state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._state = state
