"""What a policy paid, held against the rival that turns out best, by paired trials."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

_RESAMPLES = 2000


class Outcome(NamedTuple):
    """What a policy paid in every trial."""

    regret: Tensor  # summed over the rounds, shape: (trials,)
    queries: Tensor  # shape: (trials,)
    horizon: int

    @classmethod
    def of(cls, regret: Sequence[float], queries: Sequence[int], horizon: int) -> "Outcome":
        """Return it from the regret of a round and the queries of a run, by trial."""
        whole = horizon * torch.tensor(regret, dtype=torch.float64)
        return cls(whole, torch.tensor(queries, dtype=torch.float64), horizon)

    @classmethod
    def of_row(cls, row: Mapping[str, Any]) -> "Outcome":
        """Return it from a stored row that holds all trials."""
        return cls.of(row["regret"], row["queries"], row["horizon"])

    def cost(self, price: float) -> Tensor:
        """Return ``L_T``, shape ``(trials,)``."""
        return self.regret + price * self.queries


class Comparison(NamedTuple):
    """What the priced query pays, as a share of what the best rival does."""

    best: str  # the rival that is best on these trials
    ratio: float
    low: float  # 95 % interval of the ratio to this rival
    high: float

    def __str__(self) -> str:
        verdict = "wins" if self.high < 1 else "LOSES" if self.low > 1 else "even"
        return f"{self.ratio:.3f} (95 % {self.low:.3f} to {self.high:.3f}, {verdict})"


def compare(ours: Outcome, rivals: Mapping[str, Outcome], price: float) -> Comparison:
    """Hold a policy against the rival that is best at this price, by a bootstrap of paired trials."""
    costs = {name: outcome.cost(price) for name, outcome in rivals.items()}
    best = min(costs, key=lambda name: float(costs[name].mean()))
    pairs = torch.stack([ours.cost(price), costs[best]])
    trials = pairs.shape[-1]
    generator = torch.Generator().manual_seed(0)
    picks = torch.randint(trials, (_RESAMPLES, trials), generator=generator)
    above, below = pairs[:, picks].mean(-1)
    low, high = (above / below).quantile(pairs.new_tensor([0.025, 0.975])).tolist()
    ratio = float(pairs[0].mean() / pairs[1].mean())
    return Comparison(best, ratio, *((low, high) if trials > 1 else (0.0, math.inf)))
