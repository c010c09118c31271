"""What is trained, on what, for how long: the setting of the CPU, that of the paper, and a tiny one."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.suite.data import Part, cifar10, cifar10_test, whole_cifar10
from benchmarks.training.parts import CLASSES
from benchmarks.training.picture_run import PRECISIONS
from benchmarks.training.stn import AUGMENTATIONS, SMALL, VGG16, Bounds, Convolution
from benchmarks.training.stn.networks import dropout_bounds
from botorch_costly.errors import check, check_count, check_nonnegative, check_positive

TRAIN, TUNE = "train only", "train and tune"
# Training batches to one tuning batch; the arms of a bandit are the first two.
PACES: dict[str, int | None] = {TRAIN: None, TUNE: 1, "2 to 1": 2, "5 to 1": 5, "10 to 1": 10}


@dataclass(frozen=True)
class Recipe:
    """How a self-tuning network is trained, round by round.

    Args:
        name: What reports call it.
        data: Pictures for training and validation, ``n x 3 x 32 x 32`` in [0, 1].
        test: Pictures for the test; what is left of ``data`` if omitted.
        plan: The convolutions of the network.
        train: Pictures of a class to train on.
        validation: Pictures of a class to query at, and to tune by.
        epochs: Passes through the training pictures.
        batch: Pictures of a training batch and of a tuning batch.
        steps: Training batches of a round; a decision is made for each round.
        learning_rate: Of the weights at first.
        decays: Shares of the run after which it is a tenth of what it was.
        momentum: Of the weights.
        weight_decay: Of the weights.
        tuning_rate: Learning rate of the hyperparameters and of their scales, for Adam.
        tau: Weight of the entropy of the perturbation.
        scale: Of the perturbation at first.
        device: Where it is trained.
        precision: ``"fp32"``, or ``"bf16"`` for convolutions and products in half the bits.
        step_cost: Of a tuning step, in training steps, as net gains count it.
        most_test: Pictures of the test, at most.

    Raises:
        InvalidArgumentError: If an argument is outside its range.
    """

    name: str
    data: Callable[[], Part]
    plan: Sequence[Convolution]
    train: int
    validation: int
    epochs: int
    steps: int
    test: Callable[[], Part] | None = None
    batch: int = 100
    learning_rate: float = 0.1
    decays: tuple[float, ...] = (60 / 150, 100 / 150, 120 / 150)
    momentum: float = 0.9
    weight_decay: float = 0.0
    tuning_rate: float = 3e-3
    tau: float = 1e-3
    scale: float = 0.5
    device: str = "cpu"
    precision: str = "fp32"
    step_cost: float = 1.0
    most_test: int = 10_000

    def __post_init__(self) -> None:
        for name in ("train", "validation", "epochs", "steps", "batch", "most_test"):
            check_count(name, getattr(self, name), minimum=1)
        for name in ("learning_rate", "tuning_rate", "scale", "step_cost"):
            check_positive(name, getattr(self, name))
        for name in ("momentum", "weight_decay", "tau"):
            check_nonnegative(name, getattr(self, name))
        known = f"one of {PRECISIONS}"
        check(self.precision in PRECISIONS, "precision", known, self.precision)

    @property
    def hyperparameters(self) -> dict[str, Bounds]:
        """What is tuned: the dropout of each layer, and the augmentation."""
        return {**dropout_bounds(self.plan), **AUGMENTATIONS}

    @property
    def horizon(self) -> int:
        """Rounds of a run: whole batches alone, and the last round is a whole one."""
        return math.ceil(self.epochs * (CLASSES * self.train // self.batch) / self.steps)

    def rate(self, round: int) -> float:
        """Return the learning rate of a round."""
        passed = sum(round >= share * self.horizon for share in self.decays)
        return self.learning_rate * 0.1**passed


# 5,000 and 1,000 pictures; every network learns from the first 10,000 of CIFAR-10.
CPU = Recipe(
    name="small",
    data=cifar10,
    plan=SMALL,
    train=500,
    validation=100,
    epochs=40,
    steps=10,
    tuning_rate=3e-2,  # ten times that of MacKay et al., in a run of fewer steps
    most_test=2_000,
)
# Wang et al. (2021), appendix E.2; what is not said there is as usual for VGG16 on CIFAR-10.
PUBLISHED = Recipe(
    name="published",
    data=whole_cifar10,
    test=cifar10_test,
    plan=VGG16,
    train=4_000,
    validation=1_000,
    epochs=150,
    steps=25,
    batch=128,
    weight_decay=5e-4,
    device="cuda",
    precision="bf16",
)


def tiny(recipe: Recipe) -> Recipe:
    """Return a recipe with few channels, pictures and epochs, on the CPU: a smoke run of its code."""
    plan = tuple(one._replace(channels=4) for one in recipe.plan)
    sizes: dict[str, Any] = {"train": 8, "validation": 8, "batch": 16, "epochs": 2, "steps": 2}
    name = f"{recipe.name}, tiny"
    return replace(recipe, name=name, plan=plan, most_test=80, device="cpu", **sizes)
