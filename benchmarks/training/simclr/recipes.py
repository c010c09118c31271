"""What is trained, on what, for how long: the setting of the CPU, that of a GPU, and a tiny one."""

import math
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.suite.data import cifar10, cifar10_test, whole_cifar10
from benchmarks.training.picture_run import PictureRecipe
from benchmarks.training.simclr.networks import ENCODERS
from benchmarks.training.simclr.readout import READOUTS
from botorch_costly.errors import check, check_count, check_positive
from botorch_costly.parameters import BASES


@dataclass(frozen=True, kw_only=True)
class Recipe(PictureRecipe):
    """How an encoder is trained by contrast; biases and batch norm have no weight decay.

    Raises:
        InvalidArgumentError: If an argument is outside its range.
    """

    encoder: str  # one of ``ENCODERS``
    batch: int = 256  # pictures of a batch, over all processes; each is seen in two views
    side: int = 32  # of the pictures that are trained on: 32 by a power of two
    learning_rate: float = 1.0  # of a batch of 256 after the warm-up; in proportion to the batch
    warm_up: float = 0.1  # share of the run in which it rises from 0; half a cosine down follows
    weight_decay: float = 1e-4
    temperature: float = 0.5  # of the contrastive loss
    projection: int = 64  # numbers that the loss compares
    readout: str = "neighbours"  # one of ``READOUTS``: what a query measures
    channels_last: bool = False  # whether the channels of a pixel lie side by side in memory
    compiled: bool = False  # whether views and network are compiled, which needs a C++ compiler

    def __post_init__(self) -> None:
        super().__post_init__()
        check(self.batch >= 2, "batch", "at least two pictures: one has no contrast", self.batch)
        check_count("projection", self.projection, minimum=1)
        check_positive("learning_rate", self.learning_rate)
        check_positive("temperature", self.temperature)
        check(0 <= self.warm_up < 1, "warm_up", "a share in [0, 1)", self.warm_up)
        check(self.side in (8, 16, 32), "side", "8, 16 or 32 pixels", self.side)
        check(self.encoder in ENCODERS, "encoder", f"one of {ENCODERS}", self.encoder)
        check(self.readout in READOUTS, "readout", f"one of {tuple(READOUTS)}", self.readout)

    def rate(self, step: int) -> float:
        """Return the learning rate of a step, counted from 0."""
        total = self.horizon * self.steps
        peak, rising = self.learning_rate * self.batch / 256, self.warm_up * total
        if step < rising:
            return peak * (step + 1) / math.ceil(rising)
        return peak * BASES["cosine"]((step - rising) / (total - rising))


# 4,000 pictures of 16 x 16, 3,000 for validation and 3,000 for the test: the first 10,000 of CIFAR-10.
CPU = Recipe(
    name="small",
    data=cifar10,
    encoder="small",
    train=400,
    validation=300,
    epochs=80,
    steps=24,  # of shorter rounds a reading says less: what a round changes takes about 30 steps to show
    side=16,
    learning_rate=8.0,  # in a run of 1,200 steps
    most_test=3_000,
)
# The recipe of Chen et al. for CIFAR-10, ResNet-18 in place of ResNet-50, and fewer epochs.
PUBLISHED = Recipe(
    name="resnet18",
    data=whole_cifar10,
    test=cifar10_test,
    encoder="resnet18",
    train=4_500,
    validation=500,
    epochs=60,
    steps=43,
    batch=512,
    projection=128,
    device="cuda",
    precision="bf16",
    channels_last=True,
)


def tiny(recipe: Recipe) -> Recipe:
    """Return a recipe with few pictures and epochs, on the CPU: a smoke run of its code."""
    sizes: dict[str, Any] = {"train": 8, "validation": 8, "batch": 16, "epochs": 4, "steps": 2}
    name = f"{recipe.name}, tiny"
    return replace(recipe, name=name, side=8, most_test=80, device="cpu", **sizes)
