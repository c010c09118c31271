"""The observations of a streaming belief, with the Cholesky factor of their covariance."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from botorch_costly.numerics.cholesky import Factor, empty_factor, remove
from botorch_costly.numerics.drift import retention


class CachedRows(NamedTuple):
    """Observations and their factor."""

    factor: Factor
    inputs: Tensor  # [configuration, round], shape: (n, d + 1), or (0, 0) before the first
    rewards: Tensor  # in their own units, shape: (n,)
    targets: Tensor  # what the factor is conditioned on, in units of the prior, shape: (n,)

    @classmethod
    def none(cls, like: Tensor) -> "CachedRows":
        """Return no observations, in the precision and on the device of a tensor."""
        factor = empty_factor(1, dtype=like.dtype, device=like.device)
        return cls(factor, like.new_zeros(0, 0), like.new_zeros(0), like.new_zeros(0))

    @property
    def number(self) -> int:
        """How many observations there are."""
        return self.rewards.shape[-1]

    def weights(self, now: float, forgetting: float) -> Tensor:
        """Return the weight ``(1 - forgetting)^age`` of each row in round ``now``, shape ``(n,)``."""
        ages = (now - self.inputs[..., -1:].reshape(-1)).clamp_min(0)
        return retention(ages.new_tensor(forgetting), ages).square()

    def within(self, window: float, maximum: int) -> "CachedRows":
        """Return the rows of the last ``window`` rounds, at most ``maximum``: the oldest go first."""
        rows, newest = self, self.inputs[:, -1].max()
        while rows.number > maximum or newest - rows.inputs[:, -1].min() > window:
            oldest = int(rows.inputs[:, -1].argmin())
            others = torch.arange(rows.number, device=newest.device) != oldest
            rows = CachedRows(remove(rows.factor, oldest), *(part[others] for part in rows[1:]))
        return rows

    def conditioned_on(self, targets: Tensor) -> "CachedRows":
        """Return the rows with other targets, in O(n^2): the factor does not depend on them."""
        targets = targets.to(self.rewards)
        whitened = self.factor.inverse @ targets.unsqueeze(-1)
        return self._replace(factor=self.factor._replace(whitened=whitened), targets=targets)

    def map(self, function: Callable[[Tensor], Tensor]) -> "CachedRows":
        """Return the rows with a function applied to each tensor, such as a change of precision."""
        return CachedRows(Factor(*map(function, self.factor)), *map(function, self[1:]))

    def state_dict(self) -> dict[str, Any]:
        """Return all tensors by name."""
        return {**self._asdict(), "factor": list(self.factor)}

    @classmethod
    def from_state_dict(cls, state: Mapping[str, Any], device: torch.device) -> "CachedRows":
        """Return what ``state_dict`` gave, perhaps among other things, on a device."""
        factor = Factor(*(part.to(device) for part in state["factor"]))
        return cls(factor, *(state[name].to(device) for name in cls._fields[1:]))
