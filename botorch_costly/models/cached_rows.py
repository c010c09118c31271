"""The observations of a streaming belief, with the Cholesky factor of their covariance.

What was told is held a second time on the CPU, so that a device is not asked for what is known: how old
the rows are, and which of them are forgotten.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from botorch_costly.device import moved
from botorch_costly.numerics.cholesky import Factor, all_but, empty_factor, remove
from botorch_costly.numerics.drift import retention


class CachedRows(NamedTuple):
    """Observations and their factor."""

    factor: Factor
    inputs: Tensor  # [configuration, round], shape: (n, d + 1), or (0, 0) before the first
    rewards: Tensor  # in their own units, shape: (n,)
    targets: Tensor  # what the factor is conditioned on, in units of the prior, shape: (n,)
    near: Tensor  # [configuration, round, reward] as told, on the CPU, shape: (n, d + 2) or (0, 2)

    @classmethod
    def none(cls, like: Tensor) -> "CachedRows":
        """Return no observations, in the precision and on the device of a tensor."""
        factor = empty_factor(1, dtype=like.dtype, device=like.device)
        near = torch.zeros(0, 2, dtype=like.dtype)
        return cls(factor, like.new_zeros(0, 0), like.new_zeros(0), like.new_zeros(0), near)

    @property
    def number(self) -> int:
        """How many observations there are."""
        return self.rewards.shape[-1]

    def weights(self, now: float, forgetting: float) -> Tensor:
        """Return the weight ``(1 - forgetting)^age`` of each row, ``(n,)``, on the CPU."""
        ages = (now - self.near[:, -2]).clamp_min(0)
        return retention(ages.new_tensor(forgetting), ages).square()

    def within(self, window: float, maximum: int) -> "CachedRows":
        """Return the rows of the last ``window`` rounds, at most ``maximum``: the oldest go first."""
        rows, newest = self, self.near[:, -2].max()
        while rows.number > maximum or newest - rows.near[:, -2].min() > window:
            oldest = int(rows.near[:, -2].argmin())
            others = all_but(oldest, rows.number, rows.rewards.device)
            near_others = all_but(oldest, rows.number, rows.near.device)
            rows = CachedRows(
                remove(rows.factor, oldest),
                rows.inputs[others],
                rows.rewards[others],
                rows.targets[others],
                rows.near[near_others],
            )
        return rows

    def conditioned_on(self, targets: Tensor) -> "CachedRows":
        """Return the rows with other targets, in O(n^2): the factor does not depend on them."""
        targets = moved(targets, self.rewards)
        whitened = self.factor.inverse @ targets.unsqueeze(-1)
        return self._replace(factor=self.factor._replace(whitened=whitened), targets=targets)

    def map(self, function: Callable[[Tensor], Tensor]) -> "CachedRows":
        """Return the rows with a function applied to each tensor, such as a change of precision."""
        inputs, rewards, targets = map(function, (self.inputs, self.rewards, self.targets))
        near = self.near.to(rewards.dtype)  # it stays where it is
        return CachedRows(Factor(*map(function, self.factor)), inputs, rewards, targets, near)

    def state_dict(self) -> dict[str, Any]:
        """Return all tensors by name, but for what is held on the CPU once more."""
        stored = self._asdict()
        del stored["near"]
        return {**stored, "factor": list(self.factor)}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any], device: torch.device) -> "CachedRows":
        """Return what ``state_dict`` gave, perhaps among other things, on a device."""
        factor = Factor(*(part.to(device) for part in state["factor"]))
        inputs, rewards, targets = (state[name].to(device) for name in cls._fields[1:4])
        return cls(factor, inputs, rewards, targets, near_rows(state["inputs"], state["rewards"]))


def near_rows(inputs: Tensor, rewards: Tensor) -> Tensor:
    """Return ``[configuration, round, reward]`` on the CPU, ``(n, d + 2)``, or ``(0, 2)`` of none."""
    if not len(rewards):
        return torch.zeros(0, 2, dtype=rewards.dtype)
    return torch.cat([inputs, rewards.unsqueeze(-1)], -1).cpu()
