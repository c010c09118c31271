"""A fit of Lightning's trainer with twins, on one rank or two; it may end early and be resumed."""

import json
import os
import sys
import warnings
from pathlib import Path

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.utils.data import DataLoader

from botorch_costly.integrations import RoundLength
from botorch_costly.integrations.lightning import TunerCallback
from tests.integrations import twins
from tests.integrations.twins import BATCH, HORIZON, STEPS

QUIET = {"enable_progress_bar": False, "enable_model_summary": False, "logger": False}
DEVICE = {"accelerator": "cpu", "enable_checkpointing": False, "max_epochs": -1}


class Module(LightningModule):
    def __init__(self):
        super().__init__()
        self.network = twins.network()

    def training_step(self, batch, index):
        return twins.loss(self.network, *batch)

    def validation_step(self, batch, index):
        self.log("val_loss", twins.loss(self.network, *batch))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


class Scheduled(Module):
    def configure_optimizers(self):
        optimizer = super().configure_optimizers()
        scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, HORIZON * STEPS)
        return [optimizer], [{"scheduler": scheduler, "interval": "step"}]


class Watch(Callback):
    """Notes states and batches, and may stop the fit at a step in one of several ways."""

    def __init__(self, stop=None, how=None):
        self.journal, self.stop, self.how = twins.Journal(), stop, how

    def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
        schedulers = [config.scheduler for config in trainer.lr_scheduler_configs]
        self.journal.begin(pl_module, trainer.optimizers[0], schedulers, batch[0])

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        schedulers = [config.scheduler for config in trainer.lr_scheduler_configs]
        self.journal.end(pl_module, trainer.optimizers[0], schedulers)
        if trainer.global_step == self.stop:
            if self.how is None:
                trainer.should_stop = True
            else:
                raise self.how


def loaders(ranks=1, **options):
    train = DataLoader(twins.data(), BATCH // ranks, shuffle=True, **options)
    return train, DataLoader(twins.data(), 120)


def fit(
    tuner, *callbacks, module=None, data=None, steps=HORIZON * STEPS, checkpoint=None, **options
):
    """Fit with twins; return the callback, what was seen, and the module."""
    given = {name: options.pop(name) for name in ("rates", "changed", "parts") if name in options}
    torch.manual_seed(1)
    module = Module() if module is None else module
    length = options.pop("length", RoundLength(steps=STEPS))
    callback = TunerCallback(tuner, "val_loss", length=length, timeout=30, **given)
    watch = next((one for one in callbacks if isinstance(one, Watch)), None)
    others = list(callbacks) if watch else [*callbacks, watch := Watch()]
    settings = {**QUIET, **DEVICE, "max_steps": steps, **options}
    trainer = Trainer(callbacks=[callback, *others], **settings)
    trainer.fit(module, *(loaders() if data is None else data), ckpt_path=checkpoint)
    return callback, watch.journal, module


def weights_of(module):
    return [weight.flatten().tolist() for weight in module.parameters()]


def saving(folder, every):
    return ModelCheckpoint(folder, filename="{step}", save_top_k=-1, every_n_train_steps=every)


def on_two_ranks(folder, checkpoint=None, *, steps=60):
    every = saving(folder / "checkpoints", 10)
    two = {"devices": 2, "strategy": "ddp", "enable_checkpointing": True, "steps": steps}
    callback, journal, module = fit(
        twins.tuner(20), every, data=loaders(2), checkpoint=checkpoint, **two
    )
    rank = int(os.environ.get("RANK", 0))
    return {
        "decisions": [one.to_dict() for one in callback.driver.tuner.decisions],
        "restores": callback.driver.restores,
        "batches": journal.batches,
        "weights": weights_of(module),
        "generator": torch.get_rng_state().tolist() if rank else None,
        "config": dict(callback.config),
    }


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    folder, case = Path(sys.argv[1]), sys.argv[2]
    saved = folder / "checkpoints" / "step=10.ckpt"
    said = {"whole": on_two_ranks(folder)}
    said["resumed"] = on_two_ranks(folder / "again", saved)
    said["early"] = on_two_ranks(folder / "early", steps=29)
    (folder / f"{os.environ.get('RANK', 0)}.json").write_text(json.dumps(said))
