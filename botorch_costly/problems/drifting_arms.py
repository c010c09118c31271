r"""Three arms whose rewards drift: the synthetic bandits of Wang et al. (2021).

The paper only plots the curves and gives no numbers; the constants are ours. In each problem all three
arms ``k = 0, 1, 2`` are of one kind, with ``s = t / T`` for round ``t`` of ``T``:

    sine    1/2 + 1/2 sin(2 pi s + 2 pi k / 3)
    bump    1/5 + 3/5 exp(-((s - c_k) / 0.12)^2 / 2),   c = 1/5, 1/2, 4/5
    steps   a level for each quarter of the run:
            0.9, 0.2, 0.2, 0.9        of arm 0
            0.3, 0.9, 0.2, 0.3        of arm 1
            0.1, 0.3, 0.9, 0.2        of arm 2

So every arm is the best for some time, and a query adds noise of variance 0.01. The mean regret per round
of random play is 0.41 on sines, 0.28 on bumps and 0.45 on steps. Heights and the number of changes were
chosen such that the regret of EXP3.S is close to the paper's (0.384, 0.257 and 0.437); no other method
was looked at.
"""

import math
from dataclasses import dataclass, field

import torch
from torch import Tensor

from botorch_costly.errors import check, check_count, check_positive

KINDS = ("sine", "bump", "steps")
_CENTERS, _WIDTH = (0.2, 0.5, 0.8), 0.12
_LEVELS = ((0.9, 0.2, 0.2, 0.9), (0.3, 0.9, 0.2, 0.3), (0.1, 0.3, 0.9, 0.2))


@dataclass(frozen=True)
class DriftingArms:
    """Three arms whose rewards are sines, bumps or steps over time, in [0, 1].

    References:
        J. Wang, M. Ren, I. Bogunovic, Y. Xiong, R. Urtasun. Cost-efficient online hyperparameter
        optimization. 2021, section E.1 and Figure A1.

    Args:
        kind: ``"sine"``, ``"bump"`` or ``"steps"``; the module's docstring has the formulas.
        noise: Noise variance of an observation, positive.

    Raises:
        InvalidArgumentError: If the kind is unknown or the noise is not positive.

    Example:
        >>> DriftingArms("steps").values(horizon=4)
        tensor([[0.9000, 0.3000, 0.1000],
                [0.2000, 0.9000, 0.3000],
                [0.2000, 0.2000, 0.9000],
                [0.9000, 0.3000, 0.2000]], dtype=torch.float64)
    """

    kind: str
    noise: float = 0.01
    arms: int = field(default=3, init=False)

    def __post_init__(self) -> None:
        check(self.kind in KINDS, "kind", f"one of {list(KINDS)}", self.kind)
        check_positive("noise", self.noise)

    def values(self, horizon: int) -> Tensor:
        """Return the mean reward of each arm in each round, shape ``(horizon, 3)``.

        Args:
            horizon: Rounds of the run, at least 1.
        """
        horizon = check_count("horizon", horizon, minimum=1)
        share = torch.arange(horizon, dtype=torch.float64)[:, None] / horizon
        if self.kind == "sine":
            phase = 2 * math.pi * torch.arange(3, dtype=torch.float64) / 3
            return 0.5 + 0.5 * torch.sin(2 * math.pi * share + phase)
        if self.kind == "bump":
            z = (share - torch.tensor(_CENTERS, dtype=torch.float64)) / _WIDTH
            return 0.2 + 0.6 * torch.exp(-0.5 * z.square())
        levels = torch.tensor(_LEVELS, dtype=torch.float64)
        return levels[:, (levels.shape[1] * share[:, 0]).long()].mT
