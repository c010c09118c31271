"""Recorded evaluations at several fidelities: what a method is told, and what it does not know."""

from collections.abc import Sequence

import torch

from botorch_costly.errors import InvalidShapeError, check
from botorch_costly.space import SearchSpace
from botorch_costly.subset_records import Candidate


class SubsetProblem:
    """Evaluations that were measured once, to play methods on.

    Args:
        space: Of the configurations.
        fidelities: Of the fidelities; the upper bounds are the target.
        candidates: What was evaluated.
        values: What each evaluation came to, larger is better.
        costs: What each has cost, > 0; they are divided by the mean cost of those at the target.
        told: What a method is told of each, such as the logarithm of an error; the value if omitted.

    Raises:
        InvalidShapeError: If there is not one value, cost and number told for each candidate.
        InvalidArgumentError: If nothing was evaluated at the target, or a number is out of range.
    """

    def __init__(
        self,
        space: SearchSpace,
        fidelities: SearchSpace,
        candidates: Sequence[Candidate],
        values: Sequence[float],
        costs: Sequence[float],
        told: Sequence[float] | None = None,
    ) -> None:
        count = len(candidates)
        told = values if told is None else told
        for name, row in (("values", values), ("costs", costs), ("told", told)):
            expected = f"{count} numbers, one for each candidate"
            check(len(row) == count, name, expected, len(row), InvalidShapeError)
        self.space, self.fidelities, self.candidates = space, fidelities, list(candidates)
        for config, _ in self.candidates:
            space.check(config)
        self.values = torch.as_tensor(values, dtype=torch.float64)
        self.told = torch.as_tensor(told, dtype=torch.float64)
        paid = torch.as_tensor(costs, dtype=torch.float64)
        check(bool(self.values.isfinite().all()), "values", "finite numbers", values)
        check(bool(self.told.isfinite().all()), "told", "finite numbers", told)
        check(bool((paid > 0).all() and paid.isfinite().all()), "costs", "numbers > 0", costs)
        at = torch.stack([fidelities.encode(where) for _, where in self.candidates])
        self.targets = (at > 1 - 1e-9).all(-1).nonzero().squeeze(-1).tolist()
        check(len(self.targets) > 0, "candidates", "one at the upper bound of all fidelities", at)
        self.costs = paid / paid[self.targets].mean()

    def __len__(self) -> int:
        return len(self.candidates)

    @property
    def best(self) -> float:
        """The best value at the target."""
        return float(self.values[self.targets].max())

    def regret(self, target: int) -> float:
        """Return by how much a candidate at the target is worse than the best one."""
        return self.best - float(self.values[target])
