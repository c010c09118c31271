"""Methods on recorded evaluations by name: expected improvement at the target, a formula, and ours."""

import math
from collections.abc import Sequence

import torch
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.models import SingleTaskGP
from torch import Tensor

from benchmarks.harness.gaussian import fitted, standardized
from benchmarks.subsets.base import AtTarget, Unevaluated
from benchmarks.subsets.halving import Halving, Hyperband
from benchmarks.subsets.multi_fidelity import KnowledgeGradient, MaxValueEntropy
from benchmarks.subsets.play import Maker
from botorch_costly import SubsetDecision, SubsetOptimizer
from botorch_costly.plain import as_number
from botorch_costly.problems import SubsetProblem

_FIRST = 4  # random evaluations at the target before there is a model
_TOKENS_OF_A_SEQUENCE = 2048


class Improvement(AtTarget):
    """The largest expected improvement at the target, by BoTorch."""

    def ask(self) -> int | None:
        """Return the one that promises most."""
        left = [c for c in self.order if c not in self.known]
        if len(self.known) < _FIRST or not left:
            return left[0] if left else None
        X, told = self._points(list(self.known)), list(self.known.values())
        return left[int(promise(X, told, self._points(left)).argmax())]

    def _points(self, numbers: list[int]) -> Tensor:
        configs = [self.problem.candidates[number][0] for number in numbers]
        return torch.stack([self.problem.space.encode(config) for config in configs])


def promise(X: Tensor, told: Sequence[float], points: Tensor) -> Tensor:
    """Return the log expected improvement at points, by a GP that BoTorch fits to what was told."""
    y = standardized(torch.tensor(told, dtype=torch.float64)).unsqueeze(-1)
    model = fitted(SingleTaskGP(X, y, outcome_transform=None))
    with torch.no_grad():
        return LogExpectedImprovement(model, y.max())(points.unsqueeze(-2))


class StepLaw(Unevaluated):
    """The formula of Step Law, fitted on these data."""

    def choice(self) -> int:
        """Return the candidate nearest to the formula."""
        at = self.problem.candidates[self.order[0]][1]
        lr = 1.79 * at["parameters"] ** -0.713 * at["tokens"] ** 0.307
        batch = 0.58 * at["tokens"] ** 0.571 / _TOKENS_OF_A_SEQUENCE

        def away(target: int) -> float:
            config = self.problem.candidates[target][0]
            logs = {name: math.log(as_number(name, value)) for name, value in config.items()}
            return abs(logs["lr"] - math.log(lr)) + abs(logs["batch"] - math.log(batch))

        return min(self.order, key=away)


class Ours:
    """``SubsetOptimizer`` as it comes, told the candidates, their values and costs.

    Args:
        problem: What is played on.
        seed: Of its draws.
    """

    def __init__(self, problem: SubsetProblem, seed: int) -> None:
        self.problem = problem
        self._optimizer = SubsetOptimizer(
            problem.space, problem.fidelities, candidates=problem.candidates, seed=seed
        )
        self._asked: list[SubsetDecision] = []

    def ask(self) -> int | None:
        """Return what it asks for."""
        decision = self._optimizer.ask()
        wanted = dict(decision.config), dict(decision.fidelities)
        self._asked.append(decision)
        return self.problem.candidates.index(wanted)

    def tell(self, candidate: int, value: float, cost: float) -> None:
        """Tell it."""
        self._optimizer.tell(self._asked.pop(), value, cost=cost)

    def choice(self) -> int:
        """Return the one at the target that it believes best."""
        targets = self.problem.targets
        if not self._optimizer.observations:
            return targets[0]
        posterior = self._optimizer.predict([self.problem.candidates[t][0] for t in targets])
        return targets[0] if posterior is None else targets[int(posterior[0].argmax())]


METHODS: dict[str, Maker] = {
    "random at the target": AtTarget,
    "LogEI at the target": Improvement,
    "halving": Halving,
    "Hyperband": Hyperband,
    "MF-MES": MaxValueEntropy,
    "MF-KG": KnowledgeGradient,
    "Step Law": StepLaw,
    "SubsetOptimizer": Ours,
}
