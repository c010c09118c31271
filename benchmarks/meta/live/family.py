"""A family: tasks that share a space, and what a configuration is worth in each."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_costly import SearchSpace

Config = Mapping[str, Any]

_SCRAMBLING = 0  # seed of the points


class Family(NamedTuple):
    """Tasks that share a space.

    Args:
        name: Of the family.
        space: Of the configurations, the same in each task.
        tasks: Their names.
        targets: Those among them that are to be optimized with the help of the others.
        evaluate_all: From a task, configurations and a seed for each of them to their values in [0, 1],
            larger is better. A value depends on its own configuration and seed alone.
        block: How many configurations are recorded together.
        recorded: How many configurations are recorded.
    """

    name: str
    space: SearchSpace
    tasks: tuple[str, ...]
    targets: tuple[str, ...]
    evaluate_all: Callable[[str, Sequence[Config], Sequence[int]], list[float]]
    block: int
    recorded: int

    def evaluate(self, task: str, config: Config, seed: int) -> float:
        """Return the value of a configuration in a task, in [0, 1]."""
        (value,) = self.evaluate_all(task, [config], [seed])
        return value


def one_by_one(
    evaluate: Callable[[str, Config, int], float],
) -> Callable[[str, Sequence[Config], Sequence[int]], list[float]]:
    """Return what evaluates configurations one after the other."""

    def evaluate_all(task: str, configs: Sequence[Config], seeds: Sequence[int]) -> list[float]:
        pairs = zip(configs, seeds, strict=True)
        return [evaluate(task, config, seed) for config, seed in pairs]

    return evaluate_all


def points(space: SearchSpace, first: int, count: int) -> Tensor:
    """Return encodings of a scrambled Sobol sequence, from the one numbered ``first`` on.

    Returns:
        The encodings, float64 of shape ``(count, space.dim)``.
    """
    engine = SobolEngine(space.dim, scramble=True, seed=_SCRAMBLING)
    return space.round(engine.fast_forward(first).draw(count, dtype=torch.float64))
