"""A cache of the earlier tasks' features of points; neither the tasks nor the features ever change."""

from functools import cached_property

import torch
from torch import Tensor

from botorch_costly.models.task_ensemble import TaskEnsemble
from botorch_costly.models.transfer import Features, features


class FeatureMemory:
    """Caches the features of a pool of points, and of single points.

    Args:
        tasks: Earlier tasks, fitted.
        pool: Points of the pool, ``m x d``.
    """

    def __init__(self, tasks: TaskEnsemble, pool: Tensor) -> None:
        self._tasks, self.pool = tasks, pool
        self._rows: dict[tuple[float, ...], Features] = {}

    @cached_property
    def of_pool(self) -> Features:
        """Features of the pool."""
        return self._computed(self.pool)

    def of_rows(self, X: Tensor) -> Features:
        """Return the features of points, ``n x d``; each point is cached."""
        if not len(X):
            return self._computed(X)
        rows = [self._of_row(row) for row in X]
        return Features(*(torch.stack(column) for column in zip(*rows, strict=True)))

    def _of_row(self, x: Tensor) -> Features:
        # Rows are computed one by one, for the last bits of a row depend on the others: a run that
        # continues from a state would differ.
        key = tuple(x.tolist())
        if key not in self._rows:
            self._rows[key] = Features(*(column[0] for column in self._computed(x.unsqueeze(0))))
        return self._rows[key]

    def _computed(self, X: Tensor) -> Features:
        with torch.no_grad():
            return features(self._tasks, X)
