"""EXP3.S: exponential weights that are partly shared among all arms, so that a bad arm may recover."""

from dataclasses import dataclass

import torch
from torch import Tensor

from botorch_costly.bandits.exponential_weights import Weights, advise, even_weights, raised
from botorch_costly.bandits.strategy import Advice, Strategy, Told
from botorch_costly.calls import advised
from botorch_costly.errors import check, check_rate


@advised
@dataclass(frozen=True)
class EXP3S(Strategy[Weights]):
    r"""Exponential weights with sharing, for a best arm that changes.

    A query of arm ``i`` with reward ``x`` changes all weights to

    .. math::

        w_j \leftarrow w_j \exp\Big(\frac{\gamma}{n} \hat x_j\Big) + \frac{e \alpha}{n} \sum_k w_k,
        \qquad \hat x_i = x / p_i, \quad \hat x_j = 0 \text{ otherwise}.

    References:
        P. Auer, N. Cesa-Bianchi, Y. Freund, R. Schapire. The nonstochastic multiarmed bandit problem.
        SIAM Journal on Computing 32, 2002, section 8.

    Args:
        mixing: Probability in (0, 1] of a random arm, gamma in the paper.
        sharing: Share in [0, 1] of the weights that is distributed over all arms, alpha in the paper,
            which sets it to one over the number of queries.

    Raises:
        InvalidArgumentError: If a number is outside its range.

    Example:
        >>> strategy = EXP3S(mixing=0.1, sharing=0.001)
        >>> advice = strategy.advise(strategy.begin(trials=1, arms=4), 0, torch.tensor([0.55]))
        >>> advice.arm, advice.probability
        (tensor([2]), tensor([0.2500], dtype=torch.float64))
    """

    mixing: float = 0.1
    sharing: float = 0.001
    bounded = True
    chooses = False

    def __post_init__(self) -> None:
        check_rate("mixing", self.mixing)
        check(self.mixing > 0, "mixing", "a number in (0, 1]", self.mixing)
        check_rate("sharing", self.sharing)

    def begin(self, trials: int, arms: int, device: torch.device | str = "cpu") -> Weights:
        """Return equal weights without queries."""
        return even_weights(trials, arms, device)

    def advise(self, state: Weights, now: int, luck: Tensor) -> Advice:
        """Return an arm drawn from the mixture of the weights and the uniform distribution."""
        return advise(state, luck, self.mixing)

    def learn(self, state: Weights, told: Told) -> Weights:
        """Return the weights after queries."""
        return raised(state, told, self.mixing, self.sharing)
