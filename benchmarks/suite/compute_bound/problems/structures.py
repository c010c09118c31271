"""Runs on graphs, signals and ratings that end long before the loss has.

Data are drawn, and made so hard that a network still learns at the end at a customary learning rate.
"""

from benchmarks.suite.compute_bound.training import LongProblem
from benchmarks.suite.compute_bound.works import GraphNodes, Melodies, Ratings
from benchmarks.suite.protocol import tuned
from botorch_costly import Real


def graph_nodes() -> LongProblem:
    """A graph network tells nodes of 6,000 graphs apart, after an example of the Open Graph Benchmark.

    There, too, three layers are trained by Adam with a rate of 0.01 and dropout of a half.
    """
    return LongProblem(
        name="graph_nodes",
        **tuned(
            learning_rate=(Real(1e-5, 1.0, log=True), 0.01),
            weight_decay=(Real(0.0, 0.01), 0.0),
            dropout=(Real(0.0, 0.9), 0.5),
        ),
        strong={"dropout": 0.85, "weight_decay": 0.01},
        work=GraphNodes(),
        optimizer="adam",
        settings={"beta2": 0.999},
        steps=3,
        batch=20,
    )


def tones() -> LongProblem:
    """A dilated convolutional network tells melodies in noise apart and hears each of 25,600 once."""
    return LongProblem(
        name="tones",
        **tuned(
            learning_rate=(Real(1e-4, 3.0, log=True), 0.01),
            momentum=(Real(0.0, 0.98), 0.9),
            weight_decay=(Real(1e-6, 1e-1, log=True), 1e-4),
            dropout=(Real(0.0, 0.8), 0.0),
            noise=(Real(0.0, 3.0), 0.0),
            time_mask=(Real(0.0, 0.8), 0.1),
        ),
        strong={"dropout": 0.5, "noise": 1.5, "time_mask": 0.6},
        work=Melodies(),
        optimizer="sgd",
        steps=4,
        batch=32,
    )


def ratings() -> LongProblem:
    """Factors of users and items and a perceptron learn a million ratings in one pass."""
    return LongProblem(
        name="ratings",
        **tuned(
            learning_rate=(Real(1e-5, 1.0, log=True), 3e-3),
            weight_decay=(Real(1e-8, 1e-2, log=True), 1e-6),
            dropout=(Real(0.0, 0.8), 0.0),
        ),
        strong={"dropout": 0.7, "weight_decay": 1e-3},
        work=Ratings(),
        optimizer="rmsprop",
        settings={"momentum": 0.0},
        steps=20,
        batch=240,
    )
