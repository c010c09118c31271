"""Successive halving and Hyperband over the costs of recorded evaluations."""

import math
from collections.abc import Mapping, Sequence

from benchmarks.subsets.base import Plan, Planned
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
