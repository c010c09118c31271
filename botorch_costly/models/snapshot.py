"""A streaming belief as seen from one round, made once and kept until the next query."""

import torch
from torch import Tensor

from botorch_costly.numerics.cholesky import Factor
from botorch_costly.numerics.drift import retention, retention_float
from botorch_costly.numerics.snapshot import Moments, Snapshot, moments, snapshot
from botorch_costly.numerics.stationary import Stationary

_ANSWERS = 4  # that are kept


class SnapshotCache:
    """What a belief is from its newest row on; a belief with another factor has another one.

    Args:
        kernel: Covariance over configurations.
        forgetting: Rate per round.
        factor: Of the observations.
        inputs: Their ``[configuration, round]`` rows, shape ``(n, d + 1)``.
    """

    def __init__(
        self, kernel: Stationary, forgetting: float, factor: Factor, inputs: Tensor
    ) -> None:
        self.factor, self._kernel, self._forgetting = factor, kernel, forgetting
        self._inputs, self._newest = inputs, float(inputs[:, -1].max())
        self._snapshot = self._seen_from(self._newest)
        self._rough: Snapshot | None = None
        self._answers: list[tuple[Tensor, int, Moments]] = []

    def snapshot(self, now: float, dtype: torch.dtype | None = None) -> tuple[Snapshot, float]:
        """Return the belief as seen from the newest row, and what is retained of it in round ``now``.

        A round before that sees with its own eyes, for ages count both ways.
        """
        if now < self._newest:
            seen = self._seen_from(now)
            return (seen if dtype is None else seen.to(dtype)), 1.0
        keep = retention_float(self._forgetting, now - self._newest)
        if dtype in (None, self._snapshot.rows.dtype):
            return self._snapshot, keep
        if self._rough is None or self._rough.rows.dtype != dtype:
            with torch.inference_mode(False):
                self._rough = self._snapshot.to(dtype)
        return self._rough, keep

    def moments(self, now: float, X: Tensor) -> Moments:
        """Return the moments at configurations, as :meth:`snapshot` sees them; some answers are kept."""
        rows = X.reshape(-1, X.shape[-1])
        if now < self._newest:
            return moments(self._seen_from(now), rows)
        if torch.is_inference_mode_enabled() or X.is_inference():
            return moments(self._snapshot, rows)  # what is kept must be good outside, too
        for asked, version, answer in self._answers:
            if asked is X and version == X._version:
                return answer
        answer = moments(self._snapshot, rows)
        self._answers = [*self._answers[1 - _ANSWERS :], (X, X._version, answer)]
        return answer

    def _seen_from(self, now: float) -> Snapshot:
        with torch.inference_mode(False):  # it may be asked for outside, too
            lag = (now - self._inputs[:, -1]).abs()
            keep = retention(lag.new_tensor(self._forgetting), lag)
            return snapshot(self._kernel, self._inputs[:, :-1], keep, *self.factor[1:])
