"""A module, a tuner and a trainer of Lightning, as tests of fits use them."""

import torch
from lightning.pytorch import Trainer
from torch.utils.data import DataLoader

import botorch_costly as bc
from botorch_costly.integrations.lightning import TunerCallback
from tests.integrations import lightning_program
from tests.integrations.digits import DEFAULT, SPACE, data


class Digits(lightning_program.Digits):
    """A module with its own data, which others may change the size of batches and the rate of."""

    def __init__(self):
        super().__init__()
        self.lr, self.batch_size = 0.1, 60
        self.backbone = self.network[0]

    def train_dataloader(self):
        return DataLoader(data("train"), batch_size=self.batch_size)

    def val_dataloader(self):
        return DataLoader(data("val"), batch_size=300)

    def test_dataloader(self):
        return self.val_dataloader()

    def test_step(self, batch, index):
        self.log("test_loss", torch.nn.functional.cross_entropy(self.network(batch[0]), batch[1]))

    def configure_optimizers(self):
        trained = [weight for weight in self.parameters() if weight.requires_grad]
        return torch.optim.SGD(trained, lr=self.lr, momentum=0.9)


def tuner(horizon=4):
    options = {"query": bc.AlwaysQuery(), "hold": bc.Hold(share=0.0), "design": bc.Design(rounds=1)}
    return bc.OnlineTuner(SPACE, horizon, start=DEFAULT, **options)


def callback(horizon=4, **options):
    return TunerCallback(tuner(horizon), "val_loss", **options)


def trainer_of(*callbacks, **options):
    quiet = {"enable_progress_bar": False, "enable_model_summary": False, "logger": False}
    plain = {"accelerator": "cpu", "enable_checkpointing": False, "max_epochs": 4}
    return Trainer(callbacks=list(callbacks), **{**quiet, **plain, **options})


def rewards(tuned):
    return [one.reward for one in tuned.driver.tuner.observations]
