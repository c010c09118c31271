"""Runs on text that end long before the loss has.

Sensible defaults were read off a few whole runs on seeds 100 to 102, but those of other people's programs
are theirs.
"""

from functools import cache
from typing import Any

from torch import Generator, nn

from benchmarks.suite.compute_bound.networks import GPT, Recurrent, Transformer
from benchmarks.suite.compute_bound.problems.experience import weights_after
from benchmarks.suite.compute_bound.training import LongProblem, LongRun
from benchmarks.suite.compute_bound.works import (
    VOCABULARY,
    NextCharacter,
    NextLetter,
    WordNetwork,
    further_sources,
    help_pages,
    sources,
    word_codes,
    words,
)
from benchmarks.suite.protocol import tuned
from botorch_costly import Real


def transformer_text() -> LongProblem:
    """A transformer reads the sources of Python's library: 120,000 windows are 1.6 passes."""
    return LongProblem(
        name="transformer_text",
        **tuned(
            learning_rate=(Real(1e-5, 1e-1, log=True), 1e-3),
            weight_decay=(Real(0.0, 0.5), 0.1),
            dropout=(Real(0.0, 0.5), 0.0),
            beta2=(Real(0.9, 0.999), 0.99),
        ),
        strong={"dropout": 0.5, "weight_decay": 0.5},
        work=NextCharacter(sources, Transformer),
        batch=24,
    )


def recurrent_text() -> LongProblem:
    """A gated recurrent network reads Python's help pages."""
    return LongProblem(
        name="recurrent_text",
        **tuned(
            learning_rate=(Real(1e-5, 1e-1, log=True), 2e-3),
            momentum=(Real(0.5, 0.98), 0.9),
            beta2=(Real(0.9, 0.999), 0.99),
            dropout=(Real(0.0, 0.7), 0.1),
        ),
        strong={"dropout": 0.6},
        work=NextCharacter(help_pages, _recurrent),
        steps=7,
        batch=16,
    )


def fine_tuning_text() -> LongProblem:
    """A transformer that knows Python's sources learns the English of its help pages."""
    return LongProblem(
        name="fine_tuning_text",
        **tuned(
            learning_rate=(Real(1e-5, 1e-1, log=True), 1e-3),
            body_share=(Real(1e-3, 1.0, log=True), 1.0),
            weight_decay=(Real(0.0, 0.5), 0.1),
            dropout=(Real(0.0, 0.5), 0.1),
        ),
        strong={"dropout": 0.5, "weight_decay": 0.5},
        work=NextCharacter(help_pages, _pretrained),
        horizon=150,
        steps=8,
        batch=24,
    )


def character_mlp() -> LongProblem:
    """A perceptron learns the letters of 13,000 words, after A. Karpathy's example makemore.

    Three letters before, vectors of 10 numbers, 200 hidden units, minibatches of 32, plain SGD with a
    rate of 0.1.
    """
    return LongProblem(
        name="character_mlp",
        **tuned(
            learning_rate=(Real(1e-3, 10.0, log=True), 0.1),
            momentum=(Real(0.0, 0.98), 0.0),
            weight_decay=(Real(0.0, 0.1), 0.0),
            label_smoothing=(Real(0.0, 0.5), 0.0),
            dropout=(Real(0.0, 0.8), 0.0),
        ),
        strong={"label_smoothing": 0.4, "dropout": 0.6},
        work=NextLetter(words),
        optimizer="sgd",
        steps=40,
        batch=32,
    )


def word_language_model() -> LongProblem:
    """A recurrent network reads words of Python's sources and help pages, after PyTorch's example.

    There, too, plain SGD has a rate of 20, gradients are clipped at 0.25 and dropout is 0.2.
    """
    return LongProblem(
        name="word_language_model",
        **tuned(
            learning_rate=(Real(0.01, 1000.0, log=True), 20.0),
            momentum=(Real(0.0, 0.98), 0.0),
            weight_decay=(Real(0.0, 1e-3), 0.0),
            dropout=(Real(0.0, 0.8), 0.2),
        ),
        strong={"dropout": 0.7, "weight_decay": 1e-4},
        work=NextCharacter(word_codes, WordNetwork, length=35, symbols=VOCABULARY),
        optimizer="sgd",
        steps=3,
        batch=16,
        clip=0.25,
    )


def small_gpt() -> LongProblem:
    """A small GPT reads sources of Python's library; a multiple of its own rate is tuned.

    After A. Karpathy's example nanoGPT on characters: a rate of 1e-3 after warm-up, dropout of 0.2,
    weight decay of 0.1, gradients clipped at 1.
    """
    return LongProblem(
        name="small_gpt",
        **tuned(
            lr_mult=(Real(0.01, 100.0, log=True), 1.0),
            weight_decay=(Real(0.0, 1.0), 0.1),
            dropout=(Real(0.0, 0.6), 0.2),
            beta2=(Real(0.9, 0.999), 0.99),
        ),
        strong={"dropout": 0.6, "weight_decay": 1.0},
        work=NextCharacter(further_sources, GPT, length=64),
        steps=3,
        batch=16,
        own_rate=1e-3,
        warmup=10,
        clip=1.0,
    )


def _recurrent(generator: Generator, characters: int, length: int, width: int = 112) -> nn.Module:
    return Recurrent(generator, characters, width)


def _pretrained(generator: Generator, characters: int, length: int) -> nn.Module:
    network = Transformer(generator, characters, length)
    network.load_state_dict(_knowledge())
    return network


@cache
def _knowledge() -> dict[str, Any]:
    """Return the weights after a run on the sources."""
    problem = transformer_text()
    config = {**problem.default, "learning_rate": 3e-3}
    return weights_after(LongRun(problem, seed=90_000), config, problem.horizon)
