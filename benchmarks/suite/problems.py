"""The problems of the suite: small enough for a minute, real enough to be missed.

Defaults are chosen on one half of them, ``CHOICE``, and confirmed on the other. Problems that share a
data set draw the same parts of it for the same seed, so choose and confirm on different seeds.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F  # noqa: N812

from benchmarks.suite import data
from benchmarks.suite.augmentation import AUGMENTATIONS, Chances, Doses, Strengths
from benchmarks.suite.networks import initialized, picture_network, table_network
from benchmarks.suite.protocol import tuned
from benchmarks.suite.training import NetworkProblem
from botorch_costly import Choice, Real, SearchSpace

_small = partial(picture_network, channels=1, side=8, width=16, blocks=2)
_of_digits = partial(NetworkProblem, data=data.digits, network=_small, train=20, validation=40)
# Each augmentation hits half of the pictures at first.
_augmented: dict[str, Any] = {
    "space": SearchSpace({name: Real(0.0, 1.0) for name in AUGMENTATIONS}),
    "default": dict.fromkeys(AUGMENTATIONS, 0.5),
}


def digits_augmentation() -> NetworkProblem:
    """Eight probabilities, harmful ones among them. Which augmentations help?

    A small convolutional network learns scikit-learn's 8 x 8 digits from 200 pictures. Mean final
    test accuracy in per cent, five seeds (100 to 104): all at 0.5 61, uniformly random every round
    57, all off 95, rotation, shift and noise at 0.5 with the others off 97.
    """
    return _of_digits(name="digits_augmentation", **_augmented, alter=Chances())


def digits_strengths() -> NetworkProblem:
    """Four strengths around a decent default, which is hard to beat."""
    return _of_digits(
        name="digits_strengths",
        **tuned(
            rotation=(Real(0.0, 60.0), 15.0),
            shift=(Real(0.0, 3.0), 0.75),
            noise=(Real(0.0, 0.8), 0.2),
            dropout=(Real(0.0, 0.8), 0.2),
        ),
        alter=Doses(),
    )


def digits_optimization() -> NetworkProblem:
    """Learning rate, momentum, weight decay and dropout, over ranges in which a run can diverge."""
    return _of_digits(
        name="digits_optimization",
        **tuned(
            learning_rate=(Real(1e-3, 3.0, log=True), 0.01),
            momentum=(Real(0.0, 0.98), 0.5),
            weight_decay=(Real(1e-6, 1e-1, log=True), 1e-4),
            dropout=(Real(0.0, 0.8), 0.5),
        ),
        settings={"optimizer": "sgd"},
    )


def digits_arms() -> NetworkProblem:
    """Six augmentation policies, of which each round plays one."""
    return _of_digits(
        name="digits_arms",
        space=SearchSpace({"policy": Choice(list(POLICIES))}),
        default={"policy": "flips"},
        alter=_alter_by_policy,
    )


POLICIES: dict[str, tuple[str, ...]] = {
    "none": (),
    "geometry": ("rotation", "shift"),
    "grain": ("noise", "cutout"),
    "flips": ("horizontal_flip", "vertical_flip"),
    "inversion": ("inversion", "transpose"),
    "everything": AUGMENTATIONS,
}


def _alter_by_policy(pictures: Tensor, settings: Any, generator: Generator) -> Tensor:
    return Chances()(pictures, dict.fromkeys(POLICIES[settings["policy"]], 0.5), generator)


def mnist_augmentation() -> NetworkProblem:
    """Eight probabilities on 2,000 pictures of MNIST."""
    return NetworkProblem(
        name="mnist_augmentation",
        **_augmented,
        data=data.mnist,
        network=partial(picture_network, channels=1, side=28, width=8, blocks=2),
        train=200,
        validation=50,
        alter=Chances(Strengths(rotation=30.0, shift=4.0, noise=0.3, cutout=10.0)),
    )


def cifar_augmentation() -> NetworkProblem:
    """Eight probabilities on 4,000 pictures of CIFAR-10."""
    return NetworkProblem(
        name="cifar_augmentation",
        **_augmented,
        data=data.cifar10,
        network=partial(picture_network, channels=3, side=32, width=8, blocks=3),
        train=400,
        validation=50,
        alter=Chances(Strengths(rotation=20.0, shift=4.0, noise=0.1, cutout=10.0)),
        steps=4,
        batch=64,
    )


def breast_cancer() -> NetworkProblem:
    """Learning rate, weight decay, dropout and label smoothing on 569 rows."""
    return _table("breast_cancer", data.breast_cancer, columns=30)


def pima() -> NetworkProblem:
    """The settings of ``breast_cancer`` on 768 rows of the Pima table, where little can be learnt."""
    return _table("pima", data.pima, columns=8)


def _table(name: str, rows: Callable[[], data.Part], columns: int) -> NetworkProblem:
    return NetworkProblem(
        name=name,
        **tuned(
            learning_rate=(Real(1e-4, 0.3, log=True), 1e-3),
            weight_decay=(Real(1e-5, 10.0, log=True), 1e-2),
            dropout=(Real(0.0, 0.8), 0.5),
            label_smoothing=(Real(0.0, 0.5), 0.0),
        ),
        data=rows,
        network=partial(table_network, columns=columns),
        train=0.3,
        validation=0.3,
    )


def fine_tuning() -> NetworkProblem:
    """A network that knows the digits 0 to 4 learns 5 to 9 from 50 pictures.

    Tuned are its learning rate, the share of it that the old layers get, weight decay and dropout.
    """
    return NetworkProblem(
        name="fine_tuning",
        **tuned(
            learning_rate=(Real(1e-4, 0.1, log=True), 1e-3),
            body_share=(Real(1e-3, 1.0, log=True), 1.0),
            weight_decay=(Real(1e-5, 1.0, log=True), 1e-2),
            dropout=(Real(0.0, 0.8), 0.0),
        ),
        data=lambda: data.of_classes(data.digits(), range(5, 10)),
        network=_pretrained,
        train=10,
        validation=60,
        batch=25,
        steps=4,
    )


def _pretrained(generator: Generator) -> nn.Sequential:
    """Train on the digits 0 to 4, then forget the head."""
    known = data.of_classes(data.digits(), range(5))
    network = _small(generator, classes=5)
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3, fused=True)
    mean, std = known.inputs.mean(), known.inputs.std()
    for _ in range(120):
        rows = torch.randint(len(known.targets), (32,), generator=generator)
        optimizer.zero_grad()
        logits = network((known.inputs[rows] - mean) / std)
        F.cross_entropy(logits, known.targets[rows]).backward()
        optimizer.step()
    initialized(nn.Sequential(network[-1]), generator)
    return network


CHOICE: tuple[Callable[[], NetworkProblem], ...] = (
    digits_augmentation,
    digits_optimization,
    breast_cancer,
    mnist_augmentation,
)
CONFIRMATION: tuple[Callable[[], NetworkProblem], ...] = (
    digits_strengths,
    digits_arms,
    pima,
    fine_tuning,
    cifar_augmentation,
)
PROBLEMS = {make.__name__: make for make in (*CHOICE, *CONFIRMATION)}
