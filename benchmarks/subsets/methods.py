"""Methods on recorded evaluations by name: expected improvement at the target, a formula, and ours."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch
from botorch.acquisition.analytic import LogExpectedImprovement
from botorch.models import SingleTaskGP
from torch import Tensor

from benchmarks.harness.gaussian import fitted, standardized
from benchmarks.subsets.base import AtTarget, Maker, Plan, Planned, Unevaluated
from benchmarks.subsets.entropy import EntropyAtTarget, MultiTask
from benchmarks.subsets.multi_fidelity import KnowledgeGradient, MaxValueEntropy
from botorch_costly import Fabolas, SubsetDecision, SubsetOptimizer
from botorch_costly.parameters import Plain
from botorch_costly.plain import as_number
from botorch_costly.problems import SubsetProblem

_SHARES = (1 / 27, 1 / 9, 1 / 3, 1.0)  # of the cost of the target, rung by rung
_BRACKET = 27


class Halving(Planned):
    """Successive halving: cheap evaluations of many, the best third of them at three times the cost.

    Configurations are those at the target; each is evaluated where it was, at the cost nearest to that of
    the rung.
    """

    def __init__(self, problem: SubsetProblem, seed: int) -> None:
        super().__init__(problem, seed)
        self._where: dict[tuple[float, ...], list[int]] = {}
        for number, (config, _) in enumerate(problem.candidates):
            self._where.setdefault(self._key(config), []).append(number)

    @staticmethod
    def _key(config: Mapping[str, Plain]) -> tuple[float, ...]:
        return tuple(round(math.log(as_number(name, v)), 2) for name, v in config.items())

    def _plan(self) -> Plan:
        for first in range(0, len(self.order), _BRACKET):
            yield from self._bracket(self.order[first : first + _BRACKET], _SHARES)

    def _bracket(self, rung: list[int], shares: Sequence[float]) -> Plan:
        for share in shares:
            values: dict[int, float] = {}
            for target in rung:
                values[target] = yield from self._value(self._at(target, share))
            rung = sorted(rung, key=values.__getitem__, reverse=True)[: max(1, len(rung) // 3)]

    def _at(self, target: int, share: float) -> int:
        places = self._where[self._key(self.problem.candidates[target][0])]
        costs = self.problem.costs
        return min(places, key=lambda n: abs(math.log(float(costs[n]) / share)))

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

    def _plan(self) -> Plan:
        left = list(self.order)
        while left:
            for first, rungs in enumerate(range(len(_SHARES), 0, -1)):
                many = math.ceil(len(_SHARES) / rungs * 3 ** (rungs - 1))
                rung, left = left[:many], left[many:]
                yield from self._bracket(rung, _SHARES[first:])


_FIRST = 4  # random evaluations at the target before there is a model
_TOKENS_OF_A_SEQUENCE = 2048


class Improvement(AtTarget):
    """The largest expected improvement at the target, by BoTorch."""

    def ask(self) -> int | None:
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
        at = self.problem.candidates[self.order[0]][1]
        lr = 1.79 * at["parameters"] ** -0.713 * at["tokens"] ** 0.307
        batch = 0.58 * at["tokens"] ** 0.571 / _TOKENS_OF_A_SEQUENCE

        def away(target: int) -> float:
            config = self.problem.candidates[target][0]
            logs = {name: math.log(as_number(name, value)) for name, value in config.items()}
            return abs(logs["lr"] - math.log(lr)) + abs(logs["batch"] - math.log(batch))

        return min(self.order, key=away)


class Ours:
    """``SubsetOptimizer`` as it comes, or with options, told the candidates, their values and costs."""

    def __init__(self, problem: SubsetProblem, seed: int, **options: Any) -> None:
        self.problem = problem
        self._optimizer = SubsetOptimizer(
            problem.space,
            problem.fidelities,
            candidates=problem.candidates,
            seed=seed,
            **options,
        )
        self._asked: list[SubsetDecision] = []

    def ask(self) -> int | None:
        decision = self._optimizer.ask()
        wanted = dict(decision.config), dict(decision.fidelities)
        self._asked.append(decision)
        return self.problem.candidates.index(wanted)

    def tell(self, candidate: int, value: float, cost: float) -> None:
        self._optimizer.tell(self._asked.pop(), value, cost=cost)

    def choice(self) -> int:
        """Return what the optimizer recommends, or if it is not at the target, the best mean there."""
        targets = self.problem.targets
        configs = [self.problem.candidates[target][0] for target in targets]
        best = self._optimizer.best()
        if best in configs:
            return targets[configs.index(best)]
        posterior = self._optimizer.predict(configs)
        return targets[0] if posterior is None else targets[int(posterior[0].argmax())]


METHODS: dict[str, Maker] = {
    "random at the target": AtTarget,
    "LogEI at the target": Improvement,
    "entropy search at the target": EntropyAtTarget,
    "halving": Halving,
    "Hyperband": Hyperband,
    "MF-MES": MaxValueEntropy,
    "MF-KG": KnowledgeGradient,
    "MTBO, 1/64": partial(MultiTask, share=1 / 64),
    "MTBO, 1/16": partial(MultiTask, share=1 / 16),
    "Step Law": StepLaw,
    "SubsetOptimizer": Ours,
    "Fabolas as published": partial(Ours, fabolas=Fabolas()),
}
