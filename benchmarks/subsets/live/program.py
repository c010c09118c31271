"""What is trained live, and searches that choose configurations and fractions of the data freely."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import torch

from benchmarks.subsets.methods import promise
from botorch_costly import SearchSpace, SubsetDecision, SubsetOptimizer

Config = Mapping[str, Any]


class Outcome(NamedTuple):
    """What a training came to."""

    error: float  # share of the validation examples
    seconds: float  # training and validation together


class Program(NamedTuple):
    """A training program."""

    space: SearchSpace  # of the configurations
    fraction: SearchSpace  # of the data, as the one fidelity ``fraction``
    # From a configuration, a fraction and a seed to what came of the training
    trained: Callable[[Config, float, int], Outcome]
    budgets: tuple[
        int, ...
    ]  # seconds after which a method is asked what it would choose, ascending
    checked: int  # validation examples: what the least error is told apart by
    deciding: float = 0.5  # seconds of a decision, as a method may reckon with


_FIRST, _POOL = 4, 2_000


class Method(Protocol):
    """A method that chooses configurations and fractions."""

    def ask(self) -> tuple[Config, float]:
        """Return a configuration, and the fraction of the data to train on."""

    def tell(self, told: float, seconds: float) -> None:
        """Hear what came of what was asked for."""

    def choice(self) -> Config:
        """Return the configuration that it would choose now."""


class OnAll:
    """Random configurations on all of the data; chooses the best, before there is any the middle."""

    def __init__(self, program: Program, seed: int) -> None:
        self.space = program.space
        self.generator = torch.Generator().manual_seed(seed)
        self.points = torch.zeros(0, self.space.dim, dtype=torch.float64)
        self.told: list[float] = []

    def ask(self) -> tuple[Config, float]:
        self.points = torch.cat([self.points, self._next().unsqueeze(0)])
        return self.space.decode(self.points[-1]), 1.0

    def _next(self) -> torch.Tensor:
        return self.space.sample(1, self.generator)[0]

    def tell(self, told: float, seconds: float) -> None:
        self.told.append(told)

    def choice(self) -> Config:
        if not self.told:
            return self.space.decode(torch.full((self.space.dim,), 0.5, dtype=torch.float64))
        return self.space.decode(self.points[max(range(len(self.told)), key=self.told.__getitem__)])


class Improvement(OnAll):
    """The largest log expected improvement of many random configurations."""

    def _next(self) -> torch.Tensor:
        if len(self.told) < _FIRST:
            return super()._next()
        pool = self.space.sample(_POOL, self.generator)
        return pool[promise(self.points, self.told, pool).argmax()]


class Ours:
    """``SubsetOptimizer`` as it comes, told how long a decision takes."""

    def __init__(self, program: Program, seed: int) -> None:
        self._untried = OnAll(program, seed).choice()
        self._optimizer = SubsetOptimizer(
            program.space, program.fraction, overhead=program.deciding, seed=seed
        )
        self._asked: SubsetDecision | None = None

    def ask(self) -> tuple[Config, float]:
        self._asked = self._optimizer.ask()
        return self._asked.config, self._asked.fidelities["fraction"]

    def tell(self, told: float, seconds: float) -> None:
        assert self._asked is not None
        self._optimizer.tell(self._asked, told, cost=seconds)

    def choice(self) -> Config:
        """Return the incumbent; before there is any, the middle."""
        return self._optimizer.incumbent or self._untried


METHODS: dict[str, Callable[[Program, int], Method]] = {
    "random on all": OnAll,
    "LogEI on all": Improvement,
    "SubsetOptimizer": Ours,
}
