"""Softmax, or Boltzmann exploration: arms with better means are more probable."""

from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_costly.bandits.sample_means import SampleMeans, SampleMeanStrategy, belief_of
from botorch_costly.bandits.strategy import Advice, drawn
from botorch_costly.calls import advised
from botorch_costly.errors import check_positive


@advised
@dataclass(frozen=True)
class Softmax(SampleMeanStrategy):
    """Play an arm with a probability proportional to ``exp(mean / temperature)``.

    The mean of an arm without a query is 0.

    References:
        V. Kuleshov, D. Precup. Algorithms for multi-armed bandit problems. 2000 (arXiv 1402.6028),
        section 2.

    Args:
        temperature: Temperature in units of the reward, positive; near 0 the best mean is played.
        forgetting: Share in [0, 1] by which the weight of a query decreases per round.

    Raises:
        InvalidArgumentError: If a number is outside its range.

    Example:
        >>> strategy = Softmax(temperature=0.1)
        >>> strategy.advise(strategy.begin(trials=1, arms=4), 0, torch.tensor([0.6])).arm
        tensor([2])
    """

    temperature: float = 0.1
    forgetting: float = 0.0

    def __post_init__(self) -> None:
        check_positive("temperature", self.temperature)
        super().__post_init__()

    @property
    def assumes_range(self) -> bool:
        """Whether a number is in units of the range: the temperature."""
        return True

    def advise(self, state: SampleMeans, now: int, luck: Tensor) -> Advice:
        """Return an arm drawn by the softmax of the means."""
        probabilities = (state.mean / self.temperature).softmax(-1)
        arm = drawn(probabilities, luck)
        probability = probabilities.gather(-1, arm[:, None]).squeeze(-1)
        explored = torch.zeros_like(arm, dtype=torch.bool)
        return Advice(arm, probability, explored, belief_of(state, now, self.forgetting))
