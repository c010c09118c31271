"""Other callbacks of Lightning within a fit: they change the network, the optimizer, or stop the run."""

import copy
import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError

pytest.importorskip("lightning.pytorch", reason="needs the extra botorch_costly[lightning]")
from lightning.pytorch import Callback
from lightning.pytorch.callbacks import (
    BackboneFinetuning,
    EarlyStopping,
    ModelCheckpoint,
)

from botorch_costly.integrations.lightning import TunerCallback
from tests.integrations.lightning_fits import Digits, callback, trainer_of

pytestmark = pytest.mark.filterwarnings("ignore")  # Lightning's own, on small machines


class Break(Callback):
    """Breaks the network before the validation of some epochs."""

    def __init__(self, *epochs):
        self.epochs = epochs

    def on_validation_start(self, trainer, pl_module):
        if trainer.current_epoch in self.epochs and not trainer.sanity_checking:
            with torch.no_grad():
                pl_module.network[3].weight.fill_(math.nan)


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("guard", [True, False])
def test_a_run_whose_network_was_mended_is_not_stopped(order, guard):
    stopping, tuned = EarlyStopping("val_loss", patience=9), callback(guard=guard)
    trainer = trainer_of(*[stopping, tuned][::order], Break(2))
    trainer.fit(Digits())
    assert trainer.current_epoch == (4 if guard else 3)
    assert stopping.check_finite


def test_a_network_that_nothing_mends_stops_the_run():
    stopping, tuned = EarlyStopping("val_loss", patience=9), callback()
    trainer = trainer_of(stopping, tuned, Break(0))
    trainer.fit(Digits())
    assert trainer.current_epoch == 1


class Others(Digits):
    """A module that logs two metrics, and whose schedule may read one of them."""

    def __init__(self, reads=None):
        super().__init__()
        self.reads = reads

    def training_step(self, batch, index):
        loss = super().training_step(batch, index)
        self.log("train_loss", loss, on_epoch=True)
        return loss

    def validation_step(self, batch, index):
        super().validation_step(batch, index)
        self.log("val_other", self.losses[-1])

    def configure_optimizers(self):
        optimizer = super().configure_optimizers()
        if self.reads is None:
            return optimizer
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": plateau, "monitor": self.reads},
        }


@pytest.mark.parametrize("name", ["val_other", "train_loss"])
@pytest.mark.parametrize(
    "reader",
    [EarlyStopping, lambda name: ModelCheckpoint(".", monitor=name), None],
    ids=["stopping", "checkpoint", "schedule"],
)
def test_what_is_read_each_epoch_and_measured_after_queries_is_named_once(name, reader, said):
    """The kind: a metric that others take for the last epoch's, and is that of the last query."""
    others = [] if reader is None else [reader(name)]
    trainer = trainer_of(callback(rates="multipliers"), *others, enable_checkpointing=True)
    trainer.fit(Others(name if reader is None else None))
    assert ["'val_other', which is measured" in one for one in said()] == (name == "val_other") * [
        True
    ]


class Exchange(Callback):
    def on_train_epoch_start(self, trainer, pl_module):
        if trainer.current_epoch == 1:
            trainer.optimizers = [pl_module.configure_optimizers()]


def test_an_optimizer_that_is_exchanged_is_named():
    """The kind: what a run was started with, written to when something else has its place."""
    tuned = callback()
    with pytest.raises(InvalidArgumentError, match="the one that the fit started with"):
        trainer_of(tuned, Exchange()).fit(Digits())
    assert len(tuned.driver.tuner.decisions) == 1


class Broken(Callback):
    """Breaks the network within an epoch, so that averages of it are broken as well."""

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        if trainer.global_step == 15:
            with torch.no_grad():
                pl_module.network[3].weight.fill_(math.nan)


class Average(Callback):
    """A copy of the module that follows it and is validated in its place, as users write one."""

    def setup(self, trainer, pl_module, stage):
        self.average = copy.deepcopy(pl_module)

    def on_train_batch_end(self, trainer, pl_module, *arguments):
        with torch.no_grad():
            pairs = zip(self.average.parameters(), pl_module.parameters(), strict=True)
            [one.lerp_(other, 0.5) for one, other in pairs]

    def swap(self, trainer, pl_module):
        for one, other in zip(self.average.parameters(), pl_module.parameters(), strict=True):
            one.data, other.data = other.data, one.data

    on_validation_epoch_start = on_validation_epoch_end = swap


@pytest.mark.parametrize("kind", [Average, "EMAWeightAveraging"])
def test_an_average_that_a_callback_holds_goes_back_with_the_network(kind):
    if isinstance(kind, str):
        import lightning.pytorch.callbacks as known

        kind = getattr(known, kind, None) or pytest.skip("came with Lightning 2.6")
    tuned, module = callback(6), Digits()
    trainer_of(kind(), tuned, Broken(), max_epochs=6).fit(module)
    assert tuned.driver.restores == 1  # and not in every round from there
    assert all(weight.isfinite().all() for weight in module.parameters())


@pytest.mark.parametrize("rates", ["values", "multipliers"])
def test_a_backbone_is_unfrozen_and_goes_back_with_the_rest(rates, said):
    tuned, module = callback(6, rates=rates), Digits()
    trainer = trainer_of(
        BackboneFinetuning(2, should_align=False), tuned, Break(2, 4), max_epochs=6
    )
    trainer.fit(module)
    assert tuned.driver.restores == 2
    assert all(weight.isfinite().all() for weight in module.parameters())
    (optimizer,) = trainer.optimizers
    assert len(optimizer.param_groups) == 2
    assert len(optimizer.state) == 4  # all weights of both layers
    head, backbone = (group["lr"] for group in optimizer.param_groups)
    assert head == (tuned.config["lr"] if rates == "values" else 0.1)
    assert backbone != head
    assert sum("A new parameter group" in line for line in said()) == (rates == "values")


def test_a_schedule_ends_where_it_would_have():
    class Scheduled(Digits):
        def configure_optimizers(self):
            optimizer = super().configure_optimizers()
            return [optimizer], [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8)]

    tuned, module = callback(8, rates="multipliers"), Scheduled()
    trainer = trainer_of(tuned, Break(2, 3, 5), max_epochs=8)
    trainer.fit(module)
    assert tuned.driver.restores == 3
    assert trainer.optimizers[0].param_groups[0]["lr"] == pytest.approx(0.0, abs=1e-6)


def test_a_network_compiled_within_keeps_its_names():
    space = bc.SearchSpace({"network.2.dropout": bc.Real(0.0, 0.6)})
    module = Digits()
    dropout = module.network[2]
    module.network = torch.compile(module.network, backend="eager")
    tuned = TunerCallback(bc.OnlineTuner(space, 4), "val_loss")
    module.network.forward = copy.copy(
        module.network._orig_mod.forward
    )  # which is not compiled here
    trainer_of(tuned, max_epochs=4).fit(module)
    assert dropout.p == tuned.config["network.2.dropout"]
