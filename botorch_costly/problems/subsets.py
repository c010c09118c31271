"""Recorded evaluations at several fidelities."""

from collections.abc import Sequence

import torch

from botorch_costly.errors import InvalidShapeError, check
from botorch_costly.space import SearchSpace
from botorch_costly.subset_records import Candidate


class SubsetProblem:
    """Evaluations measured once, on which methods are replayed.

    Args:
        space: Search space of the configurations.
        fidelities: Search space of the fidelities; the target is the upper bound of each.
        candidates: Evaluated configurations and their fidelities.
        values: Value of each evaluation, larger is better.
        costs: Cost of each evaluation, > 0; divided by the mean cost of the evaluations at the target.
        told: Number that a method is told for each evaluation, such as the logarithm of an error; the
            value if omitted.

    Raises:
        InvalidShapeError: If ``values``, ``costs`` or ``told`` differ in length from ``candidates``.
        InvalidArgumentError: If no candidate is at the target, or a number is out of range.
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
        reported = values if told is None else told
        for name, numbers in (("values", values), ("costs", costs), ("told", reported)):
            expected = f"{count} numbers, one for each candidate"
            check(len(numbers) == count, name, expected, len(numbers), InvalidShapeError)
        self.space, self.fidelities, self.candidates = space, fidelities, list(candidates)
        for config, _ in self.candidates:
            space.check(config)
        self.values = torch.as_tensor(values, dtype=torch.float64)
        self.told = torch.as_tensor(reported, dtype=torch.float64)
        cost = torch.as_tensor(costs, dtype=torch.float64)
        check(bool(self.values.isfinite().all()), "values", "finite numbers", values)
        check(bool(self.told.isfinite().all()), "told", "finite numbers", reported)
        check(bool((cost > 0).all() and cost.isfinite().all()), "costs", "numbers > 0", costs)
        encoded = torch.stack([fidelities.encode(fidelity) for _, fidelity in self.candidates])
        self.targets = (encoded > 1 - 1e-9).all(-1).nonzero().squeeze(-1).tolist()
        expected = "one at the upper bound of all fidelities"
        check(len(self.targets) > 0, "candidates", expected, encoded)
        self.costs = cost / cost[self.targets].mean()

    def __len__(self) -> int:
        return len(self.candidates)

    @property
    def best(self) -> float:
        """Best value at the target."""
        return float(self.values[self.targets].max())

    def regret(self, target: int) -> float:
        """Return the best value at the target minus that of candidate ``target``."""
        return self.best - float(self.values[target])
