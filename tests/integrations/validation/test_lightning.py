"""A trainer of Lightning validates when a reading is worth its price, and trains as without it."""

import math

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset

from botorch_costly.errors import InvalidArgumentError, StateMismatchError
from tests.integrations.digits import data
from tests.integrations.validation.readings import readings, validation

pytest.importorskip("lightning.pytorch", reason="needs the extra botorch_costly[lightning]")
from lightning.pytorch import Callback
from lightning.pytorch.callbacks import EarlyStopping, LearningRateFinder, ModelCheckpoint, Timer

from botorch_costly.integrations.validation.lightning import ValidationCallback
from tests.integrations.lightning_fits import Digits, callback as tuner_callback, trainer_of
from tests.rewards.guarding import Weights

pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning's own, on small machines


class Run(Digits):
    """A module whose dropout and data draw from the global generator, if it is random."""

    def __init__(self, random=True):
        torch.manual_seed(1)
        super().__init__()
        self.random, self.trained = random, []
        self.network[2].p = 0.5 if random else 0.0

    def training_step(self, batch, index):
        loss = super().training_step(batch, index)
        self.trained.append(loss.detach())
        return loss

    def train_dataloader(self):
        return DataLoader(data("train"), batch_size=60, shuffle=self.random)


def fit(module=None, *callbacks, validated=None, ckpt_path=None, options=None, **trainer):
    """Fit with a callback; return the callback and the module."""
    module = Run() if module is None else module
    callback = ValidationCallback(
        validation() if validated is None else validated, "val_loss", **(options or {})
    )
    trainer_of(callback, *callbacks, **trainer).fit(module, ckpt_path=ckpt_path, weights_only=True)
    return callback, module


def weights(module):
    return torch.cat([weight.detach().flatten() for weight in module.parameters()])


# -- when ------------------------------------------------------------------------------------------


def test_training_is_the_same_with_any_number_of_readings():
    plain = Run()
    trainer_of(limit_val_batches=0).fit(plain)
    drawn = torch.rand(3)
    counts = set()
    for overhead in (0.05, 0.3, 1.0):
        callback, module = fit(validated=validation(overhead))
        assert torch.equal(torch.rand(3), drawn)
        assert torch.equal(weights(module), weights(plain))
        assert [loss.item() for loss in module.trained] == [loss.item() for loss in plain.trained]
        counts.add(callback.validation.readings)
    assert len(counts) == 3


def test_the_trainer_validates_when_the_validation_says_so_and_at_the_last_step():
    callback, module = fit()
    asked, losses = validation(), iter(module.losses[1:])  # after the sanity check
    asked.expect(40)
    asked.start()
    for step in range(1, 41):
        if asked.due(step, train_loss=module.trained[step - 1], last=step == 40):
            asked.tell(next(losses))
    assert readings(callback.validation) == readings(asked)
    assert readings(asked)[-1][0] == 40
    assert 3 <= len(readings(asked)) < 40
    assert next(losses, None) is None


def test_steps_are_those_of_the_optimizer_when_batches_are_accumulated():
    callback, module = fit(validated=validation(1.0), accumulate_grad_batches=4)
    steps = [step for step, _ in readings(callback.validation)]
    assert steps[-1] == 12  # ten batches an epoch: 3 steps
    assert len(set(steps)) == len(steps)
    state = callback.validation.state_dict()["training"]
    assert len(state["window"]) == 12
    assert state["window"][0] == pytest.approx(sum(module.trained[:4]).item() / 4, rel=1e-5)


@pytest.mark.parametrize(
    ("bounds", "last"),
    [({"max_steps": 17, "max_epochs": -1}, 17), ({"limit_train_batches": 3}, 12)],
)
def test_the_last_step_is_read_whatever_ends_the_run(bounds, last):
    callback, _ = fit(**bounds)
    assert readings(callback.validation)[-1][0] == last


class Stop(Callback):
    def on_train_batch_start(self, trainer, *arguments):
        if trainer.global_step == 13:
            trainer.should_stop = True
            return -1
        return None


def test_a_run_that_a_callback_cuts_short_is_read_at_its_end():
    callback, module = fit(None, Stop())
    assert readings(callback.validation)[-1][0] == len(module.trained) < 40
    assert len(module.losses) == 1 + callback.validation.readings


def test_a_timer_ends_the_run_after_a_reading():
    callback, _ = fit(None, Timer(duration={"milliseconds": 1}))
    assert len(readings(callback.validation)) >= 1


class Unsized(IterableDataset):
    def __iter__(self):
        return iter([data("train")[k] for k in range(240)])


def test_a_loader_without_a_length():
    class Streaming(Run):
        def train_dataloader(self):
            return DataLoader(Unsized(), batch_size=60)

        def val_dataloader(self):
            return DataLoader(Unsized(), batch_size=60)

    callback, _ = fit(Streaming())
    assert readings(callback.validation)[-1][0] == 16
    assert callback.validation.readings < 16


# -- what is read ----------------------------------------------------------------------------------


class Logged(Run):
    """Logs the values of a list, one in each validation; no metric for None."""

    def __init__(self, values):
        super().__init__()
        self.values = list(values)

    def validation_step(self, batch, index):
        if self.trainer.sanity_checking:
            return
        self.log("other", 1.0)
        value = self.values.pop(0) if self.values else 0.1
        if value is not None:
            self.log("val_loss", value)


@pytest.mark.parametrize("values", [[math.nan, 0.9], [0.9, math.nan], [math.nan, math.inf]])
def test_a_metric_that_is_not_finite_is_a_failed_reading(values):
    callback, _ = fit(Logged(values), validated=validation(1.0))
    failures = sum(not math.isfinite(value) for value in values)
    summary = callback.validation.counts
    assert summary["failed"] == failures
    assert summary["readings"] > failures
    assert callback.validation.best.value == pytest.approx(0.1)


def test_a_validation_without_the_metric_is_refused_at_first_and_fails_later(said):
    with pytest.raises(InvalidArgumentError, match=r"\['other'\]"):
        fit(Logged([None]))
    callback, _ = fit(Logged([0.9, None, None]), validated=validation(1.0), options={"guard": True})
    assert callback.validation.counts["failed"] == 2
    assert callback.run.restores == 0
    assert sum("has no metric" in line for line in said()) == 1


class Silent(Run):
    """Steps its optimizer itself, and returns no loss."""

    def __init__(self):
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch, index):
        optimizer = self.optimizers()
        optimizer.zero_grad()
        self.manual_backward(super().training_step(batch, index))
        optimizer.step()


def test_without_a_training_loss():
    callback, _ = fit(Silent())
    state = callback.validation.state_dict()
    assert math.isnan(state["training"]["level"])
    assert len(readings(callback.validation)) > 2


# -- callbacks that read the metric ----------------------------------------------------------------


def test_the_best_checkpoint_is_the_one_that_is_saved(tmp_path):
    kept = ModelCheckpoint(tmp_path, monitor="val_loss", filename="{step}")
    values = [0.9, 0.5, 0.7, *99 * [0.6]]
    callback, _ = fit(Logged(values), kept, validated=validation(1.0), enable_checkpointing=True)
    assert kept.best_model_path.endswith(f"step={callback.validation.best.step}.ckpt")
    assert kept.best_model_score == 0.5
    assert kept._save_on_train_epoch_end is None  # given back


def test_patience_counts_readings():
    stopping = EarlyStopping("val_loss", patience=2)
    callback, _ = fit(Logged([0.5, 0.6, 0.7, 0.8]), stopping, validated=validation(1.0))
    assert callback.validation.readings == 3


def test_the_trainer_stops_when_the_validation_does():
    flat = validation(1.0, steps=200, false_stop=0.2, min_delta=0.05)
    callback, module = fit(Logged(999 * [0.5]), validated=flat, max_epochs=20)
    assert len(module.trained) < 200
    assert readings(flat)[-1][0] == len(module.trained)
    assert callback.validation.should_stop


# -- states ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("guard", [True, False])
@pytest.mark.parametrize("saved", [{"every_n_train_steps": 10}, {"every_n_epochs": 1}])
def test_a_resumed_run_is_the_uninterrupted_one(tmp_path, guard, saved):
    """Checkpoints lie between a step and its reading, or after it."""
    options = {"guard": guard}
    whole, _ = fit(Run(random=False), options=options)
    torch.manual_seed(5)
    kept = ModelCheckpoint(tmp_path, save_top_k=-1, filename="{step}", **saved)
    fit(Run(random=False), kept, options=options, enable_checkpointing=True)
    for step in (10, 20, 30):
        path = tmp_path / f"step={step}.ckpt"
        resumed, _ = fit(Run(random=False), options=options, ckpt_path=path)
        assert readings(resumed.validation) == readings(whole.validation)


def test_readings_at_each_step_survive_a_checkpoint_between_a_step_and_its_reading(tmp_path):
    kept = ModelCheckpoint(tmp_path, save_top_k=-1, filename="{step}", every_n_train_steps=1)
    read_at = list(range(1, 13))
    fit(Run(random=False), kept, validated=validation(read_at=read_at), enable_checkpointing=True)
    resumed, _ = fit(
        Run(random=False), validated=validation(read_at=read_at), ckpt_path=tmp_path / "step=7.ckpt"
    )
    steps = [step for step, _ in readings(resumed.validation)]
    assert steps[:12] == read_at


def test_a_resumed_run_with_other_options_is_refused(tmp_path):
    kept = ModelCheckpoint(tmp_path, filename="run")
    fit(None, kept, enable_checkpointing=True)
    path = tmp_path / "run.ckpt"
    with pytest.raises(StateMismatchError, match="overhead"):
        fit(validated=validation(0.1), ckpt_path=path, max_epochs=5)
    options = {"changed": ["overhead"]}
    fit(validated=validation(0.1), ckpt_path=path, options=options, max_epochs=5)


def test_a_second_fit_begins_anew_and_a_trial_changes_nothing():
    callback = ValidationCallback(validation(), "val_loss")
    trainer_of(callback, fast_dev_run=True).fit(Run())
    assert callback.validation.readings == 0
    trainer_of(callback).fit(Run())
    first = readings(callback.validation)
    trainer_of(callback).fit(Run())
    assert readings(callback.validation) == first
    assert callback.validation.readings == len(first)


def test_a_finder_of_rates_changes_no_reading():
    finder = LearningRateFinder(num_training_steps=25, update_attr=False)
    first, _ = fit(Run(random=False))
    second, _ = fit(Run(random=False), finder)
    steps = [[step for step, _ in readings(one.validation)] for one in (first, second)]
    assert steps[0][:3] == steps[1][:3]  # later ones depend on the losses
    assert steps[1][-1] == 40


# -- the guard -------------------------------------------------------------------------------------


class Spike(Callback):
    """Breaks the weights at a step."""

    def __init__(self, step, value=math.nan):
        self.step, self.value = step, value

    def on_train_batch_start(self, trainer, module, batch, batch_idx):
        if trainer.global_step == self.step:
            with torch.no_grad():
                for weight in module.parameters():
                    weight.mul_(self.value)


@pytest.mark.parametrize("value", [math.nan, -20.0])
def test_a_broken_run_goes_back_to_its_good_state(value, said):
    callback, module = fit(None, Spike(15, value), options={"guard": True})
    assert callback.run.restores == 1
    assert torch.isfinite(weights(module)).all()
    assert callback.validation.best.value < 1.5
    assert all(math.isfinite(v) and v < 3 for _, v in readings(callback.validation))
    assert sum("goes on from its state of step" in line for line in said()) == 1
    unguarded, module = fit(None, Spike(15, value))
    assert max(v if math.isfinite(v) else math.inf for _, v in readings(unguarded.validation)) > 3


class Average(Callback):
    """Holds an average of the weights."""

    def setup(self, trainer, module, stage):
        self.average = torch.optim.swa_utils.AveragedModel(module.network)

    def on_train_batch_end(self, trainer, module, *arguments):
        self.average.update_parameters(module.network)


def test_averages_and_further_parts_go_back_with_the_network():
    average, counter = Average(), Weights(0.0)

    class Count(Callback):
        def on_train_batch_end(self, trainer, *arguments):
            counter.tensor.add_(1.0)

    options = {"guard": True, "parts": [counter]}
    callback, _ = fit(None, average, Count(), Spike(15), options=options)
    assert callback.run.restores == 1
    assert all(weight.isfinite().all() for weight in average.average.parameters())
    assert counter.tensor.item() < 40


def test_a_spike_of_the_training_loss_is_read_soon():
    callback, module = fit(None, Spike(100, -20.0), options={"guard": True}, max_epochs=12)
    assert callback.run.restores == 1
    step = next(k for k, loss in enumerate(module.trained, 1) if loss > 10)
    back = next(k for k, loss in enumerate(module.trained[step:], step) if loss < 3)
    assert back - step <= 10


def test_a_divergence_does_not_end_a_run_that_can_go_back():
    stopping = EarlyStopping("val_loss", patience=99)
    callback, _ = fit(None, stopping, Spike(15), options={"guard": True})
    assert readings(callback.validation)[-1][0] == 40


# -- refusals --------------------------------------------------------------------------------------


def test_what_does_not_fit_is_refused():
    for wrong in ({"guard": 1}, {"margin": 0.2}, {"guard": True, "margin": 0.0}, {"timeout": 0}):
        with pytest.raises(InvalidArgumentError):
            ValidationCallback(validation(), "val_loss", **wrong)
    for wrong in ({"guard": True, "device": "abacus"}, {"device": "cpu"}):
        with pytest.raises(InvalidArgumentError):
            ValidationCallback(validation(), "val_loss", **wrong)
    with pytest.raises(InvalidArgumentError, match="a Validation"):
        ValidationCallback(3, "val_loss")
    with pytest.raises(InvalidArgumentError, match="check_val_every_n_epoch"):
        fit(check_val_every_n_epoch=2)
    with pytest.raises(InvalidArgumentError, match="one that decides when to validate"):
        fit(None, tuner_callback())


def test_a_second_callback_of_a_kind_is_refused_by_lightning_itself():
    for make in (tuner_callback, lambda: ValidationCallback(validation(), "val_loss")):
        with pytest.raises(RuntimeError, match="more than one stateful callback"):
            trainer_of(make(), make())
