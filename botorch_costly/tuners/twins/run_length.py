"""Whether a run is long enough to find anything out: the steps of its optimizers are counted."""

from collections.abc import Iterable
from typing import Any

from torch.optim import Optimizer

_FEWEST = 500  # steps of a run in which trials find more than they cost
_FEWEST_IN_ROUND = 3  # steps of a round; trials last for a few rounds
_FEW_ROUNDS = 50  # fewer rounds than these find less than they could


class StepCounter:
    """Counts the steps of optimizers until a run is known to be long enough, or too short.

    Args:
        parts: Parts of a run; those that are no optimizers are passed over.
    """

    def __init__(self, parts: Iterable[Any]) -> None:
        self.steps = 0
        optimizers = [part for part in parts if isinstance(part, Optimizer)]
        self._handles = [o.register_step_post_hook(self._count) for o in optimizers[:1]]

    def _count(self, *_: Any) -> None:
        self.steps += 1

    def verdict(self, rounds: int, horizon: int) -> str | None:
        """Return why a run is too short, and count no further; None if it is not, or is unknown.

        Args:
            rounds: Rounds that were trained while steps were counted, at least 1.
            horizon: Rounds of the run.
        """
        known = bool(self._handles) and self.steps > 0
        for handle in self._handles:
            handle.remove()
        self._handles = []
        in_round = self.steps / rounds
        if not known or (in_round >= _FEWEST_IN_ROUND and in_round * horizon >= _FEWEST):
            return None
        return (
            f"{horizon} rounds of {in_round:g} steps are too few to compare settings, which takes "
            f"{_FEWEST} steps in rounds of {_FEWEST_IN_ROUND} or more"
        )

    def advice(self, rounds: int, horizon: int) -> str | None:
        """Return advice to a run that is long enough, but has few rounds that can be divided; or None.

        Args:
            rounds: Rounds that were trained while steps were counted, at least 1.
            horizon: Rounds of the run.
        """
        in_round = self.steps / rounds
        if horizon >= _FEW_ROUNDS or in_round < 2 * _FEWEST_IN_ROUND:
            return None
        return (
            f"{horizon} rounds are few to compare settings in, and each has {in_round:g} steps: let the "
            "same training be a few hundred shorter rounds."
        )
