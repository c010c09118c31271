"""The kind: what Lightning and its other callbacks do before, between and after fits, beside a tuner.

Callbacks that try something first save and restore the state of a trainer; some stop a run, or change
its optimizer; and a program fits again, in a second cell or after an interruption.
"""

from types import SimpleNamespace

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset

from botorch_costly.errors import HorizonExceededError, InvalidArgumentError, StateMismatchError
from botorch_costly.integrations import RoundLength
from botorch_costly.integrations.loggers import LoggedTuner
from tests.integrations.digits import data
from tests.integrations.loggers.playing import Memory

pytest.importorskip("lightning.pytorch", reason="needs the extra botorch_costly[lightning]")
from lightning.pytorch import Callback
from lightning.pytorch.callbacks import (
    BatchSizeFinder,
    EarlyStopping,
    GradientAccumulationScheduler,
    LearningRateFinder,
    ModelCheckpoint,
)
from lightning.pytorch.tuner import Tuner

from botorch_costly.integrations.lightning import TunerCallback
from botorch_costly.integrations.lightning_trainer import StepCounter, counter_of
from tests.integrations.lightning_fits import Digits, callback, rewards, trainer_of, tuner

pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning's own, on small machines

# -- what others do before a fit -------------------------------------------------------------------

FIRST = {
    "a finder of rates": lambda: LearningRateFinder(num_training_steps=25),
    "a finder of sizes": lambda: BatchSizeFinder(max_trials=2, steps_per_trial=1),
}


@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("guard", [True, False])
def test_a_callback_that_saves_and_restores_first_changes_no_round(first, order, guard, said):
    tuned = callback(guard=guard)
    trainer_of(*[FIRST[first](), tuned][::order]).fit(Digits())
    assert [one.round for one in tuned.driver.tuner.observations] == [0, 1, 2, 3]
    assert rewards(tuned)[0] is None
    assert said() == []


def test_a_finder_before_a_second_fit_brings_back_no_reference_of_the_first(said):
    tuned = callback(8)
    trainer_of(tuned).fit(Digits())
    trainer_of(FIRST["a finder of rates"](), tuned).fit(Digits())
    assert [reward is None for reward in rewards(tuned)] == [True, *3 * [False], True, *3 * [False]]
    assert "before this fit" in said()[1]


def test_trials_of_a_program_leave_the_tuner_as_it_was(said):
    tuned, module = callback(), Digits()
    trainer_of(tuned, fast_dev_run=True).fit(module)
    assert tuned.driver.tuner.decisions == ()
    trainer = trainer_of(tuned)
    Tuner(trainer).lr_find(module, num_training=25)
    Tuner(trainer).scale_batch_size(module, max_trials=2, steps_per_trial=1)
    trainer.validate(module)
    assert tuned.driver.tuner.decisions == ()
    trainer.fit(module)
    trainer.validate(module)
    trainer.test(module)
    assert [one.round for one in tuned.driver.tuner.observations] == [0, 1, 2, 3]
    assert said() == []


# -- another fit -----------------------------------------------------------------------------------


@pytest.mark.parametrize("anew", [True, False], ids=["another callback", "the same callback"])
def test_a_cell_that_is_run_again_is_refused(anew):
    tuned = callback()
    trainer_of(tuned).fit(Digits())
    again = TunerCallback(tuned.driver.tuner, "val_loss") if anew else tuned
    with pytest.raises(HorizonExceededError, match="all 4 rounds played"):
        trainer_of(again).fit(Digits())


class Interrupt(Callback):
    def on_train_batch_end(self, trainer, *arguments):
        if trainer.global_step == 15:
            raise KeyboardInterrupt


def test_an_interrupted_fit_is_begun_again(said):
    tuned, module = callback(6), Digits()
    stopping = EarlyStopping("val_loss", patience=9)
    with pytest.raises(SystemExit):
        trainer_of(tuned, Interrupt(), stopping, max_epochs=6).fit(module)
    assert stopping.check_finite  # given back
    assert len(rewards(tuned)) == 1
    trainer_of(tuned, max_epochs=4).fit(module)
    assert [one.round for one in tuned.driver.tuner.observations] == [0, 2, 3, 4, 5]
    assert [reward is None for reward in rewards(tuned)] == [True, True, False, False, False]
    assert len(said()) == 1


def test_a_run_is_trained_for_longer_and_goes_on_from_its_best_checkpoint(said, tmp_path):
    kept = ModelCheckpoint(tmp_path, monitor="val_loss", save_top_k=-1, filename="{epoch}")
    trainer = trainer_of(callback(), kept, enable_checkpointing=True)
    trainer.fit(Digits())
    last = tmp_path / "epoch=3.ckpt"
    with pytest.raises(StateMismatchError, match="horizon"):
        trainer_of(callback(6), max_epochs=6).fit(Digits(), ckpt_path=last)
    longer = callback(6, changed=["horizon"])
    trainer_of(longer, max_epochs=6).fit(Digits(), ckpt_path=last)
    assert [one.round for one in longer.driver.tuner.observations] == list(range(6))
    assert None not in rewards(longer)[1:]  # the run goes on: its reference holds
    assert said() == []


def test_a_resume_past_the_horizon_has_the_dropout_of_the_incumbent(said, tmp_path):
    kept = ModelCheckpoint(tmp_path, save_top_k=-1, filename="{epoch}")
    whole = Digits()
    trainer_of(callback(2), kept, enable_checkpointing=True).fit(whole)
    module, tuned = Digits(), callback(2)
    assert module.network[2].p == 0.5
    trainer_of(tuned).fit(module, ckpt_path=tmp_path / "epoch=2.ckpt")
    assert module.network[2].p == whole.network[2].p == tuned.config["dropout"]
    assert tuned.config == tuned.driver.tuner.best()
    for resumed, weight in zip(module.parameters(), whole.parameters(), strict=True):
        torch.testing.assert_close(resumed, weight)


def test_a_query_that_was_due_when_a_checkpoint_was_saved_is_told_after_a_resume(tmp_path):
    """The kind: what was to come after a batch, when the checkpoint was saved before it came."""
    kept = ModelCheckpoint(tmp_path, every_n_train_steps=10, save_top_k=-1, filename="{step}")
    whole = callback()
    trainer_of(whole, kept, enable_checkpointing=True).fit(Digits())
    for step in (10, 20, 40):
        tuned = callback()
        trainer_of(tuned).fit(Digits(), ckpt_path=tmp_path / f"step={step}.ckpt")
        assert [one.round for one in tuned.driver.tuner.observations] == [0, 1, 2, 3]
        assert rewards(tuned)[1:] == pytest.approx(rewards(whole)[1:])


class Fails(Callback):
    """A validation of the second epoch that does not come to its end."""

    def on_validation_start(self, trainer, pl_module):
        if trainer.current_epoch == 1 and not trainer.sanity_checking:
            raise RuntimeError


def test_a_validation_out_of_a_fit_is_none_of_a_round():
    """The kind: a metric that is told of a round in which it was not measured."""
    tuned, failing = callback(), Fails()
    trainer = trainer_of(tuned, failing)
    with pytest.raises(RuntimeError):
        trainer.fit(Digits())
    assert tuned.driver.is_due
    trainer.callbacks.remove(failing)
    trainer.validate(Digits())
    assert [one.round for one in tuned.driver.tuner.observations] == [0]


class Silenced(Digits):
    """A module that logs the metric in its first epoch alone."""

    def validation_step(self, batch, index):
        if self.current_epoch == 0:
            super().validation_step(batch, index)


def test_a_metric_that_is_logged_no_more_is_not_told_again():
    """The kind: a metric that is told of a round in which it was not measured."""
    tuned = callback()
    with pytest.raises(InvalidArgumentError, match="val_loss"):
        trainer_of(tuned).fit(Silenced())
    assert [one.round for one in tuned.driver.tuner.observations] == [0]


def test_each_round_of_each_fit_is_logged():
    """The kind: the last round, which no other one follows, lost on its way to a log."""
    memory = Memory()
    tuned = TunerCallback(LoggedTuner(tuner(8), memory), "val_loss")
    trainer_of(tuned, fast_dev_run=True).fit(Digits())
    assert memory.entries == []
    for fit in (1, 2):
        trainer_of(tuned).fit(Digits())
        assert [entry.round for entry in memory.entries] == list(range(4 * fit))
    assert memory.closed == 0


# -- rounds and horizon ----------------------------------------------------------------------------


class Unsized(IterableDataset):
    def __iter__(self):
        return iter(list(data("train")))


@pytest.mark.parametrize(
    ("horizon", "options", "length", "expected"),
    [
        (2, {}, None, "The tuner has 2 rounds left, and the run has 4."),
        (9, {}, None, "The run ends after 4 rounds"),
        (4, {"max_steps": 7, "max_epochs": -1}, None, "The run ends before its first round"),
        (4, {"max_steps": 40, "max_epochs": -1}, None, None),
        (4, {"accumulate_grad_batches": 3}, None, None),
        (5, {"accumulate_grad_batches": 3}, RoundLength(steps=3), None),
        (4, {"limit_train_batches": 0.5}, None, None),
        (4, {"overfit_batches": 2}, None, None),
        (4, {"callbacks": [GradientAccumulationScheduler({0: 2, 2: 5})]}, None, None),
    ],
)
def test_a_horizon_that_does_not_fit_is_told_at_the_start(horizon, options, length, expected, said):
    tuned, given = callback(horizon, length=length), dict(options)
    others = given.pop("callbacks", [])
    trainer_of(tuned, *others, **given).fit(Digits())
    assert [line for line in said() if "played all" not in line] == (
        [] if expected is None else [next(line for line in said() if expected in line)]
    )


class Stop(Callback):
    def on_train_batch_end(self, trainer, *arguments):
        trainer.should_stop = trainer.global_step == 25


@pytest.mark.parametrize(("others", "steps"), [([], 4), ([Stop()], 1)])
def test_steps_at_the_end_that_no_query_has_seen_are_said(others, steps, said):
    """The kind: training that no query has seen, when nothing comes after it."""
    trainer_of(callback(5, length=RoundLength(steps=12)), *others, max_epochs=4).fit(Digits())
    assert [f"last steps ({steps})" in one for one in said()] == [False, True]


def test_data_without_a_length_have_rounds_of_epochs_and_of_steps(said):
    for length in (RoundLength(epochs=1), RoundLength(steps=10)):
        tuned = callback(length=length)
        trainer_of(tuned).fit(Digits(), DataLoader(Unsized(), batch_size=60))
        assert len(rewards(tuned)) == 4
    assert said() == []


class Manual(Digits):
    """A module that steps by itself, some times a batch, and not after each."""

    def __init__(self, every=1, times=1):
        super().__init__()
        self.automatic_optimization, self.every, self.times = False, every, times

    def training_step(self, batch, index):
        optimizer = self.optimizers()
        for _ in range(self.times):
            self.manual_backward(super().training_step(batch, index))
            if (index + 1) % self.every == 0:
                optimizer.step()
                optimizer.zero_grad()


@pytest.mark.parametrize(
    ("module", "length"),
    [
        ({"every": 4}, RoundLength(epochs=1)),
        ({"every": 5}, RoundLength(steps=2)),
        ({"every": 11}, RoundLength(epochs=1)),
        ({"times": 2}, RoundLength(steps=20)),
        ({"every": 2, "times": 2}, RoundLength(steps=10)),
    ],
)
def test_rounds_are_counted_whatever_a_batch_steps(module, length, said):
    """The kind: a batch, above all the last one of an epoch, taken for one step of the optimizer."""
    tuned = callback(length=length)
    trainer_of(tuned).fit(Manual(**module))
    assert [one.round for one in tuned.driver.tuner.observations] == [0, 1, 2, 3]
    assert said() == []


class Steps(Callback):
    """Compares the counter of a trainer's steps with the steps of the trainer."""

    def on_train_start(self, trainer, pl_module):
        self.counter = counter_of(trainer)

    def on_train_batch_end(self, trainer, *_):
        assert self.counter.completed == trainer.global_step


@pytest.mark.parametrize("kind", ["plain", "accumulated", "manual"])
def test_the_counter_of_steps_is_that_of_the_trainer(kind):
    steps, options = Steps(), {"accumulate_grad_batches": 3} if kind == "accumulated" else {}
    trainer = trainer_of(callback(), steps, **options)
    trainer.fit(Manual(every=2, times=3) if kind == "manual" else Digits())
    assert not isinstance(steps.counter, StepCounter)


def test_without_that_counter_the_trainer_is_asked():
    loop = SimpleNamespace(global_step=7)  # of another version
    fit, module = SimpleNamespace(epoch_loop=loop), SimpleNamespace(automatic_optimization=True)
    counter = counter_of(SimpleNamespace(fit_loop=fit, lightning_module=module, global_step=7))
    loop.global_step = 8
    assert counter.completed == 8


class Skips(Digits):
    """A module that skips the rest of each epoch."""

    def on_train_batch_start(self, batch, index):
        return -1 if index == 6 else None


def test_an_epoch_whose_rest_is_skipped_counts(said):
    """The kind: a batch, above all the last one of an epoch, taken for one step of the optimizer."""
    tuned = callback()
    trainer_of(tuned).fit(Skips())
    assert [one.round for one in tuned.driver.tuner.observations] == [0, 1, 2, 3]
    assert said() == []
