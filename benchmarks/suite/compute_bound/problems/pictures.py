"""Runs on pictures that end long before the loss has.

Sensible defaults were read off a few whole runs on seeds 100 to 102.
"""

from dataclasses import replace
from functools import cache, partial
from typing import Any

from torch import Generator, nn

from benchmarks.suite import data
from benchmarks.suite.compute_bound.problems.experience import weights_after
from benchmarks.suite.compute_bound.training import LongProblem, LongRun
from benchmarks.suite.compute_bound.works import Classes, Denoising
from benchmarks.suite.networks import picture_network
from benchmarks.suite.protocol import tuned
from botorch_costly import Real

_five_classes = partial(picture_network, channels=3, side=32, width=10, blocks=3, classes=5)


def cifar_one_pass() -> LongProblem:
    """A convolutional network sees each picture of CIFAR-10 once."""
    return LongProblem(
        name="cifar_one_pass",
        **tuned(
            learning_rate=(Real(1e-4, 3.0, log=True), 0.01),
            momentum=(Real(0.0, 0.98), 0.9),
            weight_decay=(Real(1e-6, 1e-1, log=True), 1e-4),
            label_smoothing=(Real(0.0, 0.4), 0.0),
            shift=(Real(0.0, 12.0), 1.0),
            noise=(Real(0.0, 0.8), 0.02),
        ),
        strong={"shift": 10.0, "noise": 0.3, "label_smoothing": 0.3},
        work=Classes(
            data.whole_cifar10, partial(picture_network, channels=3, side=32, width=10, blocks=3)
        ),
        optimizer="sgd",
        horizon=180,
        steps=4,
        batch=64,
    )


def mnist_one_pass() -> LongProblem:
    """A convolutional network sees each digit of MNIST once."""
    return LongProblem(
        name="mnist_one_pass",
        **tuned(
            learning_rate=(Real(1e-5, 1e-1, log=True), 1e-3),
            weight_decay=(Real(1e-4, 1.0, log=True), 1e-2),
            dropout=(Real(0.0, 0.8), 0.1),
            rotation=(Real(0.0, 180.0), 0.0),
            shift=(Real(0.0, 14.0), 0.5),
        ),
        strong={"rotation": 150.0, "shift": 10.0, "dropout": 0.6},
        work=Classes(
            data.whole_mnist, partial(picture_network, channels=1, side=28, width=12, blocks=2)
        ),
        horizon=175,
        steps=5,
        batch=64,
    )


def denoising() -> LongProblem:
    """An autoencoder learns to remove noise from the digits of MNIST."""
    return LongProblem(
        name="denoising",
        **tuned(
            learning_rate=(Real(1e-5, 1e-1, log=True), 1e-3),
            momentum=(Real(0.5, 0.98), 0.9),
            weight_decay=(Real(0.0, 0.5), 0.01),
            dropout=(Real(0.0, 0.5), 0.0),
            noise=(Real(0.0, 2.0), 0.4),
        ),
        strong={"dropout": 0.5, "noise": 1.0},
        work=Denoising(data.whole_mnist),
        steps=20,
        batch=64,
    )


def fine_tuning_pictures() -> LongProblem:
    """A convolutional network that knows five classes of CIFAR-10 learns to tell the others apart."""
    return LongProblem(
        name="fine_tuning_pictures",
        **tuned(
            learning_rate=(Real(1e-4, 3.0, log=True), 0.01),
            body_share=(Real(1e-3, 1.0, log=True), 1.0),
            weight_decay=(Real(1e-6, 1e-1, log=True), 1e-4),
            label_smoothing=(Real(0.0, 0.4), 0.0),
            shift=(Real(0.0, 12.0), 1.0),
        ),
        strong={"label_smoothing": 0.3, "shift": 10.0, "weight_decay": 0.1},
        work=Classes(_other_classes, _experienced, classes=5),
        optimizer="sgd",
        horizon=150,
        steps=4,
        batch=32,
    )


def _known_classes() -> data.Part:
    return data.of_classes(data.whole_cifar10(), range(5))


@cache
def _other_classes() -> data.Part:
    return data.of_classes(data.whole_cifar10(), range(5, 10))


def _experienced(generator: Generator) -> nn.Module:
    """Return the network with the body of one that knows the other classes, and a head of its own."""
    network, known = _five_classes(generator), _experience()
    body = network[:-1]
    body.load_state_dict({name: known[name] for name in body.state_dict()})
    return network


@cache
def _experience() -> dict[str, Any]:
    """Return the weights after a run on the first five classes."""
    work = Classes(_known_classes, _five_classes, classes=5)
    problem = replace(fine_tuning_pictures(), work=work)
    run = LongRun(problem, seed=90_001)
    return weights_after(run, problem.default, 2 * problem.horizon)
