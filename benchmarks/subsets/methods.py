"""Random search and expected improvement at the target, halving over fidelities, a formula, and ours."""

import math
from collections.abc import Generator, Mapping, Sequence

import torch
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

from benchmarks.subsets.multi_fidelity import KnowledgeGradient, MaxValueEntropy
from benchmarks.subsets.play import Maker
from botorch_costly import SubsetDecision, SubsetOptimizer
from botorch_costly.parameters import Plain
from botorch_costly.problems import SubsetProblem
from botorch_costly.rewards.scale import as_number

_FIRST = 4  # random evaluations at the target before there is a model
_SHARES = (1 / 27, 1 / 9, 1 / 3, 1.0)  # of the cost of the target, rung by rung
_BRACKET = 27
_TOKENS_OF_A_SEQUENCE = 2048


class AtTarget:
    """Chooses the best of what was evaluated at the target; before that, any.

    Args:
        problem: What is played on.
        seed: Of its draws.
    """

    def __init__(self, problem: SubsetProblem, seed: int) -> None:
        self.problem = problem
        self.generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(len(problem.targets), generator=self.generator)
        self.order = [problem.targets[i] for i in order.tolist()]
        self.known: dict[int, float] = {}

    def ask(self) -> int | None:
        """Return the next one at random."""
        return next((c for c in self.order if c not in self.known), None)

    def tell(self, candidate: int, value: float, cost: float) -> None:
        """Remember the value."""
        self.known[candidate] = value

    def choice(self) -> int:
        """Return the best one."""
        seen = {c: v for c, v in self.known.items() if c in self.order}
        return max(seen, key=lambda c: seen[c]) if seen else self.order[0]


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
    y = torch.tensor(told, dtype=torch.float64).unsqueeze(-1)
    scaled = (y - y.mean()) / y.std().clamp_min(1e-12)
    model = SingleTaskGP(X, scaled, outcome_transform=None)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    with torch.no_grad():
        return LogExpectedImprovement(model, scaled.max())(points.unsqueeze(-2))


class Halving(AtTarget):
    """Successive halving: cheap evaluations of many, the best third of them at three times the cost.

    Configurations are those at the target; each is evaluated where it was, at the cost nearest to that of
    the rung.
    """

    def __init__(self, problem: SubsetProblem, seed: int) -> None:
        super().__init__(problem, seed)
        self._where: dict[tuple[float, ...], list[int]] = {}
        for number, (config, _) in enumerate(problem.candidates):
            self._where.setdefault(self._key(config), []).append(number)
        self._plan = self._brackets()
        self._last: float | None = None

    @staticmethod
    def _key(config: Mapping[str, Plain]) -> tuple[float, ...]:
        return tuple(round(math.log(as_number(name, v)), 2) for name, v in config.items())

    def _brackets(self) -> Generator[int, float, None]:
        for first in range(0, len(self.order), _BRACKET):
            yield from self._bracket(self.order[first : first + _BRACKET], _SHARES)

    def _bracket(self, rung: list[int], shares: Sequence[float]) -> Generator[int, float, None]:
        for share in shares:
            values: dict[int, float] = {}
            for target in rung:
                number = self._at(target, share)
                values[target] = self.known[number] if number in self.known else (yield number)
            rung = sorted(rung, key=values.__getitem__, reverse=True)[: max(1, len(rung) // 3)]

    def _at(self, target: int, share: float) -> int:
        places = self._where[self._key(self.problem.candidates[target][0])]
        costs = self.problem.costs
        return min(places, key=lambda n: abs(math.log(float(costs[n]) / share)))

    def ask(self) -> int | None:
        """Return the next one of the bracket."""
        try:
            return next(self._plan) if self._last is None else self._plan.send(self._last)
        except StopIteration:
            return None

    def tell(self, candidate: int, value: float, cost: float) -> None:
        """Remember the value."""
        super().tell(candidate, value, cost)
        self._last = value

    def choice(self) -> int:
        """Return the best one at the target, or at the highest cost so far."""
        if any(c in self.order for c in self.known):
            return super().choice()
        if not self.known:
            return self.order[0]
        highest = max(float(self.problem.costs[c]) for c in self.known)
        seen = {c: v for c, v in self.known.items() if float(self.problem.costs[c]) > 0.9 * highest}
        best = max(seen, key=lambda c: seen[c])
        key = self._key(self.problem.candidates[best][0])
        return next(t for t in self.order if self._key(self.problem.candidates[t][0]) == key)


class Hyperband(Halving):
    """Successive halving that begins at each of the rungs in turn, with fewer the dearer they are."""

    def _brackets(self) -> Generator[int, float, None]:
        left = list(self.order)
        while left:
            for first, rungs in enumerate(range(len(_SHARES), 0, -1)):
                many = math.ceil(len(_SHARES) / rungs * 3 ** (rungs - 1))
                rung, left = left[:many], left[many:]
                yield from self._bracket(rung, _SHARES[first:])


class StepLaw(AtTarget):
    """The formula of Step Law, fitted on these data: no evaluation at all."""

    def ask(self) -> int | None:
        """Return nothing."""
        return None

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
        means = self._optimizer.believed([self.problem.candidates[t][0] for t in targets])
        return targets[max(range(len(targets)), key=means.__getitem__)]


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
