"""BoTorch's acquisition functions for several fidelities, as rivals on recorded evaluations."""

from abc import ABC, abstractmethod

import torch
from botorch.acquisition import PosteriorMean
from botorch.acquisition.acquisition import AcquisitionFunction
from botorch.acquisition.cost_aware import InverseCostWeightedUtility
from botorch.acquisition.fixed_feature import FixedFeatureAcquisitionFunction
from botorch.acquisition.knowledge_gradient import qMultiFidelityKnowledgeGradient
from botorch.acquisition.max_value_entropy_search import qMultiFidelityMaxValueEntropy
from botorch.models import SingleTaskMultiFidelityGP
from botorch.optim import optimize_acqf
from torch import Tensor

from benchmarks.harness.gaussian import fitted, standardized
from benchmarks.subsets.base import Modelling, encoded
from botorch_costly.models.cost import LogLinearCost
from botorch_costly.problems import SubsetProblem

_CHEAP = 1 / 20  # of the cost of the target: what is looked at first
_POOL = 500


class MultiFidelity(Modelling, ABC):
    """Chooses by BoTorch's GP of several fidelities, fitted each time, and an acquisition function."""

    def __init__(self, problem: SubsetProblem, seed: int) -> None:
        super().__init__(problem, seed)
        self.points = encoded(problem, range(len(problem)))
        self.order = torch.randperm(len(problem), generator=self.generator).tolist()
        self.columns = list(range(problem.space.dim, self.points.shape[1]))
        self._first = 2 * self.points.shape[1] + 2

    def ask(self) -> int | None:
        """Return cheap ones at random, then what the acquisition function likes best."""
        left = [number for number in self.order if number not in self.known]
        if len(self.known) < self._first:
            cheap = [n for n in left if float(self.problem.costs[n]) < _CHEAP]
            return (cheap or left)[0]
        pool = torch.tensor(left)[torch.randperm(len(left), generator=self.generator)[:_POOL]]
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(torch.randint(2**31, (1,), generator=self.generator)))
            return self._best(self._model(), pool)

    @abstractmethod
    def _best(self, model: SingleTaskMultiFidelityGP, pool: Tensor) -> int:
        """Return the number of the pool that is evaluated next."""

    def _model(self) -> SingleTaskMultiFidelityGP:
        y = standardized(torch.tensor(list(self.known.values()), dtype=torch.float64))
        return fitted(
            SingleTaskMultiFidelityGP(
                self.points[list(self.known)],
                y.unsqueeze(-1),
                data_fidelities=self.columns,
                outcome_transform=None,
            )
        )

    def _utility(self) -> InverseCostWeightedUtility:
        numbers = list(self.known)
        costs = self.problem.costs[numbers].unsqueeze(-1)
        return InverseCostWeightedUtility(LogLinearCost(self.points[numbers], costs))

    def _projected(self, X: Tensor) -> Tensor:
        return torch.cat([X[..., : self.columns[0]], torch.ones_like(X[..., self.columns])], -1)


class MaxValueEntropy(MultiFidelity):
    """``qMultiFidelityMaxValueEntropy``, by cost."""

    def _best(self, model: SingleTaskMultiFidelityGP, pool: Tensor) -> int:
        acquisition = qMultiFidelityMaxValueEntropy(
            model,
            candidate_set=self.points[self.problem.targets],
            cost_aware_utility=self._utility(),
            project=self._projected,
        )
        with torch.no_grad():
            values = acquisition(self.points[pool].unsqueeze(-2))
        return int(pool[values.argmax()])


class KnowledgeGradient(MultiFidelity):
    """``qMultiFidelityKnowledgeGradient``, by cost, over the cube; the nearest candidate is taken."""

    def _best(self, model: SingleTaskMultiFidelityGP, pool: Tensor) -> int:
        cube = torch.zeros(2, self.points.shape[1], dtype=torch.float64)
        cube[1] = 1.0
        acquisition = qMultiFidelityKnowledgeGradient(
            model,
            num_fantasies=16,
            current_value=self._current(model, cube),
            cost_aware_utility=self._utility(),
            project=self._projected,
        )
        found, _ = self._optimized(acquisition, cube)
        away = (self.points[pool] - found).abs().sum(-1)
        return int(pool[away.argmin()])

    def _current(self, model: SingleTaskMultiFidelityGP, cube: Tensor) -> Tensor:
        """Return the largest mean at the target."""
        mean = FixedFeatureAcquisitionFunction(
            PosteriorMean(model), cube.shape[1], self.columns, [1.0] * len(self.columns)
        )
        return self._optimized(mean, cube[:, : self.columns[0]])[1]

    def _optimized(self, acquisition: AcquisitionFunction, cube: Tensor) -> tuple[Tensor, Tensor]:
        return optimize_acqf(
            acquisition,
            bounds=cube,
            q=1,
            num_restarts=3,
            raw_samples=64,
            options={"maxiter": 30, "batch_limit": 3},
        )
