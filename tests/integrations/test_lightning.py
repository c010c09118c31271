"""A real trainer of Lightning plays what a plain loop plays, also on two ranks and after a kill."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.utils.data import ConcatDataset, DataLoader, Subset

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError, InvalidConfigError, MissingExtraError
from botorch_costly.integrations import RoundLength
from tests.integrations.digits import BATCH, by_hand, data, tuner
from tests.integrations.launching import ROOT, launched

pytest.importorskip("lightning.pytorch", reason="needs the extra botorch_costly[lightning]")
from lightning.pytorch.callbacks import EarlyStopping, ModelCheckpoint

from botorch_costly.integrations.lightning import TunerCallback
from tests.integrations import lightning_program

pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning's own, on small machines


@pytest.mark.parametrize(
    ("length", "steps"), [(RoundLength(epochs=1), 10), (RoundLength(steps=4), 4)]
)
def test_a_trainer_plays_what_a_plain_loop_plays(tmp_path, length, steps):
    horizon = 80 // steps - 1  # training goes on for a round when the tuner has done
    done, expected = lightning_program.run(tmp_path, 8, length, horizon), by_hand(8, steps, horizon)
    assert done["decisions"] == expected["decisions"]
    assert done["losses"][1:] == pytest.approx(
        expected["losses"], rel=1e-5
    )  # after the sanity check
    torch.testing.assert_close(
        torch.tensor(done["weights"]), torch.tensor(expected["weights"]), rtol=1e-4, atol=1e-5
    )
    assert done["restores"] == expected["restores"]
    assert done["config"] == expected["config"]  # of the incumbent, once the tuner has done


def program(folder, *arguments):
    command = [
        sys.executable,
        "-m",
        "tests.integrations.lightning_program",
        str(folder),
        *arguments,
    ]
    return subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=900
    )


def test_a_killed_run_goes_on_identically(tmp_path):
    whole = lightning_program.run(tmp_path / "whole", 8, RoundLength(steps=7), 11, checkpoints=True)
    for kill in ("33", "68"):
        assert program(tmp_path, "run", kill).returncode == -9
    assert (tmp_path / "run.ckpt").exists()
    done = program(tmp_path, "run")
    assert done.returncode == 0, done.stderr
    resumed = json.loads((tmp_path / "0.json").read_text())
    assert resumed["decisions"] == whole["decisions"]
    assert resumed["queries"] == whole["queries"]
    assert resumed["weights"] == whole["weights"]


def trainer_of(**options):
    quiet = {"enable_progress_bar": False, "enable_model_summary": False}
    plain = {"accelerator": "cpu", "logger": False, "enable_checkpointing": False}
    return lightning_program.Trainer(**{**quiet, **plain, **options})


class StatefulLoader:
    """Batches in an order of their own for each epoch, and a state that says which is the next."""

    def __init__(self):
        self.data, self.epoch, self.next = data("train"), 0, 0

    def __len__(self):
        return len(self.data) // BATCH

    def __iter__(self):
        generator = torch.Generator().manual_seed(self.epoch)
        order = torch.randperm(len(self.data), generator=generator).split(BATCH)
        while self.next < len(order):
            rows = order[self.next]
            self.next += 1
            yield self.data[rows]
        self.epoch, self.next = self.epoch + 1, 0

    def state_dict(self):
        return {"epoch": self.epoch, "next": self.next}

    def load_state_dict(self, state):
        self.epoch, self.next = state["epoch"], state["next"]


def from_checkpoint(folder, checkpoint=None):
    torch.manual_seed(1)
    module = lightning_program.Digits()
    callback = TunerCallback(tuner(6), "val_loss", length=RoundLength(steps=7))
    kept = ModelCheckpoint(folder, monitor="val_loss", save_top_k=-1, filename="{step}")
    trainer = trainer_of(callbacks=[callback, kept], max_epochs=6, enable_checkpointing=True)
    trainer.fit(module, StatefulLoader(), lightning_program.loaders()[1], ckpt_path=checkpoint)
    told = [one.to_dict() for one in callback.driver.tuner.observations]
    return told, [weight.tolist() for weight in module.parameters()]


def test_a_run_goes_on_identically_from_a_checkpoint_within_an_epoch(tmp_path):
    whole = from_checkpoint(tmp_path / "whole")
    within = [path for path in (tmp_path / "whole").iterdir() if "step=14" in path.name]
    assert len(within) == 1  # of ten steps an epoch
    assert from_checkpoint(tmp_path / "resumed", within[0]) == whole


def drawing(epochs, checkpoints=(), alike=False, **options):
    """Train with loaders that draw from the global generator; return decisions and weights."""
    torch.manual_seed(2)
    module, callback = lightning_program.Digits(), TunerCallback(tuner(10), "val_loss")
    saves = bool(checkpoints)
    trainer = trainer_of(
        max_epochs=epochs, callbacks=[callback, *checkpoints], enable_checkpointing=saves
    )
    # Within an epoch a trainer begins the data anew, so batches are alike there.
    rows = ConcatDataset(10 * [Subset(data("train"), range(BATCH))]) if alike else data("train")
    train = DataLoader(rows, BATCH, shuffle=not alike)
    trainer.fit(module, train, DataLoader(data("val"), batch_size=300), **options)
    weights = torch.cat([parameter.detach().flatten() for parameter in module.parameters()])
    return callback.driver.tuner.decisions, weights


@pytest.mark.parametrize(
    ("saved", "alike"),
    [
        ({"save_on_train_epoch_end": True}, False),
        ({}, False),
        ({"every_n_train_steps": 13}, True),
    ],
    ids=["after an epoch", "after validation", "within an epoch"],
)
def test_loaders_that_draw_go_on_identically(tmp_path, saved, alike):
    """The trainer draws from the global generator before training starts, on resuming, too."""
    whole, weights = drawing(10, alike=alike)
    drawing(5, [ModelCheckpoint(tmp_path, filename="run", **saved)], alike)
    path = tmp_path / "run.ckpt"
    decisions, resumed = drawing(10, alike=alike, ckpt_path=path, weights_only=True)
    assert decisions == whole
    assert torch.equal(resumed, weights)


def test_two_ranks_play_one_run(tmp_path):
    first, second = launched("lightning_program.py", tmp_path, "ranks")
    assert first["weights"] == second["weights"]
    assert first["config"] == second["config"]
    assert len(first["decisions"]) == 12
    assert second["decisions"] == []  # its own tuner is not asked
    assert len(first["losses"]) == len(second["losses"]) < 12


class TwoOptimizers(lightning_program.Digits):
    def __init__(self):
        super().__init__()
        self.automatic_optimization = False

    def configure_optimizers(self):
        return [torch.optim.SGD(self.parameters(), lr=0.1) for _ in range(2)]


class Scheduled(lightning_program.Digits):
    def configure_optimizers(self):
        optimizer = super().configure_optimizers()
        return [optimizer], [torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)]


class Plateau(lightning_program.Digits):
    def configure_optimizers(self):
        optimizer = super().configure_optimizers()
        scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
        reads = {"scheduler": scheduler, "monitor": "val_loss"}
        return {"optimizer": optimizer, "lr_scheduler": reads}


def fit(callback, module=None, **options):
    trainer = trainer_of(**{"max_epochs": 1, "callbacks": [callback], **options})
    trainer.fit(module or lightning_program.Digits(), *lightning_program.loaders())


def test_two_optimizers_are_refused():
    with pytest.raises(InvalidArgumentError, match="one optimizer"):
        fit(TunerCallback(tuner(5), "val_loss"), TwoOptimizers())


def test_values_beside_a_scheduler_are_refused_and_multipliers_are_not():
    with pytest.raises(InvalidArgumentError, match="ExponentialLR"):
        fit(TunerCallback(tuner(5), "val_loss"), Scheduled())
    fit(TunerCallback(tuner(5), "val_loss", rates="multipliers"), Scheduled())


def test_a_metric_that_is_not_logged_is_named():
    with pytest.raises(InvalidArgumentError, match="'val_loss'"):
        fit(TunerCallback(tuner(5), "accuracy", length=RoundLength(steps=2)))


def test_validation_in_other_epochs_is_refused():
    with pytest.raises(InvalidArgumentError, match="check_val_every_n_epoch"):
        fit(TunerCallback(tuner(5), "val_loss"), check_val_every_n_epoch=2)
    with pytest.raises(InvalidArgumentError, match="validation"):
        fit(TunerCallback(tuner(5), "val_loss"), limit_val_batches=0)


def test_validation_by_the_clock_is_refused():
    """The kind: a query that the trainer does not make, and no one misses."""
    try:
        timed = trainer_of(val_check_interval="00:00:01:00", max_epochs=1)
    except (TypeError, ValueError):
        pytest.skip("came with Lightning 2.6")
    timed.callbacks.append(TunerCallback(tuner(5), "val_loss"))
    with pytest.raises(InvalidArgumentError, match="val_check_interval"):
        timed.fit(lightning_program.Digits(), *lightning_program.loaders())


class Worsening(lightning_program.Digits):
    """Its loss grows from query to query."""

    def validation_step(self, batch, index):
        self.losses.append(float(len(self.losses)))
        self.log("val_loss", self.losses[-1])


def test_patience_counts_queries():
    stopped, module = EarlyStopping("val_loss", patience=2), Worsening()
    callback = TunerCallback(tuner(30), "val_loss", guard=False)
    fit(callback, module, callbacks=[stopped, callback], max_epochs=30)
    queries = [one.round for one in callback.driver.tuner.observations]
    assert queries != [0, 1, 2]  # some epochs have none
    assert stopped.stopped_epoch == queries[-1]
    assert len(queries) == 3  # the best one and two that are worse


def test_a_checkpoint_is_judged_by_the_metric_of_its_own_weights(tmp_path):
    kept = ModelCheckpoint(tmp_path, monitor="val_loss", save_top_k=-1, filename="{epoch}")
    callback, module = TunerCallback(tuner(12), "val_loss"), lightning_program.Digits()
    fit(callback, module, callbacks=[callback, kept], max_epochs=12, enable_checkpointing=True)
    queries = [one.round for one in callback.driver.tuner.observations]
    assert {Path(path).stem for path in kept.best_k_models} == {f"epoch={k}" for k in queries}
    measured = sorted(module.losses[1:])  # after the sanity check
    assert sorted(map(float, kept.best_k_models.values())) == pytest.approx(measured)


def test_a_scheduler_that_reads_the_metric_in_each_epoch_is_refused():
    with pytest.raises(InvalidArgumentError, match="ReduceLROnPlateau"):
        fit(TunerCallback(tuner(5), "val_loss", rates="multipliers"), Plateau())


def test_an_entry_that_matches_no_group_is_named():
    space = bc.SearchSpace({"lr": bc.Real(1e-3, 1.0, log=True), "policy": bc.Choice(["a", "b"])})
    with pytest.raises(InvalidConfigError, match="policy"):
        fit(TunerCallback(bc.OnlineTuner(space, 5), "val_loss"))
    fit(TunerCallback(bc.OnlineTuner(space, 5), "val_loss", others=["policy"]))


def test_arguments_that_are_wrong():
    session = bc.Session.of(bc.TwinTuner(tuner(5).space, 5), lightning_program.Digits())
    with pytest.raises(InvalidArgumentError, match="without a session"):
        TunerCallback(session, "val_loss")
    with pytest.raises(InvalidArgumentError, match="metric"):
        TunerCallback(session.tuner, "val_loss", metric="accuracy")
    for wrong in ({"length": 5}, {"rates": "x"}, {"metric": "f1"}, {"guard": 1}, {"tuner": None}):
        given = {"tuner": tuner(5), **wrong}
        with pytest.raises(InvalidArgumentError):
            TunerCallback(given.pop("tuner"), "val_loss", **given)


def test_an_old_version_is_refused(monkeypatch):
    monkeypatch.setattr("botorch_costly.integrations.extras.version", lambda _: "2.0.1")
    with pytest.raises(MissingExtraError, match="pip install 'lightning"):
        TunerCallback(tuner(5), "val_loss")
