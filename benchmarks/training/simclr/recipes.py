"""What is trained, on what, for how long: the setting of the CPU, that of a GPU, and a tiny one."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.suite.data import Part, cifar10, cifar10_test, whole_cifar10
from benchmarks.training.parts import CLASSES
from benchmarks.training.picture_run import PRECISIONS
from benchmarks.training.simclr.networks import ENCODERS
from benchmarks.training.simclr.readout import READOUTS
from botorch_costly.errors import check, check_count, check_nonnegative, check_positive


@dataclass(frozen=True)
class Recipe:
    """How an encoder is trained by contrast, round by round.

    Args:
        name: What reports call it.
        data: Pictures for training and validation, ``n x 3 x 32 x 32`` in [0, 1].
        test: Pictures for the test; what is left of ``data`` if omitted.
        encoder: One of ``ENCODERS``.
        train: Pictures of a class to train on.
        validation: Pictures of a class to query at.
        epochs: Passes through the training pictures.
        steps: Batches of a round; a decision is made for each round.
        batch: Pictures of a batch, over all processes; each is seen in two views.
        side: Of the pictures that are trained on: 32 by a power of two.
        learning_rate: Of a batch of 256, after the warm-up; it grows in proportion to the batch.
        warm_up: Share of the run in which it rises from 0; it then falls to 0 by half a cosine.
        momentum: Of LARS.
        weight_decay: Of the weights, not of biases and batch norm.
        temperature: Of the contrastive loss.
        projection: Numbers that the loss compares.
        readout: One of ``READOUTS``: what a query measures.
        device: Where it is trained.
        precision: ``"fp32"``, or ``"bf16"`` for convolutions and products in half the bits.
        channels_last: Whether the channels of a pixel lie side by side in memory.
        compiled: Whether views and network are compiled first; it needs a compiler of C++.
        most_test: Pictures of the test, at most.

    Raises:
        InvalidArgumentError: If an argument is outside its range.
    """

    name: str
    data: Callable[[], Part]
    encoder: str
    train: int
    validation: int
    epochs: int
    steps: int
    test: Callable[[], Part] | None = None
    batch: int = 256
    side: int = 32
    learning_rate: float = 1.0
    warm_up: float = 0.1
    momentum: float = 0.9
    weight_decay: float = 1e-4
    temperature: float = 0.5
    projection: int = 64
    readout: str = "neighbours"
    device: str = "cpu"
    precision: str = "fp32"
    channels_last: bool = False
    compiled: bool = False
    most_test: int = 10_000

    def __post_init__(self) -> None:
        for name in ("train", "validation", "epochs", "steps", "most_test", "projection"):
            check_count(name, getattr(self, name), minimum=1)
        check(self.batch >= 2, "batch", "at least two pictures: one has no contrast", self.batch)
        for name in ("learning_rate", "temperature"):
            check_positive(name, getattr(self, name))
        for name in ("momentum", "weight_decay"):
            check_nonnegative(name, getattr(self, name))
        check(0 <= self.warm_up < 1, "warm_up", "a share in [0, 1)", self.warm_up)
        check(self.side in (8, 16, 32), "side", "8, 16 or 32 pixels", self.side)
        for name, known in (
            ("precision", PRECISIONS),
            ("encoder", ENCODERS),
            ("readout", tuple(READOUTS)),
        ):
            given = getattr(self, name)
            check(given in known, name, f"one of {known}", given)

    @property
    def horizon(self) -> int:
        """Rounds of a run: whole batches alone, and the last round is a whole one."""
        return math.ceil(self.epochs * (CLASSES * self.train // self.batch) / self.steps)

    def rate(self, step: int) -> float:
        """Return the learning rate of a step, counted from 0."""
        total = self.horizon * self.steps
        peak, rising = self.learning_rate * self.batch / 256, self.warm_up * total
        if step < rising:
            return peak * (step + 1) / math.ceil(rising)
        share = (step - rising) / (total - rising)
        return peak * (1 + math.cos(math.pi * share)) / 2


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
