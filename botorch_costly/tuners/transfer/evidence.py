"""The share of the tasks by evidence: is the target more probable with them, or alone?"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Generator, Tensor

from botorch_costly.models.similarity import learn_similarity
from botorch_costly.models.task_ensemble import TaskEnsemble
from botorch_costly.models.transfer import Features, Similarity, TransferGP
from botorch_costly.optim.smooth import ValueAndGradient
from botorch_costly.tuners.transfer.belief import Alone, OwnMemory, Told, believable
from botorch_costly.tuners.transfer.doubts import Doubts
from botorch_costly.tuners.transfer.memory import FeatureMemory
from botorch_costly.tuners.transfer.options import ByEvidence
from botorch_costly.tuners.transfer.sharing import Acquisition, bound, bound_and_slope, gaps_of

_BETTER = 0.02  # standard deviations by which an evaluation may turn out better to be worth it


class EvidenceSharing:
    """The share is the least probability so far that the target resembles the tasks, and decays."""

    def __init__(self, tasks: TaskEnsemble, robust: ByEvidence) -> None:
        self._tasks, self._robust = tasks, robust
        self._similarity = learn_similarity(tasks)
        self._adapted = self._similarity  # to the target's values
        self._memory = FeatureMemory(tasks)
        self._doubts = Doubts(tasks, self._similarity, self._memory)
        self._own = OwnMemory(tasks.kernel)
        self._least = believable(robust.log_odds)
        self._count = 0
        self._known = tasks.theta.new_zeros(0, tasks.inputs.shape[-1])  # points learnt from
        self.weights = tasks.theta.new_full((tasks.count,), 1 / tasks.count)
        self.gaps: Tensor | None = None
        self._latest: tuple[Told, TransferGP, Alone | None] | None = None

    @property
    def share(self) -> float:
        """Of the tasks, 1 before the first value."""
        return self._least * self._robust.decay**self._count if self._count else 1.0

    def _beliefs(self, told: Told) -> tuple[TransferGP, Alone | None]:
        """Return what is believed with the tasks, and of the target alone if there is a value.

        Values may only be believed: what is learnt is learnt from those told, in ``learn``.
        """
        if self._latest is None or self._latest[0] is not told:
            transfer = self._doubts.belief(told, self._adapted)
            some = len(told.values) > 0
            target = self._own.believed(told, float(transfer.scale)) if some else None
            self._latest = told, transfer, target
        return self._latest[1:]

    def learn(self, told: Told) -> Told:
        """Compare the evidences after further values, less those that went astray; see ``doubts``."""
        told, adapted, transfer = self._doubts.trusted(told, self._adapted)
        if told.evaluations == self._count:
            return told
        self._count = told.evaluations
        if not len(told.values):
            return told
        if not _among_all(self._known, told.points):
            self._least = believable(self._robust.log_odds)
        self._known, self._adapted = told.points, adapted
        target = self._own.learn(told, float(transfer.scale))
        self._latest = told, transfer, target
        own = target.log_evidence(told, transfer.units)
        odds = self._robust.log_odds + transfer.log_evidence - own
        self._least = min(self._least, believable(odds))
        self.weights = transfer.weights
        self.gaps = gaps_of(self._tasks, target, beta=self._robust.beta, largest=False, own=False)
        return told

    def acquisition(self, told: Told, generator: Generator) -> Acquisition:
        """Return the bound of what the tasks say, and of the target alone, by their shares."""
        transfer, target = self._beliefs(told)
        share, robust = self.share, self._robust

        def blend(X: Tensor, known: Features | None, tau: float, beta: float) -> Tensor:
            theirs = bound(transfer.moments(X, known), tau)
            if target is None:
                return theirs
            return share * theirs + (1 - share) * bound(target.moments(X), beta)

        def climber(columns: int) -> ValueAndGradient:
            theirs, part = transfer.moments_and_vjp(columns), transfer.scale.new_tensor(share)
            ours = None if target is None else target.moments_and_vjp(columns)

            def with_gradient(X: Tensor) -> tuple[Tensor, Tensor]:
                if ours is None:
                    return bound_and_slope(theirs(X), tau, torch.ones_like(part))
                value, slope = bound_and_slope(theirs(X), tau, part)
                own, own_slope = bound_and_slope(ours(X), robust.beta, 1 - part)
                return value + own, slope + own_slope

            return with_gradient

        # What the tasks say on average: their disagreement is largest where all are at their worst.
        tau = 0.0 if target is None else robust.tau
        return Acquisition(
            lambda X: blend(X, None, tau, robust.beta),
            climber,
            lambda X: blend(X, self._memory.of_pool(X), tau, robust.beta),
            lambda X, factor: blend(X, None, factor, factor),
            "what the tasks say" if target is None else f"tasks have a share of {share:.2f}",
            None if target is None else lambda X: _lacking(target, told, X, robust.beta),
        )

    def state_dict(self) -> dict[str, Any]:
        """Return what the share depends on."""
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
        self._latest = None


def _lacking(target: Alone, told: Told, X: Tensor, beta: float) -> Tensor:
    """Return by how many standard deviations the target's own bound is no better than what was told.

    A bound that is best beside an evaluation would be asked for there again and again, as long as nothing
    that contradicts the tasks is looked at.
    """
    mean, std = target.moments(X)
    return (told.values.max() + _BETTER * target.scale - mean) / std - beta


def _among_all(points: Tensor, others: Tensor) -> bool:
    """Return whether each of some points is one of others."""
    if not len(points):
        return True
    return bool((torch.cdist(points, others) == 0).any(-1).all())
