"""Epsilon-greedy: the arm with the best mean, and sometimes a random arm."""

from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_costly.bandits.sample_means import SampleMeans, SampleMeanStrategy, belief_of
from botorch_costly.bandits.strategy import Advice, among_best, drawn, split
from botorch_costly.calls import advised
from botorch_costly.errors import check_rate


@advised
@dataclass(frozen=True)
class EpsilonGreedy(SampleMeanStrategy):
    """Play the arm with the best mean, and with a fixed probability a random arm.

    The mean of an arm without a query is 0.

    References:
        V. Kuleshov, D. Precup. Algorithms for multi-armed bandit problems. 2000 (arXiv 1402.6028),
        section 2.

    Args:
        exploration: Probability in [0, 1] of a random arm, epsilon in the paper.
        forgetting: Share in [0, 1] by which the weight of a query decreases per round.

    Raises:
        InvalidArgumentError: If a number is outside its range.

    Example:
        >>> strategy = EpsilonGreedy(exploration=0.3)
        >>> strategy.advise(strategy.begin(trials=1, arms=3), 0, torch.tensor([0.15])).arm
        tensor([1])
    """

    exploration: float = 0.1
    forgetting: float = 0.0

    def __post_init__(self) -> None:
        check_rate("exploration", self.exploration)
        super().__post_init__()

    def advise(self, state: SampleMeans, now: int, luck: Tensor) -> Advice:
        """Return the best arm, or a random one."""
        explored, luck = split(luck, self.exploration)
        mean = state.mean
        uniform = torch.full_like(mean, 1 / mean.shape[-1])
        arm = torch.where(explored, drawn(uniform, luck), among_best(mean, luck))
        best = (mean >= mean.amax(-1, keepdim=True)).double()
        ties = best.sum(-1, keepdim=True)
        probabilities = self.exploration * uniform + (1 - self.exploration) * best / ties
        probability = probabilities.gather(-1, arm[:, None]).squeeze(-1)
        return Advice(arm, probability, explored, belief_of(state, now, self.forgetting))
