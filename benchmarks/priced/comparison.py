"""What a policy paid, held against the rival that turns out best, by paired trials."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from benchmarks.harness.statistics import Estimate, paired_ratio


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
    found = paired_ratio(ours.cost(price).tolist(), costs[best].tolist())
    if found is None:  # of a single trial nothing is concluded
        found = Estimate(float(ours.cost(price).mean() / costs[best].mean()), 0.0, math.inf)
    return Comparison(best, *found)
