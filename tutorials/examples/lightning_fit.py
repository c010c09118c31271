"""Tune a fit of Lightning's trainer with a callback.

A small classifier is fitted twice, with as many steps, from a learning rate that is too small: without a
tuner, and with twins, which go back from the settings that were worse.
"""

import torch
from lightning.pytorch import LightningModule, Trainer
from torch.utils.data import DataLoader, TensorDataset

import botorch_costly as bc
from botorch_costly.integrations import RoundLength
from botorch_costly.integrations.lightning import TunerCallback

ROUNDS, STEPS = 150, 5
QUIET = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False}


class Classifier(LightningModule):
    def __init__(self):
        super().__init__()
        self.network = torch.nn.Sequential(
            torch.nn.Linear(4, 64), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(64, 2)
        )

    def training_step(self, batch, index):
        return torch.nn.functional.cross_entropy(self.network(batch[0]), batch[1])

    def validation_step(self, batch, index):
        self.log("val_loss", self.training_step(batch, index))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-3)


def fit(*callbacks):
    """Return the validation loss at the end of a fit."""
    torch.manual_seed(0)
    inputs = torch.randn(3000, 4)
    labels = (inputs.sin().sum(1) > 0).long()
    train = DataLoader(TensorDataset(inputs[:2000], labels[:2000]), batch_size=50, shuffle=True)
    val = DataLoader(TensorDataset(inputs[2000:], labels[2000:]), batch_size=500)
    options = {"max_steps": ROUNDS * STEPS, "accelerator": "cpu", "enable_checkpointing": False}
    trainer = Trainer(callbacks=[*callbacks], **options, **QUIET)
    trainer.fit(model := Classifier(), train, val)
    return trainer.validate(model, val, verbose=False)[0]["val_loss"]


def main():
    print(f"validation loss without a tuner: {fit():.3f}")
    space = bc.SearchSpace({"lr": bc.Scheduled(1e-5, 1.0), "dropout": bc.Real(0.0, 0.6)})
    tuner = bc.TwinTuner(space, ROUNDS, start={"lr": 1e-3, "dropout": 0.1})
    loss = fit(TunerCallback(tuner, "val_loss", length=RoundLength(steps=STEPS)))
    print(f"with one, and as many steps:     {loss:.3f}")
    print(tuner.diagnose())


if __name__ == "__main__":
    main()
