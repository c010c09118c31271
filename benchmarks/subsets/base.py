"""What methods on recorded evaluations share: a memory, a model, the best at the target, and plans."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Protocol

import torch
from botorch.models.gpytorch import GPyTorchModel
from torch import Tensor

from botorch_costly.problems import SubsetProblem

_ROUNDING = 1 + 1e-9  # of sums of costs


def encoded(problem: SubsetProblem, numbers: Iterable[int]) -> Tensor:
    """Return candidates as rows, configurations and then fidelities, ``n x d``."""
    chosen = [problem.candidates[number] for number in numbers]
    return torch.stack(
        [torch.cat([problem.space.encode(x), problem.fidelities.encode(at)]) for x, at in chosen]
    )


class Method(Protocol):
    """A method that chooses evaluations; told the values of those alone."""

    @abstractmethod
    def ask(self) -> int | None:
        """Return the number of a candidate that was not asked for; None if it wants no more."""

    @abstractmethod
    def tell(self, candidate: int, value: float, cost: float) -> None:
        """Hear what an evaluation came to."""

    @abstractmethod
    def choice(self) -> int:
        """Return the candidate at the target that it would choose now."""


Maker = Callable[[SubsetProblem, int], Method]
"""Makes a method from a problem, of which it may read all but the values, and a seed."""


def play(
    problem: SubsetProblem,
    make: Maker,
    seed: int,
    budgets: Sequence[float],
    most: float = math.inf,
) -> tuple[list[float], int]:
    """Return the regret of what is chosen when each budget is spent, and the number of evaluations.

    Budgets are in mean costs of an evaluation at the target, ascending. An evaluation that goes beyond a
    budget does not count for it. After ``most`` evaluations none is made.
    """
    method, paid, regrets, asked = make(problem, seed), 0.0, list[float](), 0
    while len(regrets) < len(budgets):
        candidate = method.ask() if asked < most else None
        cost = float("inf") if candidate is None else float(problem.costs[candidate])
        while len(regrets) < len(budgets) and paid + cost > _ROUNDING * budgets[len(regrets)]:
            regrets.append(problem.regret(method.choice()))
        if candidate is not None:
            method.tell(candidate, float(problem.told[candidate]), cost)
            paid, asked = paid + cost, asked + 1
    return regrets, asked


class Remembering(Method, ABC):
    """Remembers what it is told."""

    def __init__(self, problem: SubsetProblem, seed: int) -> None:
        self.problem = problem
        self.generator = torch.Generator().manual_seed(seed)
        self.known: dict[int, float] = {}

    def tell(self, candidate: int, value: float, cost: float) -> None:
        self.known[candidate] = value


class Modelling(Remembering, ABC):
    """Chooses the target of the best mean of a model of what it was told.

    Attributes:
        points: Rows of all candidates, as the model reads them, ``n x d``.
    """

    points: Tensor

    @abstractmethod
    def _model(self) -> GPyTorchModel:
        """Return the model of what it was told, at least two values."""

    def choice(self) -> int:
        targets = self.problem.targets
        if len(self.known) < 2:
            return targets[0]
        model = self._model()
        with torch.no_grad():
            return targets[int(model.posterior(self.points[targets]).mean.argmax())]


class AtTarget(Remembering):
    """Random search at the target; chooses the best of what was evaluated there, before that any."""

    def __init__(self, problem: SubsetProblem, seed: int) -> None:
        super().__init__(problem, seed)
        order = torch.randperm(len(problem.targets), generator=self.generator)
        self.order = [problem.targets[i] for i in order.tolist()]

    def ask(self) -> int | None:
        return next((c for c in self.order if c not in self.known), None)

    def choice(self) -> int:
        seen = {c: v for c, v in self.known.items() if c in self.order}
        return max(seen, key=seen.__getitem__) if seen else self.order[0]


class Unevaluated(AtTarget, ABC):
    """Chooses without any evaluation."""

    def ask(self) -> int | None:
        return None


Plan = Generator[int, float, None]
"""Numbers of candidates to evaluate, each answered by its value."""


class Planned(AtTarget, ABC):
    """Evaluates what a plan says."""

    def __init__(self, problem: SubsetProblem, seed: int) -> None:
        super().__init__(problem, seed)
        self._steps = self._plan()
        self._last: float | None = None

    @abstractmethod
    def _plan(self) -> Plan:
        """Return the plan; it begins when it is first asked, when all of the method is there."""

    def ask(self) -> int | None:
        try:
            return next(self._steps) if self._last is None else self._steps.send(self._last)
        except StopIteration:
            return None

    def tell(self, candidate: int, value: float, cost: float) -> None:
        super().tell(candidate, value, cost)
        self._last = value

    def _value(self, number: int) -> Generator[int, float, float]:
        """Return the value of a candidate, evaluated if it is not known."""
        return self.known[number] if number in self.known else (yield number)
