"""The observations of a streaming GP, with the Cholesky factor of their covariance.

The CPU holds a second copy of the observations, so that ages and the choice of rows to drop need no
synchronization with a device. The variances of single rewards are on the CPU alone.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from botorch_costly.device import moved
from botorch_costly.numerics.cholesky import Factor, all_but, empty_factor, remove
from botorch_costly.numerics.drift import retention

_LARGEST_NOISE = 1e12  # of a row, in prior units: its weight is nothing, and squares stay finite


class CachedRows(NamedTuple):
    """Observations and their Cholesky factor."""

    factor: Factor
    inputs: Tensor  # [configuration, round], shape: (n, d + 1); (0, 0) without observations
    rewards: Tensor  # in the user's units, shape: (n,)
    targets: Tensor  # standardized rewards that the factor is conditioned on, shape: (n,)
    near: (
        Tensor  # [configuration, round, reward], on the CPU, shape: (n, d + 2); (0, 2) without any
    )
    variances: Tensor  # of the rewards beyond the noise, in their units, float64, CPU, shape: (n,)
    extra: Tensor  # the same in prior units, as in the factor, float64, CPU, shape: (n,)

    @classmethod
    def none(cls, like: Tensor) -> "CachedRows":
        """Return an empty set of observations with the dtype and device of ``like``."""
        factor = empty_factor(1, dtype=like.dtype, device=like.device)
        near, none = torch.zeros(0, 2, dtype=like.dtype), torch.zeros(0, dtype=torch.float64)
        nothing = like.new_zeros(0)
        return cls(factor, like.new_zeros(0, 0), nothing, nothing, near, none, none)

    @property
    def number(self) -> int:
        """Number of observations."""
        return self.rewards.shape[-1]

    @property
    def has_extra(self) -> bool:
        """Whether a row has more noise than the others; known without the device."""
        return bool((self.extra > 0).any())

    def weights(self, now: float, forgetting: float) -> Tensor:
        """Return the weight ``(1 - forgetting)^age`` of each row, ``(n,)``, on the CPU."""
        ages = (now - self.near[:, -2]).clamp_min(0)
        return retention(forgetting, ages).square()

    def within(self, window: float, maximum: int) -> "CachedRows":
        """Return the rows of the last ``window`` rounds, at most ``maximum`` of them, the newest."""
        rows, newest = self, float(self.near[:, -2].max())
        while rows.number > maximum or newest - float(rows.near[:, -2].min()) > window:
            oldest = int(rows.near[:, -2].argmin())
            others = all_but(oldest, rows.number, rows.rewards.device)
            near_others = all_but(oldest, rows.number, rows.near.device)
            rows = CachedRows(
                remove(rows.factor, oldest),
                rows.inputs[others],
                rows.rewards[others],
                rows.targets[others],
                rows.near[near_others],
                rows.variances[near_others],
                rows.extra[near_others],
            )
        return rows

    def conditioned_on(self, targets: Tensor) -> "CachedRows":
        """Return the rows with new targets, in O(n^2): the factorization does not depend on targets."""
        targets = moved(targets, self.rewards)
        whitened = self.factor.inverse @ targets.unsqueeze(-1)
        return self._replace(factor=self.factor._replace(whitened=whitened), targets=targets)

    def map(self, function: Callable[[Tensor], Tensor]) -> "CachedRows":
        """Return the rows with a function applied to each tensor, such as a change of dtype."""
        inputs, rewards, targets = map(function, (self.inputs, self.rewards, self.targets))
        near = self.near.to(rewards.dtype)  # remains on the CPU
        factor = Factor(*map(function, self.factor))
        return CachedRows(factor, inputs, rewards, targets, near, self.variances, self.extra)

    def state_dict(self) -> dict[str, Any]:
        """Return all tensors by name, except the copy on the CPU."""
        stored = self._asdict()
        del stored["near"]
        return {**stored, "factor": list(self.factor)}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any], device: torch.device) -> "CachedRows":
        """Return the rows of a ``state_dict`` on a device; further entries are ignored.

        States of earlier versions have no variances: all rewards had the noise alone.
        """
        factor = Factor(*(tensor.to(device) for tensor in state["factor"]))
        inputs, rewards, targets = (state[name].to(device) for name in cls._fields[1:4])
        near, none = near_rows(state["inputs"], state["rewards"]), without_variance(rewards)
        variances, extra = (state.get(name, none).cpu() for name in cls._fields[5:])
        return cls(factor, inputs, rewards, targets, near, variances, extra)


def without_variance(rewards: Tensor) -> Tensor:
    """Return a variance of 0 for each reward, float64 on the CPU, shape ``(n,)``."""
    return torch.zeros(len(rewards), dtype=torch.float64)


def noise_of(variances: Tensor, slopes: Tensor | float) -> Tensor:
    """Return the noise of rows in prior units, ``variance slope^2``, shape ``(n,)``.

    Args:
        variances: Variances of the rewards, in their units squared, float64 on the CPU, shape ``(n,)``.
        slopes: Derivatives of the targets by the rewards, shape ``(n,)`` or a number.
    """
    deviations = variances.sqrt() * slopes  # a square of the slopes alone could overflow
    noise = deviations.square().clamp_max(_LARGEST_NOISE)
    return torch.where(variances > 0, noise, 0.0)  # slopes of subnormal rewards are infinite


def near_rows(inputs: Tensor, rewards: Tensor) -> Tensor:
    """Return ``[configuration, round, reward]`` on the CPU, ``(n, d + 2)``; ``(0, 2)`` if empty."""
    if not len(rewards):
        return torch.zeros(0, 2, dtype=rewards.dtype)
    return torch.cat([inputs, rewards.unsqueeze(-1)], -1).cpu()
