"""Strengths of regularization and augmentation: weak at first, and stronger if that pays later.

A network that learns slowly may be regularized too strongly, and one that overfits only does so late. So
strong strengths are weakened at once if that is no worse, and switched off if that is no worse either;
later the next stronger ones are compared again, unless they were clearly worse.
"""

import math

import torch
from torch import Tensor

from botorch_costly.tuners.twins.constants import CONSTANTS
from botorch_costly.tuners.twins.trials import Side


class Strengths:
    """A ladder of strengths: as given, weak, off; one rung is in use, and one may be compared with it.

    Args:
        given: Encoded first configuration, shape ``(d,)``.
        weaker: The same with weak strengths, and with none; empty if none is strong.

    Attributes:
        is_due: Whether a comparison is due.
    """

    def __init__(self, given: Tensor, weaker: list[Tensor]) -> None:
        self._rungs = [given, *weaker]
        changed = [rung != given for rung in weaker]
        self._columns = changed[0] if changed else torch.zeros_like(given, dtype=torch.bool)
        self._rung, self._step = 0, 1  # the one in use, and the step to the one to compare
        self._lead = -math.inf  # of the stronger rung over that in use, last seen
        self.is_due = bool(weaker)

    def renew(self) -> None:
        """Make a comparison with the stronger rung due, unless it was clearly worse."""
        self.is_due, self._step = self._rung > 0 and self._lead > -CONSTANTS.level_noise, -1

    def other(self, point: Tensor) -> Tensor:
        """Return a configuration with the strengths to compare."""
        return torch.where(self._columns, self._rungs[self._rung + self._step], point)

    def judge(self, trial: Side, incumbent: Side) -> bool:
        """Return whether the other strengths are better; weaker ones win ties."""
        lead = trial.level - incumbent.level
        if not math.isfinite(incumbent.level):
            lead = math.inf if math.isfinite(trial.level) else -math.inf
        is_better = lead > -self._step * CONSTANTS.level_noise
        self.is_due = is_better and 0 <= self._rung + 2 * self._step < len(self._rungs)
        if self._step < 0:
            self._lead = lead
        return is_better

    def take(self, lead: float) -> None:
        """Use the other strengths, which lead by so much at the end of their comparison."""
        self._rung += self._step
        self._lead = -lead if self._step > 0 else -math.inf
