"""Entropy search as rivals on recorded evaluations: on all of the data, and on one small part besides."""

from typing import Any

import torch
from botorch.models import MultiTaskGP, SingleTaskGP
from botorch.models.deterministic import DeterministicModel
from torch import Tensor

from benchmarks.harness.gaussian import fitted, standardized
from benchmarks.subsets.base import AtTarget, Modelling, encoded
from botorch_costly.acquisition import EntropySearch, EntropySearchPerCost
from botorch_costly.acquisition.representers import log_improvement
from botorch_costly.models.fidelity_cost import FidelityCost
from botorch_costly.numerics.gumbel import without_replacement
from botorch_costly.problems import SubsetProblem
from botorch_costly.tuners.subsets.belief import log_shares

_POINTS = 30  # one of which is taken to be the optimum
_FIRST = 4  # random evaluations at the target before there is a model
_FIRST_SMALL = 10  # and on a small part, which costs little


def likely_optima(model: Any, rows: Tensor, generator: torch.Generator) -> Tensor:
    """Draw rows without replacement, in proportion to their expected improvement on the best mean."""
    with torch.no_grad():
        best = model.posterior(rows).mean.max()
        improvement = log_improvement(model, rows, best)
    coins = torch.rand(len(rows), generator=generator, dtype=torch.float64)
    return rows[without_replacement(improvement, _POINTS, coins)]


class EntropyAtTarget(AtTarget):
    """Entropy search at the target, with BoTorch's GP."""

    def __init__(self, problem: SubsetProblem, seed: int) -> None:
        super().__init__(problem, seed)
        self.points = encoded(problem, range(len(problem)))[:, : problem.space.dim]

    def ask(self) -> int | None:
        left = [c for c in self.order if c not in self.known]
        if len(self.known) < _FIRST or not left:
            return left[0] if left else None
        y = standardized(torch.tensor(list(self.known.values()), dtype=torch.float64))
        X = self.points[list(self.known)]
        model = fitted(SingleTaskGP(X, y.unsqueeze(-1), outcome_transform=None))
        optima = likely_optima(model, self.points[self.order], self.generator)
        with torch.no_grad():
            values = EntropySearch(model, optima)(self.points[left].unsqueeze(-2))
        return left[int(values.argmax())]


class _CostOfTasks(DeterministicModel):
    """A cost by fidelity as one by task, 0 for the small part and 1 for the target."""

    def __init__(self, cost: FidelityCost, small: float) -> None:
        super().__init__()
        self._num_outputs, self._cost, self._small = 1, cost, small

    def forward(self, X: Tensor) -> Tensor:
        configs, task = X.tensor_split([-1], -1)
        return self._cost(torch.cat([configs, self._small + (1 - self._small) * task], -1))


class MultiTask(Modelling):
    """Multi-task Bayesian optimization: entropy search by cost, on one small part and on all data.

    A ``MultiTaskGP`` of BoTorch models the values of both, a ``FidelityCost`` their costs, by which the
    target is a priori dearer in proportion. The first evaluations are random ones on the small part.

    References:
        K. Swersky, J. Snoek, R. P. Adams. Multi-task Bayesian optimization. NeurIPS 2013.

    Args:
        problem: A problem of one fidelity.
        seed: Seed of the random draws.
        share: The small part.
    """

    def __init__(self, problem: SubsetProblem, seed: int, *, share: float) -> None:
        super().__init__(problem, seed)
        points = encoded(problem, range(len(problem)))
        levels = points[:, -1]
        name = problem.fidelities.names[0]
        self._small = float(problem.fidelities.encode({name: share}))
        task = torch.where(
            levels == 1, 1.0, torch.where(levels.sub(self._small).abs() < 1e-9, 0.0, -1)
        )
        self._encoded, self.points = points, torch.cat([points[:, :-1], task.unsqueeze(-1)], -1)
        order = torch.randperm(len(problem), generator=self.generator).tolist()
        self.order = [number for number in order if task[number] >= 0]

    def ask(self) -> int | None:
        left = [number for number in self.order if number not in self.known]
        small = [number for number in left if self.points[number, -1] == 0]
        if (len(self.known) < _FIRST_SMALL and small) or not left:
            return small[0] if left else None
        model = self._model()
        optima = likely_optima(model, self.points[self.problem.targets], self.generator)
        acquisition = EntropySearchPerCost(model, optima, self._cost())
        with torch.no_grad():
            values = acquisition(self.points[left].unsqueeze(-2))
        return left[int(values.argmax())]

    def _model(self) -> MultiTaskGP:
        numbers = list(self.known)
        y = standardized(torch.tensor(list(self.known.values()), dtype=torch.float64))
        return fitted(
            MultiTaskGP(
                self.points[numbers],
                y.unsqueeze(-1),
                task_feature=-1,
                all_tasks=[0, 1],
                output_tasks=[1],  # one outcome; of rows with a task, theirs counts
                outcome_transform=None,
            )
        )

    def _cost(self) -> _CostOfTasks:
        numbers = list(self.known)
        costs = self.problem.costs[numbers].unsqueeze(-1)
        shares = log_shares(self.problem.fidelities)
        return _CostOfTasks(FidelityCost(self._encoded[numbers], costs, shares), self._small)
