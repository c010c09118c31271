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
from botorch_costly.tuners.transfer.belief import Alone, OwnMemory, Told
from botorch_costly.tuners.transfer.options import ByGaps
from botorch_costly.tuners.transfer.sharing import Acquisition, bound, bound_and_slope, gaps_of

_FEW = 1e-3  # of the largest weight: below it a task is not asked


class GapSharing:
    """Weights follow the regularized leader against cumulated gaps."""

    def __init__(self, tasks: TaskEnsemble, robust: ByGaps) -> None:
        self._tasks, self._robust = tasks, robust
        self._losses = tasks.theta.new_zeros(tasks.count)
        self._count = 0
        self.share = 1.0
        self._own = OwnMemory(tasks.kernel)
        self._latest: tuple[Told, Alone] | None = None
        self.gaps: Tensor | None = None
        self._paths: TaskPaths | None = None
        self._said: tuple[Tensor, Moments] | None = None

    @property
    def weights(self) -> Tensor:
        """Of the tasks, shape ``(tasks,)``."""
        return entropic_weights(self._losses, self._robust.rate)

    def learn(self, told: Told) -> Told:
        """Add the gaps after further values. None of them is doubted."""
        if told.evaluations == self._count:
            return told
        self._count = told.evaluations
        if not len(told.values):
            return told
        robust = self._robust
        target = self._own.learn(told, self._least_scale)
        self._latest = told, target
        self.gaps = gaps_of(
            self._tasks,
            target,
            beta=robust.beta,
            largest=robust.largest,
            own=robust.own_units,
        )
        self._losses = self._losses + self.gaps
        self.share = decayed(
            self.share, self.weights, self.gaps, decay=robust.decay, power=robust.power
        )
        return told

    @property
    def _least_scale(self) -> float:
        # In units of their own, the tasks' say nothing of the target's.
        own = self._robust.own_units
        return 0.0 if own else float(self._tasks.scale.log().mean().exp())

    def _alone(self, told: Told) -> Alone:
        """Return what is believed of the target, with what was learnt from the values told."""
        if self._latest is None or self._latest[0] is not told:
            self._latest = told, self._own.believed(told, self._least_scale)
        return self._latest[1]

    def acquisition(self, told: Told, generator: Generator) -> Acquisition:
        """Return the weighted bounds (2), or a function that is drawn (3)."""
        if self._robust.thompson:
            return self._drawn(told, generator)
        weights, robust = self.weights, self._robust
        few = (weights >= _FEW * weights.max()).nonzero().squeeze(-1)
        some, weights = self._tasks.subset(few), weights[few] / weights[few].sum()
        target = self._alone(told) if len(told.values) else None
        own = target is not None and robust.own_units
        units = (target.offset, target.scale) if own and target else (None, None)
        share = self.share
        upper = TaskUCB(some, weights, robust.tau, *units)
        middle = TaskUCB(some, weights, 0.0, *units)
        above = TaskUCB(some, weights, 1.0, *units)

        def blend(theirs: Tensor, X: Tensor, beta: float) -> Tensor:
            if target is None:
                return theirs
            return share * theirs + (1 - share) * bound(target.moments(X), beta)

        def believed(X: Tensor, factor: float) -> Tensor:
            said = some.moments(X)
            mean = middle.evaluate(said)
            return blend(mean + factor * (above.evaluate(said) - mean), X, factor)

        def climber(columns: int) -> ValueAndGradient:
            theirs, each = some.moments_and_vjp(columns), upper.weights.unsqueeze(-1)
            if target is not None:
                each, ours = share * each, target.moments_and_vjp(columns)
            rest = each.new_tensor(1 - share)

            def with_gradient(X: Tensor) -> tuple[Tensor, Tensor]:
                value, slope = bound_and_slope(theirs(X), robust.tau, each)
                if target is None:
                    return upper.level + value, slope
                own, own_slope = bound_and_slope(ours(X), robust.beta, rest)
                return share * upper.level + value + own, slope + own_slope

            return with_gradient

        def of_pool(X: Tensor) -> Moments:
            return Moments(*(part[few] for part in self._of_pool(X)))

        return Acquisition(
            lambda X: blend(upper.evaluate(some.moments(X)), X, robust.beta),
            climber,
            lambda X: blend(upper.evaluate(of_pool(X)), X, robust.beta),
            believed,
            "what the tasks say" if target is None else f"tasks have a share of {share:.2f}",
        )

    def _of_pool(self, pool: Tensor) -> Moments:
        """Return what all tasks say of points that are asked about again and again."""
        if self._said is None or self._said[0] is not pool:
            with torch.no_grad():
                self._said = pool, self._tasks.moments(pool)
        return self._said[1]

    def _drawn(self, told: Told, generator: Generator) -> Acquisition:
        """Return a function of the target, or with probability ``share`` of a task."""
        coin, path = torch.rand(2, generator=generator).tolist()
        if coin < self.share or not len(told.values):
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
        target = self._alone(told)
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
        """Return what weights and share depend on."""
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
