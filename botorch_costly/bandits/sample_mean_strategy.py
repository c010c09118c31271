"""What strategies by sample means have in common: what they know, and how it is learnt."""

from abc import ABC

import torch

from botorch_costly.bandits.sample_means import SampleMeans, no_means, with_told
from botorch_costly.bandits.strategy import Strategy, Told
from botorch_costly.errors import check_rate


class SampleMeanStrategy(Strategy[SampleMeans], ABC):
    """Knows the mean reward of each arm, of all queries alike or of the recent ones more.

    Attributes:
        forgetting: Share in [0, 1] of a query's weight that a round takes away.
    """

    forgetting: float

    def __post_init__(self) -> None:
        check_rate("forgetting", self.forgetting)

    def begin(self, trials: int, arms: int, device: torch.device | str = "cpu") -> SampleMeans:
        """Return what is known before the first query."""
        return no_means(trials, arms, device)

    def learn(self, state: SampleMeans, told: Told) -> SampleMeans:
        """Return the means after queries."""
        return with_told(state, told, self.forgetting)
