"""Low values that went astray: the tasks foretell all others, and this one by no means.

A value so low that no target has it which is like the tasks counts as a failure at once; see ``belief``.
One that is only lower than expected may be true, and then the tasks mislead. Two are compared: that all
values are the target's own, and that one of them went astray. Further values decide, and they may decide
otherwise later.
"""

import math
from typing import NamedTuple

import torch

from botorch_costly.models.similarity import adapt_similarity
from botorch_costly.models.task_ensemble import TaskEnsemble
from botorch_costly.models.transfer import Similarity, TransferGP, units_of
from botorch_costly.tuners.transfer.belief import Told
from botorch_costly.tuners.transfer.memory import FeatureMemory

_ASTRAY = 0.05  # probability of a value to go astray, beforehand
_WITHIN = 10.0  # scales of a typical task that such a value may be anywhere in
_DOUBTED = 2  # standard deviations below what all others foretell, at least
_MOST = 2  # values that went astray; and that are looked at, the lowest ones


class Trusted(NamedTuple):
    """What counts of what was told, and what follows of it with the tasks."""

    told: Told  # values that went astray are failures
    similarity: Similarity  # adapted to these values
    belief: TransferGP


class _Hypothesis(NamedTuple):
    """That one value went astray."""

    gain: float  # of the log evidence of the tasks
    rest: Trusted


class Doubts:
    """Tells values that went astray from those that say that the tasks mislead.

    Args:
        tasks: The earlier tasks, fitted.
        similarity: How a task resembles others.
        memory: Features of the points that were asked before.
    """

    def __init__(self, tasks: TaskEnsemble, similarity: Similarity, memory: FeatureMemory) -> None:
        self._tasks, self._similarity, self._memory = tasks, similarity, memory
        self._price = math.log(_ASTRAY / _WITHIN) - units_of(tasks).log_scale

    def trusted(self, told: Told, start: Similarity) -> Trusted:
        """Return the observations, with values that went astray as failures, and what follows of them.

        Where more than two would be, each says of the others that the tasks mislead, or that the target
        has other units: all count as they are.

        Args:
            told: What was told.
            start: Where the search for the similarity begins, as after fewer values.
        """
        everything = now = self._believed(told, start)
        while len(now.told.values):
            found = max(self._hypotheses(now), default=None, key=lambda one: one.gain)
            if found is None or found.gain <= 0:
                break
            if len(told.values) - len(found.rest.told.values) > _MOST:
                return everything
            now = found.rest
        return now

    def _hypotheses(self, now: Trusted) -> list[_Hypothesis]:
        """Return what is to be said for each of the lowest values that it went astray."""
        away = now.belief.left_out
        lowest = away.argsort()[:_MOST].tolist()
        return [self._without(now, n) for n in lowest if away[n] < -_DOUBTED]

    def _without(self, now: Trusted, number: int) -> _Hypothesis:
        told = now.told
        keep = torch.arange(len(told.values), device=told.values.device) != number
        failed = torch.cat([told.failures, told.points[~keep]])
        fewer = Told(told.points[keep], told.values[keep], failed)
        rest = self._believed(fewer, now.similarity)  # what the value itself says would excuse it
        all_true = self.belief(told, rest.similarity).log_evidence
        return _Hypothesis(rest.belief.log_evidence + self._price - all_true, rest)

    def _believed(self, told: Told, start: Similarity) -> Trusted:
        similarity = self._learnt(told, start)
        return Trusted(told, similarity, self.belief(told, similarity))

    def _learnt(self, told: Told, start: Similarity) -> Similarity:
        if not len(told.values):
            return self._similarity
        seen = told.points, told.values.unsqueeze(-1), self._memory.of_rows(told.points)
        return adapt_similarity(self._similarity, self._tasks, *seen, start=start)

    def belief(self, told: Told, similarity: Similarity) -> TransferGP:
        """Return the belief that the tasks contribute to."""
        known = self._memory.of_rows(told.points)
        return TransferGP(self._tasks, similarity, told.points, told.values.unsqueeze(-1), known)
