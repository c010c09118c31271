"""What a policy that chooses from a finite list is given, and what it answers."""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import torch
from torch import Generator, Tensor

from botorch_costly.models import TaskEnsemble
from botorch_costly.tuners.transfer.belief import Told


class Setting(NamedTuple):
    """What a policy is given."""

    tasks: TaskEnsemble  # earlier ones, fitted
    points: Tensor  # to choose from, shape: (m, d)
    order: Tensor  # a random order of these, the same for all methods, shape: (m,)
    generator: Generator


class Policy(Protocol):
    """Chooses what is evaluated next."""

    def __call__(self, told: Told) -> Tensor:
        """Return how good each of the points would be, ``(m,)``; those told do not count."""


Method = Callable[[Setting], Policy]


def in_random_order(setting: Setting) -> Tensor:
    """Return numbers that fall along the random order, ``(m,)``."""
    values = torch.zeros(len(setting.points), dtype=setting.points.dtype)
    values[setting.order] = torch.linspace(1, 0, len(values), dtype=values.dtype)
    return values


def best_before(setting: Setting) -> Tensor:
    """Return the average of the standardized posterior means of the earlier tasks, ``(m,)``."""
    return setting.tasks.means(setting.points).mean(0)
