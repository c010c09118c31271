"""The share of the tasks by their gaps: RM-GP-UCB and RM-GP-TS."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Generator, Tensor

from botorch_costly.acquisition.robust_meta import TaskUCB
from botorch_costly.models.task_ensemble import Moments, TaskEnsemble
from botorch_costly.models.task_paths import TaskPaths
from botorch_costly.numerics.online_weights import decayed, entropic_weights
from botorch_costly.optim.smooth import ValueAndGradient
from botorch_costly.tuners.transfer.belief import OwnMemory, TargetData, TargetGP
from botorch_costly.tuners.transfer.options import ByGaps
from botorch_costly.tuners.transfer.weighting import Acquisition, bound, bound_and_slope, gaps_of

_FEW = 1e-3  # share of the largest weight below which a task is left out of a bound


class GapWeighting:
    """Weights follow the regularized leader, with the gaps as losses."""

    def __init__(self, tasks: TaskEnsemble, robust: ByGaps) -> None:
        self._tasks, self._robust = tasks, robust
        self._losses = tasks.theta.new_zeros(tasks.count)
        self._count = 0
        self.share = 1.0
        self._own = OwnMemory(tasks.kernel)
        self._latest: tuple[TargetData, TargetGP] | None = None
        self.gaps: Tensor | None = None
        self._paths: TaskPaths | None = None
        self._pool_moments: tuple[Tensor, Moments] | None = None

    @property
    def weights(self) -> Tensor:
        """Weights of the tasks, shape ``(tasks,)``."""
        return entropic_weights(self._losses, self._robust.rate)

    def learn(self, data: TargetData) -> TargetData:
        """Add the gaps after further values, and return the data as it is."""
        if data.evaluations == self._count:
            return data
        self._count = data.evaluations
        if not len(data.values):
            return data
        robust = self._robust
        target = self._own.learn(data, self._least_scale)
        self._latest = data, target
        self.gaps = gaps_of(
            self._tasks,
            target,
            beta=robust.beta,
            largest=robust.largest,
            own_units=robust.own_units,
        )
        self._losses = self._losses + self.gaps
        self.share = decayed(
            self.share, self.weights, self.gaps, decay=robust.decay, power=robust.power
        )
        return data

    @property
    def _least_scale(self) -> float:
        # With own units, the tasks' scales carry no information about the target's.
        own = self._robust.own_units
        return 0.0 if own else float(self._tasks.scale.log().mean().exp())

    def _target_gp(self, data: TargetData) -> TargetGP:
        """Return the target's own Gaussian process, with the hyperparameters of the latest fit."""
        if self._latest is None or self._latest[0] is not data:
            self._latest = data, self._own.believed(data, self._least_scale)
        return self._latest[1]

    def acquisition(self, data: TargetData, generator: Generator) -> Acquisition:
        """Return the weighted bounds, equation 2, or a sampled function, equation 3."""
        if self._robust.thompson:
            return self._sampled(data, generator)
        weights, robust = self.weights, self._robust
        kept = (weights >= _FEW * weights.max()).nonzero().squeeze(-1)
        tasks, weights = self._tasks.subset(kept), weights[kept] / weights[kept].sum()
        target = self._target_gp(data) if len(data.values) else None
        in_units = target is not None and robust.own_units
        units = (target.offset, target.scale) if in_units and target else (None, None)
        share = self.share
        upper = TaskUCB(tasks, weights, robust.tau, *units)
        middle = TaskUCB(tasks, weights, 0.0, *units)
        above = TaskUCB(tasks, weights, 1.0, *units)

        def blend(of_tasks: Tensor, X: Tensor, beta: float) -> Tensor:
            if target is None:
                return of_tasks
            return share * of_tasks + (1 - share) * bound(target.moments(X), beta)

        def believed(X: Tensor, factor: float) -> Tensor:
            moments = tasks.moments(X)
            mean = middle.evaluate(moments)
            return blend(mean + factor * (above.evaluate(moments) - mean), X, factor)

        def climber(columns: int) -> ValueAndGradient:
            of_tasks, each = tasks.moments_and_vjp(columns), upper.weights.unsqueeze(-1)
            if target is not None:
                each, of_target = share * each, target.moments_and_vjp(columns)
            weight = each.new_tensor(1 - share)

            def with_gradient(X: Tensor) -> tuple[Tensor, Tensor]:
                value, slope = bound_and_slope(of_tasks(X), robust.tau, each)
                if target is None:
                    return upper.level + value, slope
                own, own_slope = bound_and_slope(of_target(X), robust.beta, weight)
                return share * upper.level + value + own, slope + own_slope

            return with_gradient

        def at_pool(X: Tensor) -> Tensor:
            moments = Moments(*(moment[kept] for moment in self._moments_of_pool(X)))
            return blend(upper.evaluate(moments), X, robust.beta)

        return Acquisition(
            lambda X: blend(upper.evaluate(tasks.moments(X)), X, robust.beta),
            climber,
            at_pool,
            believed,
            "what the tasks say" if target is None else f"tasks have a share of {share:.2f}",
        )

    def _moments_of_pool(self, pool: Tensor) -> Moments:
        """Return the moments of all tasks at the points of a pool; the latest pool is cached."""
        if self._pool_moments is None or self._pool_moments[0] is not pool:
            with torch.no_grad():
                self._pool_moments = pool, self._tasks.moments(pool)
        return self._pool_moments[1]

    def _sampled(self, data: TargetData, generator: Generator) -> Acquisition:
        """Return a sampled function of the target, or with probability ``share`` of a task."""
        coin, path = torch.rand(2, generator=generator).tolist()
        if coin < self.share or not len(data.values):
            if self._paths is None:
                draws = torch.Generator().manual_seed(0)
                self._paths = TaskPaths(self._tasks, self._robust.paths, draws)
            paths, number = self._paths, int(path * self._robust.paths)
            task = int(torch.multinomial(self.weights.double().cpu(), 1, generator=generator))

            def at(X: Tensor) -> Tensor:
                value: Tensor = paths(X, task=task, path=number)
                return value

            climb = partial(paths.with_gradient, task=task, path=number)
            reason = f"a function drawn of task {task}"

            def believed(X: Tensor, factor: float) -> Tensor:
                std = self._tasks.moments(X).std[task]
                return at(X) + factor * self._tasks.scale[task] * std

            return Acquisition(at, lambda columns: climb, at, believed, reason)
        target = self._target_gp(data)
        own = TaskPaths(target.model, 1, generator)

        def ours(X: Tensor) -> Tensor:
            value: Tensor = own(X, task=0, path=0)
            return value

        climb = partial(own.with_gradient, task=0, path=0)
        reason = "a function drawn of the target's own"

        def believed_alone(X: Tensor, factor: float) -> Tensor:
            return bound(target.moments(X), factor)

        return Acquisition(ours, lambda columns: climb, ours, believed_alone, reason)

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
        self._latest = None
