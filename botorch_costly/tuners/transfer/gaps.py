"""The share of the tasks by their gaps: RM-GP-UCB and RM-GP-TS."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import torch
from torch import Generator, Tensor

from botorch_costly.acquisition.robust_meta import RMGPUCB, MarginalUCB
from botorch_costly.acquisition.robust_meta_sampling import RMGPTS
from botorch_costly.models.task_ensemble import Moments, TaskEnsemble
from botorch_costly.models.task_paths import TaskPaths
from botorch_costly.numerics.online_weights import decayed, entropic_weights, without_small
from botorch_costly.tuners.transfer.belief import OwnMemory, TargetData, TargetGP
from botorch_costly.tuners.transfer.options import ByGaps
from botorch_costly.tuners.transfer.weighting import (
    Acquisition,
    Belief,
    are_past,
    blended,
    gaps_of,
    unaided,
)

# Gaps that count at most, for the weights and for the share. While the values are nearly equal, their
# standard deviation is a tiny unit in which all tasks are far away, and no loss is ever taken back.
_FARTHEST, _FARTHEST_OF_ALL = 5.0, 30.0


class GapWeighting:
    """Weights follow the regularized leader, with the gaps as losses."""

    def __init__(self, tasks: TaskEnsemble, robust: ByGaps, pool: Tensor) -> None:
        self._tasks, self._robust, self._pool = tasks, robust, pool
        self._losses = tasks.theta.new_zeros(tasks.count)
        self._count = 0
        self.share = 1.0
        self._own = OwnMemory(tasks.kernel)
        self.gaps: Tensor | None = None

    @property
    def weights(self) -> Tensor:
        """Weights of the tasks, shape ``(tasks,)``."""
        return entropic_weights(self._losses, self._robust.rate)

    def learn(self, data: TargetData) -> Belief:
        """Add the gaps after further values, and return the posterior given all of them."""
        is_new, self._count = data.evaluations != self._count, data.evaluations
        if not is_new or not len(data.values):
            return self.believed(data)
        robust = self._robust
        target = self._own.learn(data)
        if are_past(self.share, data.evaluations):
            return Belief(data, target)
        self.gaps = gaps_of(
            self._tasks,
            target,
            beta=robust.factor(data.evaluations),
            largest=robust.largest,
            own_units=robust.own_units,
        )
        self._losses = self._losses + self.gaps.clamp_max(_FARTHEST)
        gaps = self.gaps.clamp_max(_FARTHEST_OF_ALL)
        self.share = decayed(self.share, self.weights, gaps, decay=robust.decay, power=robust.power)
        return Belief(data, target)

    def believed(self, data: TargetData) -> Belief:
        """Return the target's own Gaussian process, with the hyperparameters of the latest fit."""
        has_value = len(data.values) > 0
        return Belief(data, self._own.believed(data) if has_value else None)

    def acquisition(self, belief: Belief, generator: Generator) -> Acquisition:
        """Return the weighted bounds, equation 2, or a sampled function, equation 3."""
        target, robust, weights = belief.target, self._robust, self.weights
        beta = robust.factor(belief.data.evaluations + 1)
        share = 1.0 if target is None else self.share
        if robust.thompson:
            return self._sampled(target, share, generator)
        if target is not None and are_past(share, belief.data.evaluations):
            return unaided(target, beta, self._pool)
        weights = without_small(weights)
        kept = weights.nonzero().squeeze(-1)
        tasks, weights = self._tasks.subset(kept), weights[kept]
        units: dict[str, Tensor] = {}
        if target is not None and robust.own_units:
            units = {"offset": target.offset, "scale": target.scale}

        def make(tau: float, beta: float) -> RMGPUCB:
            return RMGPUCB(target, tasks, weights, share, beta=beta * beta, tau=tau, **units)

        def at_pool() -> Moments:
            return Moments(*(moment[kept] for moment in self._pool_moments))

        return blended(make, robust.tau, beta, self._pool, at_pool)

    @cached_property
    def _pool_moments(self) -> Moments:
        """Moments of all tasks at the points of the pool, none of which ever change."""
        with torch.no_grad():
            return self._tasks.moments(self._pool)

    @cached_property
    def _paths(self) -> TaskPaths:
        """Functions sampled from the tasks."""
        return TaskPaths(self._tasks, self._robust.paths, torch.Generator().manual_seed(0))

    def _sampled(self, target: TargetGP | None, share: float, generator: Generator) -> Acquisition:
        """Return a sampled function of the target, or with probability ``share`` of a task."""
        model = None if target is None else target.model
        summed = self._robust.summed
        sample = RMGPTS(model, self._paths, self.weights, share, generator, summed=summed)
        origin, pool = sample.origin, self._pool

        def at(X: Tensor) -> Tensor:
            value: Tensor = sample(X.unsqueeze(-2))
            return value

        def believed(X: Tensor, factor: float) -> Tensor:
            if origin is None:
                assert target is not None, "only a target has a function without a task"
                return MarginalUCB(target, factor)(X.unsqueeze(-2))
            chosen = origin.nonzero().flatten().to(X.device)
            tasks = self._tasks.subset(chosen)
            weights = origin.to(X)[chosen] * tasks.scale
            return at(X) + factor * (weights @ tasks.moments(X).std)

        return Acquisition(
            at,
            lambda columns: sample.with_gradient(pool[:columns]),
            lambda: at(pool),
            believed,
            f"a function drawn of {_named(origin)}",
        )

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values that the weights and the share depend on."""
        gaps = None if self.gaps is None else self.gaps.clone()
        return {
            "losses": self._losses.clone(),
            "count": self._count,
            "share": self.share,
            "gaps": gaps,
            "own": self._own.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        losses, count, share = state["losses"].to(self._losses), state["count"], state["share"]
        gaps = None if state["gaps"] is None else state["gaps"].to(self._losses)
        self._losses, self._count, self.share = losses.clone(), int(count), float(share)
        self.gaps = None if gaps is None else gaps.clone()
        self._own.load_state_dict(state["own"])


def _named(origin: Tensor | None) -> str:
    """Return whose function was drawn, in words."""
    if origin is None:
        return "the target's own"
    chosen = origin.nonzero().flatten().tolist()
    return f"task {chosen[0]}" if len(chosen) == 1 else f"the weighted sum of {len(chosen)} tasks"
