r"""EXP3.R: exponential weights that begin anew when the best arm seems to have changed.

Explored rounds sample every arm alike, so their mean rewards are unbiased. Once every arm has ``H mixing
/ n`` of them an interval ends: with ``k`` the arm that is played most, EXP3 begins anew if

    mean_i - mean_k >= 2 width  for some arm i,    width = sqrt(n log(1 / delta) / (2 mixing H)),

in the means of the explored queries of the interval. ``width`` is Hoeffding's for so many rewards in
[0, 1]: each mean is off by more with a probability of at most delta.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.bandits.exponential_weights import Weights, advise, even_weights, raised
from botorch_costly.bandits.strategy import Advice, Strategy, Told
from botorch_costly.errors import check, check_positive, check_probability, check_rate


class Watched(NamedTuple):
    """Weights, and what was explored in the interval that is not over."""

    weights: Weights
    total: Tensor  # sum of the explored rewards of each arm, shape: (m, n)
    explored: Tensor  # explored queries of each arm, shape: (m, n)


@dataclass(frozen=True)
class EXP3R(Strategy[Watched]):
    """EXP3 with drift detection: it begins anew when explored rewards say that another arm is best.

    References:
        R. Allesiardo, R. Féraud. EXP3 with drift detection for the switching bandit problem.
        DSAA 2015, algorithms 2 and 3.

    Args:
        mixing: Probability in (0, 1] of an arm at random, gamma in the paper.
        interval: Queries after which an interval may end, positive, H in the paper.
        doubt: Probability in (0, 1) with which an arm's mean misleads, delta in the paper.

    Raises:
        InvalidArgumentError: If a number is outside its range.
    """

    mixing: float = 0.1
    interval: float = 400.0
    doubt: float = 0.1
    bounded = True
    chooses = False

    def __post_init__(self) -> None:
        check_rate("mixing", self.mixing)
        check(self.mixing > 0, "mixing", "a number in (0, 1]", self.mixing)
        check_positive("interval", self.interval)
        check_probability("doubt", self.doubt)

    def begin(self, trials: int, arms: int, device: torch.device | str = "cpu") -> Watched:
        """Return what is known before the first query."""
        weights = even_weights(trials, arms, device)
        return Watched(weights, weights.total, weights.queries)

    def advise(self, state: Watched, now: int, luck: Tensor) -> Advice:
        """Return an arm drawn by the mixture of weights and chance."""
        return advise(state.weights, luck, self.mixing)

    def learn(self, state: Watched, told: Told) -> Watched:
        """Return the weights after queries, even ones where a drift was detected."""
        weights = raised(state.weights, told, self.mixing)
        explored = (told.query & told.explored).to(told.reward)
        here = torch.zeros_like(state.explored).scatter(-1, told.arm[:, None], explored[:, None])
        total, count = state.total + here * told.reward[:, None], state.explored + here
        enough = self.mixing * self.interval / count.shape[-1]
        over = (count >= enough).all(-1) & told.query
        drifted = over & self._is_drift(weights, total / count.clamp_min(1.0))
        log_weight = torch.where(drifted[:, None], 0.0, weights.log_weight)
        kept = ~over[:, None]
        return Watched(weights._replace(log_weight=log_weight), kept * total, kept * count)

    def _is_drift(self, weights: Weights, mean: Tensor) -> Tensor:
        n = mean.shape[-1]
        width = math.sqrt(n * math.log(1 / self.doubt) / (2 * self.mixing * self.interval))
        played = weights.log_weight.argmax(-1, keepdim=True)
        return (mean - mean.gather(-1, played)).amax(-1) >= 2 * width
