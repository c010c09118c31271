"""Tuning within a Trainer of Lightning; its extra is ``botorch_costly[lightning]``."""

import copy
import logging
import math
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from torch import nn
from torch.optim import Optimizer
from torch.optim.swa_utils import AveragedModel

from botorch_costly.ask_tell.protocol import AskTell, Stateful
from botorch_costly.errors import InvalidArgumentError, check
from botorch_costly.integrations.applying import Rates
from botorch_costly.integrations.driver import Driver
from botorch_costly.integrations.extras import require
from botorch_costly.integrations.rounds import RoundLength
from botorch_costly.integrations.training import Trained, TrainerOptions
from botorch_costly.rewards.gain import Kind

try:
    from lightning.pytorch import Callback
except ImportError:
    Callback = object

_logger = logging.getLogger(__name__)
_NEVER = sys.maxsize  # batches until the next validation


class TunerCallback(Callback):
    """Tune while a ``Trainer`` fits, and validate only when a decision says so.

    The configuration is put into effect at the beginning of a round, and validation runs at its end if
    it is a query. The gain of the monitored metric is the reward. A network that a query finds diverged
    goes back to its last good state, with optimizer and gradient scaler. The state of all of
    it is in the trainer's checkpoints, and a run that is resumed from one goes on identically.

    An ``EarlyStopping`` or ``ModelCheckpoint`` with this metric reads it after each query: at the end of
    an epoch, where Lightning reads it by default, there may be none, or an old one.

    In a distributed run rank 0 decides, and the metric is the mean over the ranks.

    Args:
        tuner: An ``OnlineTuner``.
        monitor: The name under which ``validation_step`` logs the metric.
        length: Of a round; one epoch if omitted.
        metric: Whether it is a loss or an accuracy.
        guard: Whether the network goes back to its last good state when it has diverged.
        rates: ``"multipliers"`` if learning rates multiply those of a scheduler.
        others: Names in the configuration that training reads itself, from ``callback.config``.
        parts: What else goes back with the network, such as a loader with a ``state_dict``.
        timeout: Seconds after which a rank that does not come is lost.
        changed: Options of the tuner that may differ from those of the checkpoint that is resumed, such
            as ``["horizon"]`` to train for longer.

    Raises:
        HorizonExceededError: When training starts, if an earlier fit has played all rounds of the tuner.
        InvalidArgumentError: If an option is outside its range; when training starts, if there is not
            one optimizer, no validation, another ``check_val_every_n_epoch`` than 1, a time as
            ``val_check_interval``, or a
            ``ReduceLROnPlateau`` that reads the metric; within a fit, if its optimizer is exchanged, or
            a validation does not log the metric.
        InvalidConfigError: When training starts, if a name matches no parameter group.
        MissingExtraError: If Lightning is missing, or older than 2.4.

    Example::

        tuner = bc.OnlineTuner(space, horizon=300, start=default)
        trainer = Trainer(max_epochs=300, callbacks=[TunerCallback(tuner, "val_loss")])
        trainer.fit(model, train_loader, val_loader)
    """

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
        )
        self.driver = Driver(tuner, options)
        self._steps, self._fits = 0, False
        self._is_within_batch = False
        self._logged: set[str] = set()  # names that were logged before the last validation
        self._given: list[tuple[Any, str, Any]] = []  # what other callbacks have back after the fit
        self._before: dict[str, Any] | None = (
            None  # the tuner's state before a trial of the program
        )

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

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin, or continue from what the trainer has restored."""
        every = trainer.check_val_every_n_epoch
        check(every == 1, "check_val_every_n_epoch", "1: the tuner says when to validate", every)
        timed = getattr(trainer, "_val_check_time_interval", None)
        check(
            timed is None, "val_check_interval", "no time: the tuner says when to validate", timed
        )
        validates = trainer.enable_validation
        check(validates, "validation", "a validation_step and data for it", "none")
        schedulers = tuple(config.scheduler for config in trainer.lr_scheduler_configs)
        scaler = trainer.precision_plugin
        parts = (*self._parts, scaler) if scaler.state_dict() else self._parts
        parts += _averages(trainer.callbacks, pl_module)
        optimizer = _one_optimizer(trainer.optimizers)
        self._let_others_read(trainer)
        # At the beginning of an epoch its order was drawn just now, from what was restored before.
        within_epoch = trainer.fit_loop.restarting
        trained = Trained(pl_module, optimizer, schedulers, parts)
        left = {} if trainer.fast_dev_run else _left(trainer)
        self.driver.start(trained, generators=within_epoch, **left)
        self._spare_mended(trainer)
        self._steps, self._is_within_batch = trainer.global_step, False
        self._measure_due(trainer)

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        """Validate if the rest of the epoch before was skipped and a query was due at its end."""
        self._measure_due(trainer)

    def on_train_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        """Begin a round if none is running."""
        self.driver.before_step(_one_optimizer(trainer.optimizers))
        self._is_within_batch = True

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        """Let the trainer validate after this batch, or not."""
        self._is_within_batch = False
        steps, self._steps = max(trainer.global_step - self._steps, 0), trainer.global_step
        due = self.driver.after_step(steps=steps, ends_epoch=trainer.is_last_batch)
        trainer.val_check_batch = batch_idx + 1 if due else _NEVER

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        """Count an epoch whose rest is skipped: the module says so within a batch, which has no end."""
        if self._is_within_batch:
            self._is_within_batch = False
            self.driver.after_step(steps=0, ends_epoch=True)

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        """Forget the metric of the validation before, which the trainer keeps."""
        if self._fits:
            trainer.callback_metrics.pop(self.monitor, None)
            self._logged = set(trainer.callback_metrics)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        """Tell the metric of a query."""
        if trainer.sanity_checking or not self._fits:
            return
        metrics = trainer.callback_metrics
        if self.monitor not in metrics:
            expected = f"a metric that validation logs, of {sorted(metrics)}"
            raise InvalidArgumentError("monitor", expected, self.monitor)
        self._warn_of_others(trainer, set(metrics) - self._logged - {self.monitor})
        self.driver.validated(float(metrics[self.monitor]))
        self._spare_mended(trainer)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """Measure what is due, and say how many steps no query has seen."""
        self._measure_due(trainer)
        if self._before is None:
            self.driver.finish()

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        """Give other callbacks back what they were made with, and the tuner the round of a trial run.

        Loggers of the tuner get the last round.
        """
        while self._given:
            setattr(*self._given.pop())
        if self._before is not None:
            self.driver.prepare().load_state_dict(self._before)
            self._before = None
        elif stage == "fit":
            self.driver.flush()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """As ``teardown``, which Lightning does not call after an exception."""
        self.teardown(trainer, pl_module, "fit")

    def state_dict(self) -> dict[str, Any]:
        """Return the state that the trainer saves; it asks all ranks for it."""
        return self.driver.gathered_state_dict()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Continue from the state that the trainer loads."""
        self.driver.load_state_dict(state_dict)
        if self._fits:
            self.driver.set_generators()  # the trainer draws the order of an epoch before it starts

    def _measure_due(self, trainer: Any) -> None:
        """Validate as the trainer does after a batch: between fits and epochs it does not by itself."""
        if self.driver.is_due:
            loop = trainer.fit_loop.epoch_loop.val_loop
            loop.restarting = False
            trainer.validating = True
            loop.run()
            trainer.training = True

    def _let_others_read(self, trainer: Any) -> None:
        """Let what monitors the metric read it after a validation, not at the end of every epoch.

        Neither callback says so by an argument once it is made: both decide by the trainer's interval.
        """
        for config in trainer.lr_scheduler_configs:
            reads = config.reduce_on_plateau and config.monitor == self.monitor
            expected = (
                f"one that does not read {self.monitor}, which is measured when a decision says so"
            )
            check(not reads, "lr_scheduler", expected, "ReduceLROnPlateau")
        for callback in self._readers(trainer.early_stopping_callbacks):
            self._give(callback, "_check_on_train_epoch_end", False)
        for callback in self._readers(trainer.checkpoint_callbacks):
            self._give(callback, "_save_on_train_epoch_end", False)

    def _spare_mended(self, trainer: Any) -> None:
        """Let no metric that is not finite end a run whose network goes back, and on."""
        if self.driver.mends:
            for callback in self._readers(trainer.early_stopping_callbacks):
                self._give(callback, "check_finite", False)

    def _warn_of_others(self, trainer: Any, measured: set[str]) -> None:
        """Warn of what reads another metric of a validation whether or not there was one."""
        for name, reader in _read_each_epoch(trainer):
            if name in measured and self.driver.connect().ranks.is_first:
                _logger.warning(
                    "%s reads %r, which is measured after queries only: in between it reads an old "
                    "value. Let it read %r, or what training logs.",
                    reader,
                    name,
                    self.monitor,
                )

    def _readers(self, callbacks: Iterable[Any]) -> list[Any]:
        """Return the callbacks that monitor the metric; not every ``Checkpoint`` has a monitor."""
        return [one for one in callbacks if getattr(one, "monitor", None) == self.monitor]

    def _give(self, callback: Any, option: str, value: Any) -> None:
        if getattr(callback, option) != value:
            self._given.append((callback, option, getattr(callback, option)))
            setattr(callback, option, value)


def _read_each_epoch(trainer: Any) -> Iterator[tuple[str, str]]:
    """Iterate over the metrics that are read without a validation before, and the names of readers."""
    for config in trainer.lr_scheduler_configs:
        if config.reduce_on_plateau:
            yield config.monitor, type(config.scheduler).__name__
    options = ("_check_on_train_epoch_end", "_save_on_train_epoch_end")
    groups = (trainer.early_stopping_callbacks, trainer.checkpoint_callbacks)
    for option, callbacks in zip(options, groups, strict=True):
        for one in callbacks:
            if (
                getattr(one, "monitor", None) is not None
                and getattr(one, option, None) is not False
            ):
                yield one.monitor, type(one).__name__


def _averages(callbacks: Iterable[Any], network: nn.Module) -> tuple[nn.Module, ...]:
    """Return the averages of a network that callbacks hold: one that is broken stays so, else."""
    held = [value for callback in callbacks for value in vars(callback).values()]
    copies = (AveragedModel, type(network))
    return tuple(one for one in held if isinstance(one, copies) and one is not network)


def _left(trainer: Any) -> dict[str, float]:
    """Return how many steps and epochs a trainer has before it, if known; infinity without a bound."""
    bounds = (trainer.max_steps, trainer.max_epochs)
    max_steps, max_epochs = (math.inf if n is None or n < 0 else n for n in bounds)
    if not trainer.lightning_module.automatic_optimization:  # the module says how a batch steps
        return _left_of_one(max_steps - trainer.global_step, max_epochs - trainer.current_epoch)
    batches = trainer.num_training_batches / trainer.accumulate_grad_batches
    an_epoch = math.ceil(batches) if math.isfinite(batches) else math.inf
    steps = min(max_steps, max_epochs * an_epoch) - trainer.global_step
    whole = math.isfinite(an_epoch)  # else data without a length
    return {
        "steps": steps,
        "epochs": steps / an_epoch if whole else max_epochs - trainer.current_epoch,
    }


def _left_of_one(steps: float, epochs: float) -> dict[str, float]:
    """Return the rest of the only bound; empty if there are two, for either may come first."""
    if math.isfinite(steps) and math.isfinite(epochs):
        return {}
    return {"steps": steps, "epochs": epochs}


def _one_optimizer(optimizers: Iterable[Optimizer]) -> Optimizer:
    """Return the only optimizer of a trainer.

    Raises:
        InvalidArgumentError: If there are none or several, for a name does not say which is meant.
    """
    found = list(optimizers)
    expected = (
        "one optimizer, for a name does not say which is meant (parameter groups can be named)"
    )
    check(len(found) == 1, "optimizers", expected, len(found))
    return found[0]
