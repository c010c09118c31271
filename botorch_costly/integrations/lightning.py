"""Tuning within a Trainer of Lightning; its extra is ``botorch_costly[lightning]``."""

import copy
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import torch
from torch.optim import Optimizer

from botorch_costly.ask_tell.generators import global_generators, set_global_generators
from botorch_costly.ask_tell.protocol import AskTell
from botorch_costly.calls import advised
from botorch_costly.errors import InvalidArgumentError
from botorch_costly.integrations.applying import Rates
from botorch_costly.integrations.driver import Driver
from botorch_costly.integrations.extras import require
from botorch_costly.integrations.lightning_data import TrainingData
from botorch_costly.integrations.lightning_trainer import (
    NEVER,
    Decides,
    MetricReaders,
    check_validates,
    counter_of,
    further_parts,
    left_of,
    set_validation,
    validate_now,
)
from botorch_costly.integrations.metric_names import warn_of_kind
from botorch_costly.integrations.rounds import RoundLength
from botorch_costly.integrations.training import Trained, TrainerOptions
from botorch_costly.rewards.metric_gain import Kind
from botorch_costly.states import Stateful

try:
    from lightning.pytorch import Callback
except ImportError:
    Callback = object


class TunerCallback(Decides, Callback):
    """Tune while a ``Trainer`` fits, and validate only in rounds with a query.

    The configuration is applied at the beginning of a round, and validation runs at its end if the round
    is queried. The gain of the monitored metric is the reward. If a query shows that the network has
    diverged, it is restored to its last good state, with optimizer and gradient scaler. The trainer's
    checkpoints hold the whole state, and a resumed run continues identically.

    With a ``TwinTuner`` the run goes back, and twins see the same batches. The metric itself is told, the
    guard has no effect, and a fit that ends early hands over the state of the incumbent.

    An ``EarlyStopping`` or ``ModelCheckpoint`` with this metric reads it after each query: at the end of
    an epoch, where Lightning reads it by default, the metric may be missing or old.

    In a distributed run rank 0 decides, and the metric is the mean over the ranks.

    Args:
        tuner: An ``OnlineTuner`` or a ``TwinTuner``.
        monitor: Name under which ``validation_step`` logs the metric.
        length: Length of a round; one epoch if omitted.
        metric: ``"loss"`` or ``"accuracy"``, the kind of the metric.
        guard: Whether a diverged network is restored to its last good state.
        rates: ``"multipliers"`` if learning rates multiply those of a scheduler.
        others: Names in the configuration that training reads itself, from ``callback.config``.
        parts: Further objects to restore with the network, such as a loader with a ``state_dict``.
        timeout: Seconds after which a missing rank is lost.
        changed: Options of the tuner that may differ from those in the resumed checkpoint, such as
            ``["horizon"]`` to train for longer.
        device: Device of the kept states, such as the last good one; ``"cpu"`` saves memory of an
            accelerator. That of each part if omitted. A part of your own moves what it loads to its
            device, as those of torch do.

    Raises:
        HorizonExceededError: When training starts, if an earlier fit has played all rounds of the tuner.
        InvalidArgumentError: If an option is outside its range; when training starts, if there is not
            one optimizer, no validation, another ``check_val_every_n_epoch`` than 1, a time as
            ``val_check_interval``, a ``ReduceLROnPlateau`` that reads the metric, or another callback
            that decides when to validate; within a fit, if its optimizer is exchanged, or a validation
            does not log the metric.
        InvalidConfigError: When training starts, if a name matches no parameter group.
        MissingExtraError: If Lightning is missing, or older than 2.4.

    Example::

        tuner = bc.OnlineTuner(space, horizon=300, start=default)
        trainer = Trainer(max_epochs=300, callbacks=[TunerCallback(tuner, "val_loss")])
        trainer.fit(model, train_loader, val_loader)
    """

    @advised
    def __init__(
        self,
        tuner: AskTell[Any],
        monitor: str,
        *,
        length: RoundLength | None = None,
        metric: Kind = "loss",
        guard: bool = True,
        rates: Rates = "values",
        others: Collection[str] = (),
        parts: Iterable[Stateful] = (),
        timeout: float = 60.0,
        changed: Collection[str] = (),
        device: torch.device | str | None = None,
    ) -> None:
        require("lightning", "2.4", "lightning")
        super().__init__()
        self.monitor, self._parts = monitor, tuple(parts)
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
        self._steps, self._fits = 0, False
        self._is_within_batch = False
        self._readers = MetricReaders(monitor)
        self._trainer: Any = None  # while it fits
        self._strategy: Any = None  # of the trainer, which holds the optimizer without a detour
        self._loop: Any = None  # of its epochs
        self._counter: Any = None  # of its steps
        self._generators: dict[str, Any] | None = None  # until the first batch is fetched
        self._data = TrainingData(self._begin_round) if self.driver.has_twins else None
        self._before: dict[str, Any] | None = None  # the tuner's state before a fast_dev_run

    @property
    def config(self) -> Mapping[str, Any]:
        """The configuration in effect; empty before the first round."""
        return self.driver.config

    def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Begin a fit: connect the ranks."""
        self._fits = stage == "fit"
        if self._fits:
            shared = self.driver.prepare()
            self._before = copy.deepcopy(shared.state_dict()) if trainer.fast_dev_run else None
            if self._data is not None:
                self._data.install(trainer)

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin, or continue from the state that the trainer has loaded."""
        check_validates(trainer)
        schedulers = tuple(config.scheduler for config in trainer.lr_scheduler_configs)
        parts = self._parts + further_parts(trainer, pl_module)
        optimizer = _only(trainer.optimizers)
        self._readers.read_after_validation(trainer)
        # At the beginning of an epoch the restored generators have just drawn its order: they stay. With
        # twins the order is drawn when the first batch is fetched.
        drawn = not trainer.fit_loop.restarting and self._data is None
        data = () if self._data is None else self._data.of(trainer)
        trained = Trained(pl_module, optimizer, schedulers, parts, data)
        left = {} if trainer.fast_dev_run else left_of(trainer)
        self.driver.start(trained, generators=not drawn, **left)
        self._allow_divergence(trainer)
        self._trainer, self._loop = trainer, trainer.fit_loop.epoch_loop
        self._strategy, self._counter = trainer.strategy, counter_of(trainer)
        self._steps, self._is_within_batch = trainer.global_step, False
        self._measure_due(trainer)
        # A resumed trainer draws a seed of validation before it fetches a batch.
        resumes = self._data is not None and self.driver.decision is not None
        self._generators = global_generators() if resumes else None

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Validate if the previous epoch was cut short and a query was due at its end."""
        self._measure_due(trainer)

    def on_train_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        """Begin a round if none is running."""
        self._begin_round()
        self._is_within_batch = True

    def _begin_round(self) -> None:
        """Begin a round before its first batch is fetched, where the data can be gone back to."""
        if self._generators is not None:
            set_global_generators(self._generators)
            self._generators = None
        optimizers = self._strategy.optimizers
        self.driver.before_step(optimizers[0] if len(optimizers) == 1 else _only(optimizers))

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Tell the trainer whether to validate after this batch."""
        self._is_within_batch = False
        earlier, self._steps = self._steps, self._counter.completed
        ends_epoch = self._loop.batch_progress.is_last_batch
        if ends_epoch and self._data is not None:
            self._data.end_pass()  # before others save a checkpoint
        steps = self._steps - earlier
        due = self.driver.after_step(steps=steps if steps > 0 else 0, ends_epoch=ends_epoch)
        if due or trainer.val_check_batch != NEVER:
            set_validation(trainer, batch_idx, is_due=due)

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Count an epoch that the module cuts short within a batch, which then has no end."""
        if self._is_within_batch:
            self._is_within_batch = False
            self.driver.after_step(steps=0, ends_epoch=True, trained=False)
        if self._data is not None:
            self._data.end_pass()

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """Forget the metric of the previous validation, which the trainer keeps."""
        if self._fits:
            self._readers.forget_metric(trainer)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Tell the metric of a query."""
        if trainer.sanity_checking or not self._fits:
            return
        metrics = trainer.callback_metrics
        if self.monitor not in metrics:
            expected = f"a logged metric of validation, of {sorted(metrics)}"
            raise InvalidArgumentError("monitor", expected, self.monitor)
        if self.driver.connect().ranks.is_first:
            self._readers.warn_of_others(trainer)
        self.driver.validated(float(metrics[self.monitor]))
        self._allow_divergence(trainer)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Measure a metric that is due, and warn of steps that no query has measured."""
        self._measure_due(trainer)
        if self._before is None:
            self.driver.finish()

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Restore the options of other callbacks, and log the last round.

        After a ``fast_dev_run`` the tuner returns to its state before.
        """
        self._readers.restore()
        self._trainer = self._strategy = self._loop = self._counter = None
        if self._data is not None:
            self._data.remove()
        if self._before is not None:
            self.driver.prepare().load_state_dict(self._before)
            self._before = None
        elif stage == "fit":
            self.driver.flush()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """Hand over the incumbent of twins, and call ``teardown``, which Lightning does not do here."""
        if self._before is None:
            self.driver.hand_over(alone=True)
        self.teardown(trainer, pl_module, "fit")

    def state_dict(self) -> dict[str, Any]:
        """Return the state that the trainer saves; the trainer calls it on all ranks."""
        return self.driver.gathered_state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from the state that the trainer loads."""
        self.driver.load_state_dict(state_dict)
        if self._fits:
            self.driver.set_generators()  # the trainer draws the order of an epoch before it starts

    def _measure_due(self, trainer: Any) -> None:
        """Validate outside of a batch, where the trainer does not by itself, if a query is due."""
        if self.driver.is_due:
            validate_now(trainer)

    def _allow_divergence(self, trainer: Any) -> None:
        """Keep a metric that is not finite from ending a run whose network is restored."""
        if self.driver.mends:
            self._readers.allow_divergence(trainer)


def _only(optimizers: Sequence[Optimizer]) -> Optimizer:
    """Return the only optimizer of a trainer.

    Raises:
        InvalidArgumentError: If there are none or several, because a name cannot tell them apart.
    """
    if len(optimizers) != 1:
        expected = "one optimizer, because names do not tell several apart (name parameter groups)"
        raise InvalidArgumentError("optimizers", expected, len(optimizers))
    return optimizers[0]
