"""Runs of models that generate pictures, and end long before the loss has."""

from benchmarks.suite import data
from benchmarks.suite.compute_bound.training import LongProblem
from benchmarks.suite.compute_bound.works import Diffusion, SuperResolution, Variational
from benchmarks.suite.protocol import tuned
from botorch_costly import Real


def diffusion() -> LongProblem:
    """A network in the shape of a U learns the noise of a diffusion of MNIST at 14 x 14 pixels."""
    return LongProblem(
        name="diffusion",
        **tuned(
            learning_rate=(Real(1e-5, 1e-1, log=True), 1e-3),
            momentum=(Real(0.5, 0.98), 0.9),
            beta2=(Real(0.9, 0.9999), 0.999),
            weight_decay=(Real(0.0, 0.5), 0.0),
            dropout=(Real(0.0, 0.6), 0.0),
        ),
        strong={"dropout": 0.5, "weight_decay": 0.5},
        work=Diffusion(data.whole_mnist),
        steps=3,
        batch=32,
    )


def vae() -> LongProblem:
    """A variational autoencoder of digits, after the example ``vae`` of PyTorch: Adam at 1e-3."""
    return LongProblem(
        name="vae",
        **tuned(
            learning_rate=(Real(1e-5, 1e-1, log=True), 1e-3),
            divergence_weight=(Real(0.0, 5.0), 1.0),
            noise=(Real(0.0, 1.0), 0.0),
            dropout=(Real(0.0, 0.6), 0.0),
            weight_decay=(Real(0.0, 0.01), 0.0),
        ),
        strong={"divergence_weight": 4.0, "dropout": 0.5, "noise": 0.5},
        work=Variational(data.whole_mnist),
        optimizer="adam",
        settings={"beta2": 0.999},
        steps=5,
        batch=128,
    )


def super_resolution() -> LongProblem:
    """Convolutions double the size of gray pictures, after the example of PyTorch: Adam at 1e-3."""
    return LongProblem(
        name="super_resolution",
        **tuned(
            learning_rate=(Real(1e-5, 1e-1, log=True), 1e-3),
            momentum=(Real(0.5, 0.98), 0.9),
            weight_decay=(Real(0.0, 0.01), 0.0),
            dropout=(Real(0.0, 0.5), 0.0),
            noise=(Real(0.0, 0.3), 0.0),
        ),
        strong={"dropout": 0.4, "noise": 0.2},
        work=SuperResolution(data.cifar10),
        optimizer="adam",
        settings={"beta2": 0.999},
        steps=4,
        batch=10,
    )
