"""What can be trained: a space of configurations, and trainings that stop anywhere and go on."""

import math
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

from botorch_costly import SearchSpace
from botorch_costly.parameters import Plain


class Training(Protocol):
    """A training in memory; every random number comes from generators of its own."""

    def play(self) -> float:
        """Train for a round and return its reward, larger is better; NaN from where it diverged."""


class Length(NamedTuple):
    """How long a whole training is."""

    iterations: int
    rounds: int = 1  # of the training in an iteration, such as episodes


class Program(NamedTuple):
    """A training program.

    Args:
        space: Of its hyperparameters.
        begin: From a configuration and a seed, a training.
        length: Of a whole training.
    """

    space: SearchSpace
    begin: Callable[[Mapping[str, Plain], int], Training]
    length: Length


class Shown(NamedTuple):
    """What a stretch of a training showed, and what it cost."""

    curve: list[float]  # a reward for each iteration, until it broke
    seconds: list[float]  # of the processor, for each of these
    broken: bool


def advance(training: Training, iterations: int, rounds: int = 1) -> Shown:
    """Train for some iterations of some rounds, by the time of the processor."""
    curve: list[float] = []
    seconds: list[float] = []
    for _ in range(iterations):
        began = time.thread_time()
        rewards = [training.play() for _ in range(rounds)]
        if not math.isfinite(rewards[-1]):
            return Shown(curve, seconds, True)
        curve.append(rewards[-1])
        seconds.append(time.thread_time() - began)
    return Shown(curve, seconds, False)
