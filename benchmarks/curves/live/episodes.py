"""What trainings by reinforcement learning share: environments, small networks and their rewards."""

from collections import deque
from itertools import pairwise
from statistics import fmean
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor, nn

from benchmarks.suite.networks import initialized
from botorch_costly.errors import CostlyError

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
