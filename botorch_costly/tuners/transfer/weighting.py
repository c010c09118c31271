"""Protocol of the rules that weight earlier tasks, and the acquisition functions that they return."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import torch
from torch import Generator, Tensor

from botorch_costly.models.task_ensemble import TaskEnsemble
from botorch_costly.numerics.online_weights import function_gaps
from botorch_costly.numerics.padded import MomentsAndVJP
from botorch_costly.optim.smooth import ValueAndGradient
from botorch_costly.tuners.transfer.belief import TargetData, TargetGP


class Acquisition(NamedTuple):
    """An acquisition function."""

    at: Callable[[Tensor], Tensor]  # values at points, m x dim -> (m,)
    climber: Callable[
        [int], ValueAndGradient
    ]  # values and gradients, for a typical number of points
    at_pool: Callable[[Tensor], Tensor]  # equal to `at`, cached for a pool that does not change
    believed: Callable[[Tensor, float], Tensor]  # mean plus a multiple of the standard deviation
    reason: str
    # Standard deviations by which the target's own bound fails to improve on the best value, (m,);
    # positive if the target alone rules a point out.
    lacking: Callable[[Tensor], Tensor] | None = None


class TaskWeighting(Protocol):
    """A rule that updates the weights of earlier tasks by the target's values."""

    @property
    def share(self) -> float:
        """Share of all tasks together in the acquisition function, in [0, 1]."""

    @property
    def weights(self) -> Tensor:
        """Weights of single tasks, shape ``(tasks,)``."""

    @property
    def gaps(self) -> Tensor | None:
        """Distance of each task from the target, shape ``(tasks,)``; None before a value."""

    def learn(self, data: TargetData) -> TargetData:
        """Update the weights, and return the data with outliers as failures."""

    def acquisition(self, data: TargetData, generator: Generator) -> Acquisition:
        """Return the acquisition function, given data that may hold predicted values."""

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values that the next call depends on."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""


def gaps_of(
    tasks: TaskEnsemble, target: TargetGP, *, beta: float, largest: bool, own_units: bool
) -> Tensor:
    """Return the distance of each task from the target, in the target's standard deviations."""
    moments = target.moments(tasks.inputs[tasks.seen])
    mean, std = (torch.zeros_like(tasks.targets).masked_scatter(tasks.seen, m) for m in moments)
    mean, std = (mean - target.offset) / target.scale, std / target.scale
    values = tasks.targets
    if not own_units:
        raw = tasks.offset.unsqueeze(-1) + tasks.scale.unsqueeze(-1) * values
        values = (raw - target.offset) / target.scale
    return function_gaps(values, tasks.seen, mean, std, beta=beta, largest=largest)


def bound_and_slope(moments: MomentsAndVJP, factor: float, weight: Tensor) -> tuple[Tensor, Tensor]:
    """Return a weighted sum of upper bounds, and its gradient with respect to the points.

    Args:
        moments: Moments at ``m`` points, of several tasks or of one.
        factor: Factor of the standard deviations.
        weight: Weight of each task, shape ``(tasks, 1)``, or of the only one, shape ``()``.
    """
    each = weight.expand_as(moments.mean)
    value = each * torch.add(moments.mean, moments.spread, alpha=factor)
    total = value.sum(0) if value.dim() == 2 else value
    return total, moments.vjp(each, factor * each)


def bound(moments: tuple[Tensor, Tensor], factor: float) -> Tensor:
    """Return an upper bound from means and standard deviations."""
    mean, std = moments
    return mean + factor * std
