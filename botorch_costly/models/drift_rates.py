"""Rates of forgetting, one of all trials or one of each, and what they keep over some rounds."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor

from botorch_costly.device import moved
from botorch_costly.errors import InvalidShapeError, check, check_rate
from botorch_costly.numerics.drift import retention, retention_float

# Of a mean, of a covariance, and the largest of a covariance; (m, 1) if each trial has a rate.
Kept = tuple[float | Tensor, float | Tensor, float]


class DriftRates:
    """Rates of forgetting.

    Args:
        forgetting: Rate in [0, 1] per round, a number or one for each trial.
        batch_shape: Shape of the trials.
        device: Where the rates of trials are kept.

    Raises:
        InvalidArgumentError: If a rate is outside [0, 1].
        InvalidShapeError: If there is not one for each trial.
    """

    def __init__(
        self, forgetting: float | Tensor, batch_shape: torch.Size, device: torch.device
    ) -> None:
        self._last: tuple[float, Kept] | None = None  # the rounds of the last call, and its answer
        if not isinstance(forgetting, Tensor):
            self.forgetting: float | Tensor = check_rate("forgetting", forgetting)
            return
        received, shape = tuple(forgetting.shape), tuple(batch_shape)
        check(received == shape, "forgetting", f"shape {shape}", received, InvalidShapeError)
        within = bool(((forgetting >= 0) & (forgetting <= 1)).all())
        check(within, "forgetting", "numbers in [0, 1]", forgetting)
        self.forgetting, self._slowest = forgetting.to(device), float(forgetting.min())

    def over(self, rounds: float) -> Kept:
        """Return what is kept over some rounds, in any part of a round: ``a``, ``a^2``, the largest."""
        if not isinstance(self.forgetting, Tensor):
            retained = retention_float(self.forgetting, rounds)
            return retained, retained * retained, retained * retained
        if self._last is None or self._last[0] != rounds:
            rates = self.forgetting.reshape(-1, 1).double()
            found = retention(rates, moved(torch.as_tensor(rounds), rates))
            # Of the slowest rate, which is known: no device is asked.
            most = retention_float(self._slowest, rounds) ** 2
            self._last = rounds, (found, found.square(), most)
        return self._last[1]

    def map(self, fn: Callable[[Tensor], Tensor]) -> "DriftRates":
        """Return the rates with a function applied to those of trials, one that moves or selects them."""
        if not isinstance(self.forgetting, Tensor):
            return self
        rates = copy.copy(self)  # no device is asked for the slowest of those selected
        rates.forgetting, rates._last = fn(self.forgetting), None
        return rates
