"""A real trainer of Lightning plays what a plain loop plays, also on two ranks and after a kill."""

import json
import subprocess
import sys

import pytest
import torch

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError, InvalidConfigError, MissingExtraError
from botorch_costly.integrations import RoundLength
from tests.integrations.digits import by_hand, tuner
from tests.integrations.launching import ROOT, launched

pytest.importorskip("lightning.pytorch", reason="needs the extra botorch_costly[lightning]")
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
    assert done["config"] == done["decisions"][-1]["config"]


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


def fit(callback, module=None, **options):
    trainer = lightning_program.Trainer(
        max_epochs=1,
        callbacks=[callback],
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **options,
    )
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


def test_an_entry_that_matches_no_group_is_named():
    space = bc.SearchSpace({"lr": bc.Real(1e-3, 1.0, log=True), "policy": bc.Choice(["a", "b"])})
    with pytest.raises(InvalidConfigError, match="policy"):
        fit(TunerCallback(bc.OnlineTuner(space, 5), "val_loss"))
    fit(TunerCallback(bc.OnlineTuner(space, 5), "val_loss", others=["policy"]))


def test_arguments_that_are_wrong():
    with pytest.raises(InvalidArgumentError, match="TwinTuner"):
        TunerCallback(bc.TwinTuner(tuner(5).space, 5), "val_loss")
    for wrong in ({"length": 5}, {"rates": "x"}, {"metric": "f1"}, {"guard": 1}, {"tuner": None}):
        given = {"tuner": tuner(5), **wrong}
        with pytest.raises(InvalidArgumentError):
            TunerCallback(given.pop("tuner"), "val_loss", **given)


def test_an_old_version_is_refused(monkeypatch):
    monkeypatch.setattr("botorch_costly.integrations.extras.version", lambda _: "2.0.1")
    with pytest.raises(MissingExtraError, match=r"botorch_costly\[lightning\]"):
        TunerCallback(tuner(5), "val_loss")
