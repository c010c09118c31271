"""What is trained, on what, for how long: two settings of the CPU, that of the paper, a tiny one."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.suite.data import cifar10, cifar10_test, whole_cifar10
from benchmarks.training.picture_run import PictureRecipe
from benchmarks.training.stn import AUGMENTATIONS, SMALL, VGG16, WIDER, Bounds, Convolution
from benchmarks.training.stn.networks import dropout_bounds
from botorch_costly.errors import check_nonnegative, check_positive

TRAIN, TUNE = "train only", "train and tune"
# Training batches to one tuning batch; the arms of a bandit are the first two.
PACES: dict[str, int | None] = {TRAIN: None, TUNE: 1, "2 to 1": 2, "5 to 1": 5, "10 to 1": 10}


@dataclass(frozen=True, kw_only=True)
class Recipe(PictureRecipe):
    """How a self-tuning network is trained; validation pictures are also those that it tunes by.

    Raises:
        InvalidArgumentError: If an argument is outside its range.
    """

    plan: Sequence[Convolution]  # convolutions of the network
    batch: int = 100  # pictures of a training batch and of a tuning batch
    learning_rate: float = 0.1  # of the weights at first
    decays: tuple[float, ...] = (
        60 / 150,
        100 / 150,
        120 / 150,
    )  # shares of the run: it falls tenfold
    tuning_rate: float = 3e-3  # learning rate of the hyperparameters and of their scales, for Adam
    tau: float = 1e-3  # weight of the entropy of the perturbation
    scale: float = 0.5  # of the perturbation at first
    step_cost: float = 1.0  # of a tuning step, in training steps, as net gains count it

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("learning_rate", "tuning_rate", "scale", "step_cost"):
            check_positive(name, getattr(self, name))
        check_nonnegative("tau", self.tau)

    @property
    def hyperparameters(self) -> dict[str, Bounds]:
        """What is tuned: the dropout of each layer, and the augmentation."""
        return {**dropout_bounds(self.plan), **AUGMENTATIONS}

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
# Eight times as many weights and four times as many pictures, in as many steps of as many pictures.
MIDDLE = replace(
    CPU,
    name="middle",
    data=whole_cifar10,
    test=cifar10_test,
    plan=WIDER,
    train=2_000,
    validation=200,
    epochs=10,
    steps=20,
    weight_decay=5e-4,
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
