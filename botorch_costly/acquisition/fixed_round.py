"""Acquisition functions over configurations, made from those over ``[configuration, round]``."""

import math
from typing import Any

import torch
from botorch.acquisition.analytic import AnalyticAcquisitionFunction
from torch import Tensor

from botorch_costly.device import moved
from botorch_costly.errors import InvalidArgumentError, check
from botorch_costly.models.covariance import HasMoments

_LEAST_VARIANCE = 1e-12  # as in BoTorch


def at_round(X: Tensor, now: Tensor) -> Tensor:
    """Append the round to configurations.

    Args:
        X: Configurations, ``batch_shape x q x d``.
        now: The round, a scalar tensor.

    Returns:
        ``batch_shape x q x (d + 1)``.
    """
    return torch.cat([X, moved(now, X).expand(*X.shape[:-1], 1)], -1)


def as_numbers(name: str, value: float | Tensor) -> Tensor:
    """Return floating-point tensors unchanged, and other numbers as a float64 tensor.

    BoTorch's classes would round Python numbers to the default dtype, whatever the model's dtype is.

    Raises:
        InvalidArgumentError: If ``value`` is not numeric.
    """
    if isinstance(value, Tensor) and value.is_floating_point():
        return value
    try:
        return torch.as_tensor(value, dtype=torch.float64)
    except (TypeError, ValueError, RuntimeError):
        raise InvalidArgumentError(name, "numbers", value) from None


def as_round(now: float | Tensor) -> Tensor:
    """Return the round as a scalar tensor.

    Raises:
        InvalidArgumentError: If it is not one finite number.
    """
    tensor = as_numbers("now", now)
    if isinstance(now, (int, float)):
        is_valid = math.isfinite(now)
    else:
        is_valid = tensor.numel() == 1 and bool(tensor.isfinite().all())
    check(is_valid, "now", "one finite round", now, InvalidArgumentError)
    return tensor.reshape(())


class InRound(AnalyticAcquisitionFunction):
    """Mixin that turns an analytic acquisition function over ``[x, round]`` into one over ``x``.

    Inherit from it before BoTorch's class and call ``fix_round`` once. The posterior is then always
    computed in that round.
    """

    def fix_round(self, now: float | Tensor) -> None:
        """Set the round of the decision; raise InvalidArgumentError unless it is a finite number."""
        self.register_buffer("now", as_round(now))
        self._read: tuple[Tensor, int, float] | None = None

    @property
    def round(self) -> float:
        """The round as a number, read only after a change, since reading waits for the device."""
        now: Tensor = self.now
        if now.is_inference():
            return float(now)
        if self._read is None or self._read[0] is not now or self._read[1] != now._version:
            self._read = now, now._version, float(now)
        return self._read[2]

    def _mean_and_sigma(self, X: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        rows = at_round(X, self.now)
        if self.posterior_transform is None and isinstance(self.model, HasMoments) and not args:
            moments = self.model.moments_of_rows(rows)
            if moments is not None and not kwargs:
                return moments[0], moments[1].clamp_min(_LEAST_VARIANCE).sqrt()
        return super()._mean_and_sigma(rows, *args, **kwargs)
