"""What can be trained: a space of configurations, and trainings that stop anywhere and go on."""

import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from itertools import pairwise
from statistics import fmean
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Generator, Tensor, nn

from benchmarks.suite.networks import initialized
from botorch_costly import SearchSpace
from botorch_costly.errors import CostlyError
from botorch_costly.parameters import Plain
from botorch_costly.plain import as_number


class Training(Protocol):
    """A training in memory; every random number comes from generators of its own."""

    def play(self) -> float:
        """Train for a round and return its reward, larger is better; NaN from where it diverged."""


class Length(NamedTuple):
    """How long a whole training is."""

    iterations: int | str  # a number, or the hyperparameter that holds it
    rounds: int = 1  # of the training in an iteration, such as episodes

    def of(self, config: Mapping[str, Plain]) -> int:
        """Return the iterations of a whole training of a configuration."""
        if isinstance(self.iterations, int):
            return self.iterations
        return int(as_number(self.iterations, config[self.iterations]))


class Program(NamedTuple):
    """A training program."""

    space: SearchSpace  # of its hyperparameters
    begin: Callable[
        [Mapping[str, Plain], int], Training
    ]  # from a configuration and a seed, a training
    length: Length  # of a whole training


class Shown(NamedTuple):
    """What a segment of a training showed, and what it cost."""

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


_AVERAGED = 100  # episodes, as in the paper


class MissingEnvironmentError(CostlyError):
    """The environments of reinforcement learning are not installed."""


def environment(name: str, **options: Any) -> Any:
    """Return an environment of gymnasium.

    Raises:
        MissingEnvironmentError: If gymnasium, or what the environment needs, is not installed.
    """
    try:
        import gymnasium

        return gymnasium.make(name, **options)
    except ImportError as error:
        hint = "gymnasium, mujoco and imageio: pip install '.[reinforcement]'"
        raise MissingEnvironmentError("environment", hint, str(error)) from error


def perceptron(sizes: tuple[int, ...], generator: Generator) -> nn.Sequential:
    """Return linear layers of some sizes with rectifiers between them."""
    layers: list[nn.Module] = []
    for into, out in pairwise(sizes):
        layers += [nn.utils.skip_init(nn.Linear, into, out), nn.ReLU()]
    return initialized(nn.Sequential(*layers[:-1]), generator)


def observed(values: Any) -> Tensor:
    """Return what an environment shows, in single precision."""
    return torch.from_numpy(np.asarray(values, dtype=np.float32))


class Average:
    """The mean return of the latest episodes, at most a hundred."""

    def __init__(self) -> None:
        self._latest: deque[float] = deque(maxlen=_AVERAGED)

    def after(self, episode: float) -> float:
        """Return the mean after one more episode."""
        self._latest.append(episode)
        return fmean(self._latest)
