"""What earlier tasks say of points, asked once: neither the tasks nor what they say ever changes."""

import torch
from torch import Tensor

from botorch_costly.models.task_ensemble import TaskEnsemble
from botorch_costly.models.transfer import Features, Similarity, features


class FeatureMemory:
    """Remembers the features of a pool of points, and of single points.

    Args:
        tasks: The earlier tasks, fitted.
        similarity: How a task resembles others.
    """

    def __init__(self, tasks: TaskEnsemble, similarity: Similarity) -> None:
        self._tasks, self._similarity = tasks, similarity
        self._pool: tuple[Tensor, Features] | None = None
        self._rows: dict[tuple[float, ...], Features] = {}

    def of_pool(self, pool: Tensor) -> Features:
        """Return the features of points that are asked about again and again, ``m x d``."""
        if self._pool is None or self._pool[0] is not pool:
            with torch.no_grad():
                self._pool = pool, features(self._tasks, self._similarity, pool)
        return self._pool[1]

    def of_rows(self, X: Tensor) -> Features:
        """Return the features of points most of which were asked about before, ``n x d``."""
        keys = [tuple(row) for row in X.tolist()]
        new = [number for number, key in enumerate(keys) if key not in self._rows]
        if new or not keys:
            with torch.no_grad():
                known = features(self._tasks, self._similarity, X[new])
            if not keys:
                return known
            for at, number in enumerate(new):
                self._rows[keys[number]] = Features(known.means[at], known.unknown[at])
        rows = [self._rows[key] for key in keys]
        return Features(
            torch.stack([row.means for row in rows]), torch.stack([row.unknown for row in rows])
        )
