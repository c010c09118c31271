"""A trainer of Lightning reads as many examples as are worth it, in a fixed random order."""

import logging
import math

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from tests.integrations.validation.readings import readings, validation

pytest.importorskip("lightning.pytorch", reason="needs the extra botorch_costly[lightning]")
from lightning.pytorch import Callback
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint

from botorch_costly.integrations.validation.lightning import ValidationCallback
from tests.integrations.validation.test_lightning import Run, Spike, fit, weights

pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning's own, on small machines
COUNT = 300


class Parts(Run):
    """Losses of single examples, which are a function of the step and the example."""

    def __init__(self, size=10, workers=0, form="losses", random=True):
        super().__init__(random)
        self.size, self.workers, self.form = size, workers, form
        self.read, self.current = [], []

    def val_dataloader(self):
        examples = TensorDataset(torch.arange(COUNT))
        return DataLoader(examples, batch_size=self.size, num_workers=self.workers)

    def on_validation_epoch_start(self):
        self.current = []

    def on_validation_epoch_end(self):
        if not self.trainer.sanity_checking:
            self.read.append(self.current)

    def validation_step(self, batch, index):
        self.current += batch[0].tolist()
        losses = losses_at(self.trainer.global_step)[batch[0]]
        if self.form == "logged":
            self.log("val_loss", losses.mean())
        loss = losses.mean()
        forms = {"mean": loss, "named": {"val_loss": losses}, "loss": {"loss": loss}, "none": None}
        return forms.get(self.form, losses)


def losses_at(step):
    base = torch.randn(COUNT, generator=torch.Generator().manual_seed(3)).exp()
    own = torch.randn(COUNT, generator=torch.Generator().manual_seed(step))
    return base * (0.5 + abs(step - 25) / 40) + 0.05 * own


def loop(module, steps=40, overhead=1.0):
    """The readings of a loop of one's own, with the training losses of a module."""
    asked = validation(overhead, examples=COUNT)
    asked.expect(steps)
    asked.start()
    for step in range(1, steps + 1):
        if asked.due(step, train_loss=module.trained[step - 1], last=step == steps):
            while asked.examples:
                asked.tell(losses_at(step)[asked.examples])
    return asked


def fit_parts(module=None, *callbacks, overhead=1.0, examples=COUNT, **options):
    module = Parts() if module is None else module
    return fit(module, *callbacks, validated=validation(overhead, examples=examples), **options)


@pytest.mark.parametrize(("form", "workers"), [("losses", 0), ("named", 0), ("logged", 2)])
def test_readings_are_those_of_a_loop(form, workers):
    callback, module = fit_parts(Parts(form=form, workers=workers))
    asked = loop(module)
    assert readings(callback.validation) == readings(asked)
    assert callback.validation.best == asked.best
    assert readings(asked)[-1][0] == 40
    assert asked.counts["saved"] > 0.2
    assert [len(read) for read in module.read] != len(module.read) * [COUNT]
    longest = max(module.read, key=len)
    assert all(read == longest[: len(read)] for read in module.read)
    assert sum(map(len, module.read)) < asked.counts["examples"] + 10 * len(module.read)


@pytest.mark.parametrize("form", ["mean", "loss"])
def test_batches_are_drawn_if_their_means_are_known(form):
    callback, module = fit_parts(Parts(size=3, form=form), examples=100)
    assert callback.validation.counts["saved"] > 0
    assert all(len(read) % 3 == 0 for read in module.read)
    assert callback.validation.counts["examples"] == sum(map(len, module.read)) / 3


def test_training_is_the_same_with_partial_readings():
    plain, drawn = Run(), None
    for overhead in (None, 0.2, 1.0):
        if overhead is None:
            fit(plain, validated=validation(0.05))
            drawn = torch.rand(3)
        else:
            _, module = fit_parts(Parts(), overhead=overhead)
            assert torch.equal(torch.rand(3), drawn)
            assert torch.equal(weights(module), weights(plain))


class Watch(Callback):
    """Notes the metric after each validation, and the starts and ends of its batches."""

    def __init__(self):
        self.shown, self.starts, self.ends = [], 0, 0

    def on_validation_batch_start(self, *arguments):
        self.starts += 1

    def on_validation_batch_end(self, *arguments):
        self.ends += 1

    def on_validation_end(self, trainer, module):
        if not trainer.sanity_checking:
            self.shown.append(trainer.callback_metrics["val_loss"].item())


def test_other_callbacks_see_the_estimate_and_whole_batches(tmp_path):
    kept = ModelCheckpoint(tmp_path, monitor="val_loss", filename="{step}")
    watch, stopping = Watch(), EarlyStopping("val_loss", patience=99)
    callback, _ = fit_parts(Parts(form="logged"), watch, kept, stopping, enable_checkpointing=True)
    best = callback.validation.best.step
    assert kept.best_model_path.endswith(f"step={best}.ckpt")
    estimates = [value for _, value in readings(callback.validation)]
    shown = watch.shown[-len(estimates) :]
    assert shown == pytest.approx(estimates, abs=0.05)
    steps = [step for step, _ in readings(callback.validation)]
    assert steps[min(range(len(shown)), key=shown.__getitem__)] == best
    assert watch.starts == watch.ends


@pytest.mark.parametrize("saved", [{"every_n_train_steps": 10}, {"every_n_epochs": 1}])
def test_a_resumed_run_is_the_uninterrupted_one(tmp_path, saved):
    options = {"options": {"guard": True}}
    kept = ModelCheckpoint(tmp_path, save_top_k=-1, filename="{step}", **saved)
    whole, module = fit_parts(Parts(random=False), kept, enable_checkpointing=True, **options)
    for step in (10, 30):
        again = Parts(random=False)
        resumed, _ = fit_parts(again, ckpt_path=tmp_path / f"step={step}.ckpt", **options)
        assert readings(resumed.validation) == readings(whole.validation)
        assert again.read == module.read[-len(again.read) :]
        assert resumed.run.state_dict()["level"] == whole.run.state_dict()["level"]


def test_a_broken_run_goes_back_after_a_partial_reading():
    class Broken(Parts):
        def validation_step(self, batch, index):
            losses = super().validation_step(batch, index)
            return losses if torch.isfinite(weights(self)).all() else losses * math.nan

    callback, module = fit_parts(Broken(), Spike(15), options={"guard": True, "margin": 1.0})
    assert callback.run.restores == 1
    assert torch.isfinite(weights(module)).all()
    assert min(map(len, module.read)) == 70  # the first shard of 64 was enough


def test_the_loader_is_given_back():
    loader = Parts().val_dataloader()

    class Holding(Parts):
        def val_dataloader(self):
            return loader

    for stops in (False, True):
        module = Holding(form="none" if stops else "losses")
        if stops:
            with pytest.raises(InvalidShapeError, match="the losses of 10 examples"):
                fit_parts(module)
        else:
            fit_parts(module)
        assert torch.cat([batch for (batch,) in loader]).tolist() == list(range(COUNT))


def test_a_trial_run_changes_nothing_and_a_second_fit_begins_anew():
    callback = ValidationCallback(validation(1.0, examples=COUNT), "val_loss")
    from tests.integrations.lightning_fits import trainer_of

    trainer_of(callback, fast_dev_run=True).fit(Parts())
    assert callback.validation.readings == 0
    first = None
    for _ in range(2):
        trainer_of(callback).fit(Parts())
        first = readings(callback.validation) if first is None else first
        assert readings(callback.validation) == first


class Stream(IterableDataset):
    def __iter__(self):
        return iter([(number,) for number in torch.arange(COUNT)])


def _with_loader(make):
    class Other(Parts):
        def val_dataloader(self):
            return make()

    return Other()


@pytest.mark.parametrize(
    ("module", "options", "expected"),
    [
        (Parts, {"limit_val_batches": 5}, "limit_val_batches"),
        (Parts, {"reload_dataloaders_every_n_epochs": 1}, "reload_dataloaders"),
        (Parts, {"examples": 77}, "300, the number of examples, or 30, the number of batches"),
        (lambda: _with_loader(lambda: DataLoader(Stream())), {}, "indices"),
    ],
)
def test_fits_whose_examples_are_not_fixed_are_refused(module, options, expected):
    with pytest.raises(InvalidArgumentError, match=expected):
        fit_parts(module(), **options)


def test_several_loaders_are_refused():
    class Two(Parts):
        def val_dataloader(self):
            return [super(Two, self).val_dataloader() for _ in range(2)]

        def validation_step(self, batch, index, dataloader_idx=0):
            return super().validation_step(batch, index)

    with pytest.raises(InvalidArgumentError, match="one loader"):
        fit_parts(Two())


# -- the end of a run, and its log -----------------------------------------------------------------


def test_the_last_step_is_the_one_of_the_trainer_unless_it_is_named():
    assert fit()[0].validation.steps == 40
    assert fit(max_steps=17, max_epochs=-1)[0].validation.steps == 17
    assert fit(accumulate_grad_batches=4)[0].validation.steps == 12
    assert fit(validated=validation(steps=33))[0].validation.steps == 33


def test_a_run_of_another_length_is_resumed_without_a_word(tmp_path):
    kept = ModelCheckpoint(tmp_path, filename="run")
    fit(None, kept, enable_checkpointing=True)
    resumed, _ = fit(ckpt_path=tmp_path / "run.ckpt", max_epochs=6)
    assert resumed.validation.steps == 60
    assert readings(resumed.validation)[-1][0] == 60


def test_the_log_and_the_loggers_say_how_much_was_saved(tmp_path, caplog):
    from lightning.pytorch.loggers import CSVLogger

    caplog.set_level(logging.INFO, "botorch_costly")
    logger = CSVLogger(tmp_path)
    callback, _ = fit_parts(logger=logger)
    ours = [one.getMessage() for one in caplog.records if "validation" in one.name]
    assert ours == [f"Validation: {callback.validation.summary()}."]
    text = (tmp_path / "lightning_logs/version_0/metrics.csv").read_text().splitlines()
    columns = text[0].split(",")
    names = {f"validation/{n}" for n in ("readings", "share", "saved", "best", "best_step")}
    assert names <= set(columns)
    rows = [dict(zip(columns, line.split(","), strict=True)) for line in text[1:]]
    rows = [row for row in rows if row["validation/readings"]]
    assert len(rows) == callback.validation.readings
    counts = callback.validation.counts
    assert float(rows[-1]["validation/saved"]) == pytest.approx(counts["saved"])
    assert [int(row["step"]) for row in rows] == [step for step, _ in callback.validation.history]
