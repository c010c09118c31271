"""Detection of low outliers: values that the tasks do not explain, although they explain all others.

An implausibly low value counts as a failure at once; see ``belief``. A value that is only lower than
predicted may be true, and then the tasks mislead. The evidence of two hypotheses is compared: that all
values are valid, and that one of them is an outlier. Later values may reverse the decision.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.models.similarity import adapt_similarity
from botorch_costly.models.task_ensemble import TaskEnsemble
from botorch_costly.models.transfer import Features, Similarity, TransferGP, features, units_of
from botorch_costly.tuners.transfer.belief import TargetData

_ASTRAY = 0.05  # prior probability that a value is an outlier
_WITHIN = 10.0  # width of the uniform distribution of outliers, in scales of a typical task
_DOUBTED = 2  # least number of standard deviations below the leave-one-out prediction
_MOST = 2  # largest number of outliers, and number of the lowest values that are tested


class Trusted(NamedTuple):
    """Data without outliers, and the model fitted to it."""

    data: TargetData  # outliers are failures
    similarity: Similarity  # adapted to these values
    belief: TransferGP


class _Hypothesis(NamedTuple):
    """The hypothesis that one value is an outlier."""

    gain: float  # of the log evidence
    trusted: Trusted  # data without the outlier


class Doubts:
    """Separates outliers from low values which show that the tasks mislead.

    Args:
        tasks: Earlier tasks, fitted.
        similarity: Similarity of the tasks to each other.
    """

    def __init__(self, tasks: TaskEnsemble, similarity: Similarity) -> None:
        self._tasks, self._similarity = tasks, similarity
        # By point: neither the tasks nor their features ever change.
        self._features: dict[tuple[float, ...], Features] = {}
        self._price = math.log(_ASTRAY / _WITHIN) - units_of(tasks).log_scale

    def trusted(self, data: TargetData, start: Similarity) -> Trusted:
        """Return the data with outliers as failures, and the model fitted to it.

        More than two apparent outliers suggest that the tasks mislead, or that the target has other
        units: then all values count as they are.

        Args:
            data: Evaluations of the target.
            start: Start of the fit of the similarity, such as the result with fewer values.
        """
        everything = current = self._fitted(data, start)
        while len(current.data.values):
            best = max(self._hypotheses(current), default=None, key=lambda h: h.gain)
            if best is None or best.gain <= 0:
                break
            if len(data.values) - len(best.trusted.data.values) > _MOST:
                return everything
            current = best.trusted
        return current

    def _hypotheses(self, current: Trusted) -> list[_Hypothesis]:
        """Return the hypotheses that one of the lowest values is an outlier."""
        residuals = current.belief.left_out
        lowest = residuals.argsort()[:_MOST].tolist()
        return [self._without(current, n) for n in lowest if residuals[n] < -_DOUBTED]

    def _without(self, current: Trusted, number: int) -> _Hypothesis:
        data = current.data
        keep = torch.arange(len(data.values), device=data.values.device) != number
        failed = torch.cat([data.failures, data.points[~keep]])
        fewer = TargetData(data.points[keep], data.values[keep], failed)
        # The similarity is fitted without the value, or it would adapt to the outlier.
        trusted = self._fitted(fewer, current.similarity)
        all_valid = self.belief(data, trusted.similarity).log_evidence
        return _Hypothesis(trusted.belief.log_evidence + self._price - all_valid, trusted)

    def _fitted(self, data: TargetData, start: Similarity) -> Trusted:
        similarity = self._similarity
        if len(data.values):
            rows = data.points, data.values.unsqueeze(-1), self._features_of(data.points)
            similarity = adapt_similarity(similarity, self._tasks, *rows, start=start)
        return Trusted(data, similarity, self.belief(data, similarity))

    def belief(self, data: TargetData, similarity: Similarity) -> TransferGP:
        """Return the posterior of the target, given the tasks and the data."""
        known = self._features_of(data.points)
        return TransferGP(self._tasks, similarity, data.points, data.values.unsqueeze(-1), known)

    @torch.no_grad()
    def _features_of(self, X: Tensor) -> Features:
        """Return the tasks' features of points, ``n x d``.

        They are computed point by point, for the last bits of a row depend on the others: a run that
        continues from a state would differ.
        """
        if not len(X):
            return features(self._tasks, X)
        keys = [tuple(x) for x in X.tolist()]
        for key, x in zip(keys, X, strict=True):
            if key not in self._features:
                self._features[key] = features(self._tasks, x.unsqueeze(0))
        columns = zip(*(self._features[key] for key in keys), strict=True)
        return Features(*(torch.cat(column) for column in columns))
