"""Rates of forgetting, shared by all trials or one per trial, and the share retained over rounds."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor

from botorch_costly.device import moved
from botorch_costly.errors import InvalidShapeError, check, check_rate
from botorch_costly.numerics.drift import retention, retention_float

# Factors of means and of covariances, (m, 1) if each trial has a rate; and the largest of covariances.
Retained = tuple[float | Tensor, float | Tensor, float]


class DriftRates:
    """Rates of forgetting.

    Args:
        forgetting: Rate in [0, 1] per round, a number or one for each trial.
        batch_shape: Shape of the trials.
        device: The device for rates of trials.

    Raises:
        InvalidArgumentError: If a rate is outside [0, 1].
        InvalidShapeError: If ``forgetting`` is a tensor of another shape than ``batch_shape``.
    """

    def __init__(
        self, forgetting: float | Tensor, batch_shape: torch.Size, device: torch.device
    ) -> None:
        self._last: tuple[float, Retained] | None = None  # argument and result of the last call
        if not isinstance(forgetting, Tensor):
            self.forgetting: float | Tensor = check_rate("forgetting", forgetting)
            return
        received, shape = tuple(forgetting.shape), tuple(batch_shape)
        check(received == shape, "forgetting", f"shape {shape}", received, InvalidShapeError)
        within = bool(((forgetting >= 0) & (forgetting <= 1)).all())
        check(within, "forgetting", "numbers in [0, 1]", forgetting)
        self.forgetting, self._slowest = forgetting.to(device), float(forgetting.min())

    def over(self, rounds: float) -> Retained:
        """Return the factors over rounds, whole or not: ``a``, ``a^2`` and the largest ``a^2``."""
        if not isinstance(self.forgetting, Tensor):
            retained = retention_float(self.forgetting, rounds)
            return retained, retained * retained, retained * retained
        if self._last is None or self._last[0] != rounds:
            rates = self.forgetting.reshape(-1, 1).double()
            factor = retention(rates, moved(torch.as_tensor(rounds), rates))
            # Computed from the slowest rate, which needs no synchronization with a device.
            largest = retention_float(self._slowest, rounds) ** 2
            self._last = rounds, (factor, factor.square(), largest)
        return self._last[1]

    def map(self, fn: Callable[[Tensor], Tensor]) -> "DriftRates":
        """Return the rates with ``fn`` applied to rates of trials; ``fn`` moves or selects them."""
        if not isinstance(self.forgetting, Tensor):
            return self
        rates = copy.copy(self)  # `_slowest` stays a lower bound, without synchronization
        rates.forgetting, rates._last = fn(self.forgetting), None
        return rates
