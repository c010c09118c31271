"""Protocol of the rules that weight earlier tasks, and the acquisition functions that they return."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import torch
from botorch.acquisition.acquisition import AcquisitionFunction
from torch import Generator, Tensor

from botorch_costly.acquisition.robust_meta import Blend, MarginalUCB
from botorch_costly.models.task_ensemble import TaskEnsemble
from botorch_costly.models.transfer import TransferGP
from botorch_costly.numerics.online_weights import function_gaps
from botorch_costly.optim.smooth import ValueAndGradient
from botorch_costly.tuners.transfer.belief import TargetData, TargetGP

_LONG, _LITTLE = 100, 1e-4  # evaluations after which tasks with so small a share are left out


class Belief(NamedTuple):
    """Data of the target, and the posteriors given these."""

    data: TargetData
    target: TargetGP | None  # of the target alone; None before its first value
    transfer: TransferGP | None = None  # with the tasks, for a rule that has such a model


def are_past(share: float, evaluations: int) -> bool:
    """Return whether the tasks are left out, since they would cost much time and change no choice."""
    return evaluations > _LONG and share < _LITTLE


class Acquisition(NamedTuple):
    """An acquisition function."""

    at: Callable[[Tensor], Tensor]  # values at points, m x dim -> (m,)
    climber: Callable[
        [int], ValueAndGradient
    ]  # values and gradients, for a typical number of points
    at_pool: Callable[[], Tensor]  # values at the fixed pool of the rule
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

    def learn(self, data: TargetData) -> Belief:
        """Update the weights, and return the posteriors, given the data with outliers as failures."""

    def believed(self, data: TargetData) -> Belief:
        """Return the posteriors without an update, given data that may hold predicted values."""

    def acquisition(self, belief: Belief, generator: Generator) -> Acquisition:
        """Return the acquisition function."""

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


def blended(
    make: Callable[[float, float], Blend],
    tau: float,
    beta: float,
    pool: Tensor,
    moments_at_pool: Callable[[], Any],
) -> Acquisition:
    """Return a blend of bounds as an acquisition function.

    Args:
        make: Function from the factors of the standard deviations, with the tasks and of the target
            alone, to the blend.
        tau: Factor with the tasks.
        beta: Factor of the target alone.
        pool: Points of the fixed pool, ``m x dim``.
        moments_at_pool: Function that returns the moments at the pool with the tasks; they are cached.
    """
    blend = make(tau, beta)
    share = f"after earlier tasks (with a share of {blend.share:.2f})"
    acquisition = _acquisition(blend, pool, lambda factor: make(factor, factor))
    return acquisition._replace(
        at_pool=lambda: blend.evaluate(blend.first.evaluate(moments_at_pool()), pool.unsqueeze(-2)),
        reason="what the tasks say" if blend.second is None else share,
    )


def unaided(target: TargetGP, beta: float, pool: Tensor) -> Acquisition:
    """Return the bound of the target alone as an acquisition function; see ``blended``."""
    return _acquisition(MarginalUCB(target, beta), pool, lambda factor: MarginalUCB(target, factor))


def _acquisition(
    bound: Blend | MarginalUCB, pool: Tensor, make: Callable[[float], AcquisitionFunction]
) -> Acquisition:
    return Acquisition(
        lambda X: bound(X.unsqueeze(-2)),
        lambda columns: bound.with_gradient(pool.new_empty(columns, pool.shape[-1])),
        lambda: bound(pool.unsqueeze(-2)),
        lambda X, factor: make(factor)(X.unsqueeze(-2)),
        "the target's own values",
    )
