"""UCB1: the largest upper confidence bound of a mean."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_costly.bandits.sample_means import (
    SampleMeans,
    SampleMeanStrategy,
    belief_of,
    weights_at,
)
from botorch_costly.bandits.strategy import Advice, among_best
from botorch_costly.calls import advised
from botorch_costly.errors import check_nonnegative


@advised
@dataclass(frozen=True)
class UCB1(SampleMeanStrategy):
    r"""Play the arm with the largest ``mean + scale sqrt(2 log N / N_i)``, after each arm has a query.

    The arm has ``N_i`` queries, all arms have ``N``. For rewards in [0, 1] without drift, and a query in
    every round, the expected regret after ``T`` rounds is at most ``8 sum_i log(T) / gap_i + (1 + pi^2 /
    3) sum_i gap_i``, summed over the suboptimal arms.

    References:
        - P. Auer, N. Cesa-Bianchi, P. Fischer. Finite-time analysis of the multiarmed bandit problem.
          Machine Learning 47, 2002, theorem 1.
        - A. Garivier, E. Moulines. On upper-confidence bound policies for switching bandit problems.
          ALT 2011: with forgetting.

    Args:
        scale: Factor of the width of the bound, at least 0; 1 in the paper.
        forgetting: Share in [0, 1] by which the weight of a query decreases per round.

    Raises:
        InvalidArgumentError: If a number is outside its range.

    Example:
        >>> strategy = UCB1()
        >>> strategy.advise(strategy.begin(trials=2, arms=3), 0, torch.tensor([0.1, 0.9])).arm
        tensor([0, 2])
    """

    scale: float = 1.0
    forgetting: float = 0.0

    def __post_init__(self) -> None:
        check_nonnegative("scale", self.scale)
        super().__post_init__()

    @property
    def assumes_range(self) -> bool:
        """Whether a number is in units of the range: the width of the bound."""
        return True

    def advise(self, state: SampleMeans, now: int, luck: Tensor) -> Advice:
        """Return the arm with the largest bound."""
        weight = weights_at(state, now, self.forgetting)
        total = weight.sum(-1, keepdim=True).clamp_min(1.0)
        width = self.scale * (2 * total.log() / weight.clamp_min(1e-300)).sqrt()
        bound = torch.where(weight > 0, state.mean + width, math.inf)
        arm = among_best(bound, luck)
        probability = torch.ones_like(luck, dtype=torch.float64)
        explored = torch.zeros_like(arm, dtype=torch.bool)
        return Advice(arm, probability, explored, belief_of(state, now, self.forgetting))
