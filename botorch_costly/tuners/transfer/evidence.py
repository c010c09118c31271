"""The share of the tasks by log evidence: of the model with the tasks and of the target alone."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import torch
from torch import Generator, Tensor

from botorch_costly.acquisition.robust_meta import Blend, MarginalUCB
from botorch_costly.models.similarity import learn_similarity
from botorch_costly.models.task_ensemble import TaskEnsemble
from botorch_costly.models.transfer import Features, Similarity, features
from botorch_costly.tuners.transfer.belief import OwnMemory, TargetData, TargetGP, believable
from botorch_costly.tuners.transfer.doubts import Doubts
from botorch_costly.tuners.transfer.options import ByEvidence
from botorch_costly.tuners.transfer.weighting import (
    Acquisition,
    Belief,
    are_past,
    blended,
    gaps_of,
    unaided,
)

_BETTER = 0.02  # least possible improvement that is worth an evaluation, in scales of the target


class EvidenceWeighting:
    """The share is the least probability so far that the target resembles the tasks, and decays."""

    def __init__(self, tasks: TaskEnsemble, robust: ByEvidence, pool: Tensor) -> None:
        self._tasks, self._robust, self._pool = tasks, robust, pool
        self._similarity = learn_similarity(tasks)
        self._adapted = self._similarity  # to the target's values
        self._doubts = Doubts(tasks, self._similarity)
        self._own = OwnMemory(tasks.kernel)
        self._least = believable(robust.log_odds)
        self._count = 0
        self._known = tasks.theta.new_zeros(0, tasks.inputs.shape[-1])  # points of the last update
        self.weights = tasks.theta.new_full((tasks.count,), 1 / tasks.count)
        self.gaps: Tensor | None = None

    @property
    def share(self) -> float:
        """Share of the tasks; 1 before the first value."""
        return self._least * self._robust.decay**self._count if self._count else 1.0

    def believed(self, data: TargetData) -> Belief:
        """Return the posteriors with the tasks, and of the target alone if there is a value."""
        if self._are_past(data):
            return Belief(data, self._own.believed(data))
        transfer = self._doubts.belief(data, self._adapted)
        has_value = len(data.values) > 0
        target = self._own.believed(data, float(transfer.scale)) if has_value else None
        return Belief(data, target, transfer)

    def _are_past(self, data: TargetData) -> bool:
        share = self._least * self._robust.decay**data.evaluations
        return len(data.values) > 0 and are_past(share, data.evaluations)

    def learn(self, data: TargetData) -> Belief:
        """Compare the log evidences, with outliers as failures; see ``doubts``."""
        if self._are_past(data):
            self._count = data.evaluations
            return Belief(data, self._own.learn(data))
        data, adapted, transfer = self._doubts.trusted(data, self._adapted)
        is_new, self._count = data.evaluations != self._count, data.evaluations
        if not is_new or not len(data.values):
            return self.believed(data)
        if not _among_all(self._known, data.points):
            self._least = believable(self._robust.log_odds)
        self._known, self._adapted = data.points, adapted
        target = self._own.learn(data, float(transfer.scale))
        alone = target.log_evidence(data, transfer.units)
        odds = self._robust.log_odds + transfer.log_evidence - alone
        self._least = min(self._least, believable(odds))
        self.weights = transfer.weights
        self.gaps = gaps_of(
            self._tasks, target, beta=self._robust.beta, largest=False, own_units=False
        )
        return Belief(data, target, transfer)

    @cached_property
    def _pool_features(self) -> Features:
        """The tasks' features of the points of the pool, none of which ever change."""
        with torch.no_grad():
            return features(self._tasks, self._pool)

    def acquisition(self, belief: Belief, generator: Generator) -> Acquisition:
        """Return the sum of the bounds with the tasks and of the target alone, by their shares."""
        data, target, transfer = belief
        robust, pool = self._robust, self._pool
        if target is not None and transfer is None:
            return self._sober(unaided(target, robust.beta, pool), target, data)
        assert transfer is not None
        share = 1.0 if target is None else self.share
        # The tasks' disagreement is largest where all of them are at their worst: the first point
        # maximizes their mean alone.
        tau = 0.0 if target is None else robust.tau

        def make(tau: float, beta: float) -> Blend:
            alone = None if target is None else MarginalUCB(target, beta)
            return Blend(MarginalUCB(transfer, tau), alone, share)

        def at_pool() -> tuple[Tensor, Tensor]:
            return transfer.moments(pool, self._pool_features)

        acquisition = blended(make, tau, robust.beta, pool, at_pool)
        return acquisition if target is None else self._sober(acquisition, target, data)

    def _sober(self, acquisition: Acquisition, target: TargetGP, data: TargetData) -> Acquisition:
        beta = self._robust.beta
        return acquisition._replace(lacking=lambda X: _lacking(target, data, X, beta))

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values that the share depends on."""
        gaps = None if self.gaps is None else self.gaps.clone()
        return {
            "least": self._least,
            "count": self._count,
            "known": self._known.clone(),
            "weights": self.weights.clone(),
            "gaps": gaps,
            "similarity": torch.cat([torch.stack(self._adapted[:-1]), self._adapted.lengthscale]),
            "own": self._own.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        least, count, weights = state["least"], state["count"], state["weights"].to(self.weights)
        gaps = None if state["gaps"] is None else state["gaps"].to(self.weights)
        self._least, self._count = float(least), int(count)
        self.weights = weights.to(self._known.device, copy=True)
        self.gaps = None if gaps is None else gaps.to(self._known.device, copy=True)
        adapted = state["similarity"].to(self._adapted.lengthscale, copy=True)
        level, spread, own, noise = adapted[:4]
        self._adapted = Similarity(level, spread, own, noise, adapted[4:])
        self._own.load_state_dict(state["own"])
        self._known = state.get("known", self._known[:0]).to(self._known, copy=True)


def _lacking(target: TargetGP, data: TargetData, X: Tensor, beta: float) -> Tensor:
    """Return the standard deviations by which the target's own bound fails to improve on the best value.

    Without this check, a bound with its maximum beside an evaluation would be evaluated there again and
    again, and no point that contradicts the tasks would be evaluated.
    """
    mean, std = target.moments(X)
    return (data.values.max() + _BETTER * target.scale - mean) / std - beta


def _among_all(points: Tensor, others: Tensor) -> bool:
    """Return whether each point is one of the others."""
    if not len(points):
        return True
    return bool((torch.cdist(points, others) == 0).any(-1).all())
