"""What is maximized next, and the share that earlier tasks have in it."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import torch
from torch import Generator, Tensor

from botorch_costly.models.task_ensemble import TaskEnsemble
from botorch_costly.numerics.online_weights import function_gaps
from botorch_costly.numerics.padded import MomentsAndVJP
from botorch_costly.optim.smooth import ValueAndGradient
from botorch_costly.tuners.transfer.belief import Alone, Told


class Acquisition(NamedTuple):
    """What is maximized."""

    at: Callable[[Tensor], Tensor]  # points m x dim -> (m,)
    climber: Callable[[int], ValueAndGradient]  # with gradients, for about so many points at once
    at_pool: Callable[[Tensor], Tensor]  # as above, of points that are asked about again and again
    believed: Callable[[Tensor, float], Tensor]  # mean there, and so many standard deviations
    reason: str
    # By how many standard deviations the target alone says that a point is no better, (m,); at most 0
    # where it does not say so.
    lacking: Callable[[Tensor], Tensor] | None = None


class Sharing(Protocol):
    """Follows what the tasks are worth."""

    @property
    def share(self) -> float:
        """Of all tasks together, in [0, 1]."""

    @property
    def weights(self) -> Tensor:
        """Of single tasks, shape ``(tasks,)``."""

    @property
    def gaps(self) -> Tensor | None:
        """How far each task is from the target, shape ``(tasks,)``; None before a value."""

    def learn(self, told: Told) -> Told:
        """Take in what has been told since, and return it, with values that went astray as failures."""

    def acquisition(self, told: Told, generator: Generator) -> Acquisition:
        """Return what to maximize after what was told, some of which may only be believed."""

    def state_dict(self) -> dict[str, Any]:
        """Return what the next call depends on."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""


def gaps_of(tasks: TaskEnsemble, target: Alone, *, beta: float, largest: bool, own: bool) -> Tensor:
    """Return how far each task is from the target, in the target's standard deviations."""
    said = target.moments(tasks.inputs[tasks.seen])
    mean, std = (torch.zeros_like(tasks.targets).masked_scatter(tasks.seen, one) for one in said)
    mean, std = (mean - target.offset) / target.scale, std / target.scale
    values = tasks.targets
    if not own:
        raw = tasks.offset.unsqueeze(-1) + tasks.scale.unsqueeze(-1) * values
        values = (raw - target.offset) / target.scale
    return function_gaps(values, tasks.seen, mean, std, beta=beta, largest=largest)


def bound_and_slope(moments: MomentsAndVJP, factor: float, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return a weighted sum of upper bounds and its slopes by the points.

    Args:
        moments: At ``m`` points, of several tasks or of one.
        factor: Of the standard deviations.
        weight: Of each task, shape ``(tasks, 1)``, or of one, shape ``()``.
    """
    each = weight.expand_as(moments.mean)
    value = each * torch.add(moments.mean, moments.spread, alpha=factor)
    total = value.sum(0) if value.dim() == 2 else value
    return total, moments.vjp(each, factor * each)


def bound(moments: tuple[Tensor, Tensor], factor: float) -> Tensor:
    """Return an upper bound from means and standard deviations."""
    mean, std = moments
    return mean + factor * std
