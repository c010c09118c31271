"""Runs as generic rooms may meet them: without a round, without a value, with one, with many."""

import math
from functools import cache
from typing import NamedTuple

from tests.registry.optimizers import OPTIMIZERS

# Those that are told losses, or are made to minimize.
_LESS_IS_BETTER = ("TwinTuner", "PopulationTuner", "SubsetOptimizer of candidates")
_GAINS = ("OnlineTuner", "BanditTuner", "FixedTuner", "RandomTuner")


class Story(NamedTuple):
    """A run of an optimizer, and what it was told."""

    name: str  # of the optimizer in the registry
    optimizer: object
    told: dict  # observations by round, as tell returned them

    @property
    def kind(self):
        """The class of the optimizer."""
        return type(self.optimizer).__name__

    @property
    def is_told_gains(self):
        """Whether a driver can tell it."""
        return self.kind in _GAINS

    @property
    def best(self):
        """The observation of the best value told; None without a value."""
        values = [one for one in self.told.values() if one.reward is not None]
        sign = -1 if self.name.startswith(_LESS_IS_BETTER) else 1
        return max(values, key=lambda one: sign * one.reward, default=None)


# Of each round the number that is told, or None for a round that is not told.
STORIES = {
    "without a round": (),
    "not told": (None,) * 3,
    "failed": (math.nan,) * 6,
    "one value": (0.5, None, None),
    "values and failures": tuple(math.nan if i % 3 == 2 else math.sin(i) for i in range(9)),
}


@cache
def told_of(name: str, story: str) -> Story:
    """Play a story, once: a test that goes on with it copies it.

    Rounds without a query are told, too, where the story has a number.
    """
    case = OPTIMIZERS[name]
    optimizer, told = case.make(0), {}
    for number in STORIES[story]:
        suggestion = optimizer.ask()
        if number is not None:
            told[suggestion.round] = case.tell(optimizer, suggestion, number)
    return Story(name, optimizer, told)
