"""The share of the tasks by evidence: is the target more probable with them, or alone?"""

from collections.abc import Mapping
from typing import Any

from torch import Generator, Tensor

from botorch_costly.models.similarity import adapt_similarity, learn_similarity
from botorch_costly.models.task_ensemble import TaskEnsemble
from botorch_costly.models.transfer import Features, TransferGP
from botorch_costly.tuners.transfer.belief import Alone, Told, alone, believable
from botorch_costly.tuners.transfer.memory import FeatureMemory
from botorch_costly.tuners.transfer.options import ByEvidence
from botorch_costly.tuners.transfer.sharing import Acquisition, bound, gaps_of

_BETTER = 0.02  # standard deviations by which an evaluation may turn out better to be worth it


class EvidenceSharing:
    """The share is the least probability so far that the target resembles the tasks, and decays."""

    def __init__(self, tasks: TaskEnsemble, robust: ByEvidence) -> None:
        self._tasks, self._robust = tasks, robust
        self._similarity = learn_similarity(tasks)
        self._memory = FeatureMemory(tasks)
        self._least = believable(robust.log_odds)
        self._count = 0
        self.weights = tasks.theta.new_full((tasks.count,), 1 / tasks.count)
        self.gaps: Tensor | None = None
        self._latest: tuple[Told, TransferGP, Alone | None] | None = None

    @property
    def share(self) -> float:
        """Of the tasks, 1 before the first value."""
        return self._least * self._robust.decay**self._count if self._count else 1.0

    def _beliefs(self, told: Told) -> tuple[TransferGP, Alone | None]:
        """Return what is believed with the tasks, and of the target alone if there is a value."""
        if self._latest is None or self._latest[0] is not told:
            values = told.values.unsqueeze(-1)
            known = self._memory.of_rows(told.points)
            seen = told.points, values, known
            similarity = adapt_similarity(self._similarity, self._tasks, *seen)
            transfer = TransferGP(self._tasks, similarity, *seen)
            scale = float(transfer.scale)
            target = alone(told, self._tasks.kernel, scale) if len(values) else None
            self._latest = told, transfer, target
        return self._latest[1:]

    def learn(self, told: Told) -> None:
        """Compare the evidences after further values."""
        if len(told.values) == self._count:
            return
        transfer, target = self._beliefs(told)
        assert target is not None  # there is a value
        own = target.log_evidence(told, transfer.units)
        odds = self._robust.log_odds + transfer.log_evidence - own
        self._least = min(self._least, believable(odds))
        self._count = len(told.values)
        self.weights = transfer.weights
        self.gaps = gaps_of(self._tasks, target, beta=self._robust.beta, largest=False, own=False)

    def acquisition(self, told: Told, generator: Generator) -> Acquisition:
        """Return the bound of what the tasks say, and of the target alone, by their shares."""
        transfer, target = self._beliefs(told)
        share, robust = self.share, self._robust

        def blend(X: Tensor, known: Features | None, tau: float, beta: float) -> Tensor:
            theirs = bound(transfer.moments(X, known), tau)
            if target is None:
                return theirs
            return share * theirs + (1 - share) * bound(target.moments(X), beta)

        # What the tasks say on average: their disagreement is largest where all are at their worst.
        tau = 0.0 if target is None else robust.tau
        return Acquisition(
            lambda X: blend(X, None, tau, robust.beta),
            lambda X: blend(X, self._memory.of_pool(X), tau, robust.beta),
            lambda X: blend(X, None, 0.0, 0.0),
            "what the tasks say" if target is None else f"tasks have a share of {share:.2f}",
            None if target is None else lambda X: _no_better(target, told, X, robust.beta),
        )

    def state_dict(self) -> dict[str, Any]:
        """Return what the share depends on."""
        gaps = None if self.gaps is None else self.gaps.clone()
        return {
            "least": self._least,
            "count": self._count,
            "weights": self.weights.clone(),
            "gaps": gaps,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        least, count, weights = state["least"], state["count"], state["weights"]
        gaps = state["gaps"]
        self._least, self._count, self.weights = float(least), int(count), weights.clone()
        self.gaps = None if gaps is None else gaps.clone()
        self._latest = None


def _no_better(target: Alone, told: Told, X: Tensor, beta: float) -> Tensor:
    """Return where the target's own bound is no better than what was told.

    A bound that is best beside an evaluation would be asked for there again and again, as long as nothing
    that contradicts the tasks is looked at.
    """
    return bound(target.moments(X), beta) < told.values.max() + _BETTER * target.scale
