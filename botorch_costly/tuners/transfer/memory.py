"""What earlier tasks say of points, asked once: neither the tasks nor what they say ever changes."""

import torch
from torch import Tensor

from botorch_costly.models.task_ensemble import TaskEnsemble
from botorch_costly.models.transfer import Features, features


class FeatureMemory:
    """Remembers the features of a pool of points, and of single points.

    Args:
        tasks: The earlier tasks, fitted.
    """

    def __init__(self, tasks: TaskEnsemble) -> None:
        self._tasks = tasks
        self._pool: tuple[Tensor, Features] | None = None
        self._rows: dict[tuple[float, ...], Features] = {}

    def of_pool(self, pool: Tensor) -> Features:
        """Return the features of points that are asked about again and again, ``m x d``."""
        if self._pool is None or self._pool[0] is not pool:
            self._pool = pool, self._asked(pool)
        return self._pool[1]

    def of_rows(self, X: Tensor) -> Features:
        """Return the features of points most of which were asked about before, ``n x d``."""
        if not len(X):
            return self._asked(X)
        rows = [self._of_row(row) for row in X]
        return Features(*(torch.stack(part) for part in zip(*rows, strict=True)))

    def _of_row(self, x: Tensor) -> Features:
        # One by one: rows asked side by side differ in their last bits, and so would a run from a state.
        key = tuple(x.tolist())
        if key not in self._rows:
            known = self._asked(x.unsqueeze(0))
            self._rows[key] = Features(*(part[0] for part in known))
        return self._rows[key]

    def _asked(self, X: Tensor) -> Features:
        with torch.no_grad():
            return features(self._tasks, X)
