"""A run of Lightning's trainer on digits, on one rank or more; it may be killed and resumed."""

import json
import os
import sys
import time
import warnings
from pathlib import Path

import torch
from lightning.pytorch import Callback, LightningModule, Trainer
from lightning.pytorch.callbacks import ModelCheckpoint
from torch.utils.data import DataLoader

from botorch_costly.integrations import RoundLength
from botorch_costly.integrations.lightning import TunerCallback
from tests.integrations.digits import BATCH, EpochSampler, data, network, tuner

warnings.filterwarnings("ignore")


class Digits(LightningModule):
    def __init__(self):
        super().__init__()
        self.network, self.losses = network(), []

    def training_step(self, batch, index):
        return torch.nn.functional.cross_entropy(self.network(batch[0]), batch[1])

    def validation_step(self, batch, index):
        loss = torch.nn.functional.cross_entropy(self.network(batch[0]), batch[1])
        self.log("val_loss", loss)
        self.losses.append(loss.item())

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)


class Kill(Callback):
    """Ends the process at a step, as a machine does that fails."""

    def __init__(self, step):
        self.step = step

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if trainer.global_step == self.step:
            os.kill(os.getpid(), 9)


def loaders(ranks=1):
    train = data("train")
    sampler = EpochSampler(len(train)) if ranks == 1 else None
    # Loaders draw a seed for their workers, from the global generator if they have none of their own.
    own = {"generator": torch.Generator().manual_seed(0)}
    return (
        DataLoader(train, batch_size=BATCH // ranks, sampler=sampler, **own),
        DataLoader(data("val"), batch_size=300, **own),
    )


def run(folder, epochs, length, horizon, *, kill=None, checkpoints=False, devices=1, **options):
    """Fit; return what happened, in plain values."""
    module = Digits()
    torch.manual_seed(1)
    callback = TunerCallback(tuner(horizon), "val_loss", length=length, timeout=30, **options)
    callbacks = [callback] + ([Kill(kill)] if kill else [])
    if checkpoints:
        every = {"every_n_epochs": 1, "save_on_train_epoch_end": True}
        callbacks.append(
            ModelCheckpoint(folder, filename="run", enable_version_counter=False, **every)
        )
    trainer = Trainer(
        max_epochs=epochs,
        callbacks=callbacks,
        accelerator="cpu",
        devices=devices,
        strategy="ddp" if devices > 1 else "auto",
        logger=False,
        enable_checkpointing=checkpoints,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    saved = folder / "run.ckpt"
    began = time.perf_counter()
    resumed = saved if checkpoints and saved.exists() else None
    trainer.fit(
        module, *loaders(devices), ckpt_path=resumed, weights_only=True if resumed else None
    )
    weights = torch.cat([p.detach().flatten() for p in module.parameters()])
    return {
        "decisions": [one.to_dict() for one in callback.driver.tuner.decisions],
        "queries": len(getattr(callback.driver.tuner, "observations", ())),
        "losses": module.losses,
        "weights": weights.tolist(),
        "restores": callback.driver.restores,
        "config": dict(callback.config),
        "share": callback.driver.seconds / (time.perf_counter() - began),
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder, case = Path(sys.argv[1]), sys.argv[2]
    rank = int(os.environ.get("RANK", 0))
    if case == "ranks":
        said = run(folder, 6, RoundLength(steps=5), 12, devices=2)
    else:
        kill = int(sys.argv[3]) if len(sys.argv) > 3 else None
        said = run(folder, 8, RoundLength(steps=7), 11, kill=kill, checkpoints=True)
    (folder / f"{rank}.json").write_text(json.dumps(said))
