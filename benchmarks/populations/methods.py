"""What decides on a population: our tuner, the default alone, chance, and Ray's PB2."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from benchmarks.populations.pb2 import PB2Decider
from benchmarks.populations.play import Decider, Plan, Size
from benchmarks.suite.protocol import OnlineProblem
from botorch_costly import AlwaysQuery, ConfidenceQuery, PopulationTuner, QueryRule
from botorch_costly.tuners.population.selection import replacements


class Ours:
    """``PopulationTuner``, as it comes or with another query rule."""

    def __init__(
        self, problem: OnlineProblem, seed: int, size: Size, query: QueryRule | None = None
    ) -> None:
        self.tuner = PopulationTuner(
            problem.space,
            size.decisions,
            members=size.members,
            start=problem.default,
            query=AlwaysQuery() if query is None else query,
            seed=seed,
        )

    def plan(self) -> Plan:
        """Return the decision of the tuner."""
        self._decision = self.tuner.ask()
        return Plan(self._decision.configs, self._decision.origins, self._decision.queries)

    def hear(self, losses: Sequence[float | None]) -> None:
        """Tell the tuner."""
        self.tuner.tell(self._decision, losses)


class Unchanged:
    """Every member trains with the default, on its own: what the devices are worth without tuning."""

    def __init__(self, problem: OnlineProblem, seed: int, size: Size) -> None:
        members = range(size.members)
        self._plan = Plan(
            [problem.default for _ in members], list(members), [True for _ in members]
        )

    def plan(self) -> Plan:
        """Return the default for each."""
        return self._plan

    def hear(self, losses: Sequence[float | None]) -> None:
        """Nothing is learnt."""


class Chance:
    """Weights are copied as by our tuner; what copies is given a random configuration."""

    def __init__(self, problem: OnlineProblem, seed: int, size: Size) -> None:
        self._space, self._members = problem.space, list(range(size.members))
        self._generator = torch.Generator().manual_seed(seed)
        others = self._space.sample(size.members - 1, self._generator)
        self._points: list[Tensor] = [self._space.encode(problem.default).double(), *others]
        self._origins = self._members

    def plan(self) -> Plan:
        """Return the configurations as they are now."""
        configs: list[Mapping[str, Any]] = [self._space.decode(x) for x in self._points]
        return Plan(configs, self._origins, [True for _ in self._members])

    def hear(self, losses: Sequence[float | None]) -> None:
        """Let the worst go on from the best."""
        levels = {m: math.nan if x is None else -x for m, x in enumerate(losses)}
        moved = replacements(levels)
        self._origins = [moved.get(m, m) for m in self._members]
        for member in moved:
            self._points[member] = self._space.sample(1, self._generator)[0]


Maker = Callable[[OnlineProblem, int, Size], Decider]
METHODS: dict[str, Maker] = {
    "default": Unchanged,
    "random": Chance,
    "PB2": PB2Decider,
    "ours": Ours,
    "ours, confidence 0.9": partial(Ours, query=ConfidenceQuery(0.9)),
}
