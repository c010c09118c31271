r"""EXP3.R: exponential weights that are reset when the best arm seems to have changed.

Explored rounds sample all arms uniformly, so their mean rewards are unbiased. An interval ends when every
arm has ``H mixing / n`` explored queries. With ``k`` the arm of the largest weight, EXP3 is reset if

    mean_i - mean_k >= 2 width  for some arm i,    width = sqrt(n log(1 / delta) / (2 mixing H)),

for the means of the explored queries of the interval. By Hoeffding's inequality for rewards in [0, 1]
the error of a mean exceeds ``width`` with a probability of at most delta.
"""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.bandits.exponential_weights import Weights, advise, even_weights, raised
from botorch_costly.bandits.strategy import Advice, Strategy, Told
from botorch_costly.calls import advised
from botorch_costly.errors import check, check_positive, check_probability, check_rate


class Watched(NamedTuple):
    """Weights, and the explored queries of the current interval."""

    weights: Weights
    total: Tensor  # sum of the explored rewards of each arm, shape: (m, n)
    explored: Tensor  # explored queries of each arm, shape: (m, n)


@advised
@dataclass(frozen=True)
class EXP3R(Strategy[Watched]):
    """EXP3 with drift detection: a reset when the explored rewards of another arm are better.

    References:
        R. Allesiardo, R. Féraud. EXP3 with drift detection for the switching bandit problem.
        DSAA 2015, algorithms 2 and 3.

    Args:
        mixing: Probability in (0, 1] of a random arm, gamma in the paper.
        interval: Queries after which an interval may end, positive, H in the paper.
        doubt: Probability in (0, 1) that an arm's mean exceeds its error bound, delta in the paper.

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
        """Return equal weights without queries."""
        weights = even_weights(trials, arms, device)
        return Watched(weights, weights.total, weights.queries)

    def advise(self, state: Watched, now: int, luck: Tensor) -> Advice:
        """Return an arm drawn from the mixture of the weights and the uniform distribution."""
        return advise(state.weights, luck, self.mixing)

    def learn(self, state: Watched, told: Told) -> Watched:
        """Return the weights after queries, equal ones where a drift was detected."""
        weights = raised(state.weights, told, self.mixing)
        explored = (told.query & told.explored).to(told.reward)
        new = torch.zeros_like(state.explored).scatter(-1, told.arm[:, None], explored[:, None])
        total, count = state.total + new * told.reward[:, None], state.explored + new
        least = self.mixing * self.interval / count.shape[-1]
        ends = (count >= least).all(-1) & told.query
        drifted = ends & self._is_drift(weights, total / count.clamp_min(1.0))
        log_weight = torch.where(drifted[:, None], 0.0, weights.log_weight)
        goes_on = ~ends[:, None]
        return Watched(weights._replace(log_weight=log_weight), goes_on * total, goes_on * count)

    def _is_drift(self, weights: Weights, mean: Tensor) -> Tensor:
        n = mean.shape[-1]
        width = math.sqrt(n * math.log(1 / self.doubt) / (2 * self.mixing * self.interval))
        played = weights.log_weight.argmax(-1, keepdim=True)
        return (mean - mean.gather(-1, played)).amax(-1) >= 2 * width
