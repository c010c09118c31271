"""Strengths of regularization and augmentation: weak at first, and as given if that pays later.

A network that learns slowly may be regularized too strongly, and one that overfits only does so late. So
strong strengths are weakened at once if that is no worse, and both are compared again while the
difference is small or moves towards the other side.
"""

import math

import torch
from torch import Tensor

from botorch_costly.tuners.twins.constants import CONSTANTS
from botorch_costly.tuners.twins.trials import Side


class Strengths:
    """The strengths that were given and the weak ones; one of the two is in use.

    Args:
        given: Encoded first configuration, shape ``(d,)``.
        weak: The same with weak strengths; None if none is strong.
    """

    def __init__(self, given: Tensor, weak: Tensor | None) -> None:
        self._columns = torch.zeros_like(given, dtype=torch.bool) if weak is None else weak != given
        self._given, self._weak = given, given if weak is None else weak
        self._is_weak = False
        self._lead = -math.inf if weak is None else 0.0  # of the other over those in use, last seen
        self.is_due = weak is not None

    def renew(self) -> None:
        """Make a comparison due, unless the other strengths were clearly worse."""
        self.is_due = self._lead > -CONSTANTS.level_noise

    def other(self, point: Tensor) -> Tensor | None:
        """Return a configuration with the strengths that are not in use."""
        other = self._given if self._is_weak else self._weak
        return torch.where(self._columns, other, point) if self._columns.any() else None

    def judge(self, trial: Side, incumbent: Side, *, is_first: bool) -> bool:
        """Return whether the other strengths are better; at first weak ones win ties."""
        self.is_due = False
        if not math.isfinite(incumbent.level):
            return math.isfinite(trial.level)
        self._lead = trial.level - incumbent.level
        return self._lead > (-CONSTANTS.level_noise if is_first else CONSTANTS.level_noise)

    def take(self, point: Tensor) -> None:
        """Take note of the strengths in use."""
        is_weak = bool((point == self._weak)[self._columns].all())
        if is_weak != self._is_weak:
            self._lead = -self._lead
        self._is_weak = is_weak
