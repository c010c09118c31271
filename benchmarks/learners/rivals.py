"""All learners on all of the data, halving, Hyperband and screening at one fraction."""

import math
import statistics
from abc import ABC
from collections.abc import Generator
from functools import cache

import torch

from benchmarks.learners.problems import TOLD_EXACTLY, LearnerProblem, data_sets, problem_of
from benchmarks.subsets.base import AtTarget, Plan, Planned, Unevaluated

_ETA, _LEAST = 2, 1 / 64  # of halving: what it goes on with, and the fraction that it begins with
_ETA_OF_HYPERBAND = 3
_SCREENED = 3  # learners that are tried on all of the data after a screening


class PlannedLearners(Planned, ABC):
    """Evaluates what a plan says, then the rest on all of the data, at random.

    Chooses the best of those on the highest fraction that was evaluated.
    """

    problem: LearnerProblem

    def __init__(self, problem: LearnerProblem, seed: int) -> None:
        super().__init__(problem, seed)
        self._learners = [str(problem.candidates[t][0]["learner"]) for t in self.order]

    def ask(self) -> int | None:
        """Return the next one of the plan, or one at random."""
        planned = super().ask()
        return AtTarget.ask(self) if planned is None else planned

    def choice(self) -> int:
        """Return the best learner of those on the highest fraction."""
        if not self.known:
            return self.order[0]
        at = {c: self.problem.candidates[c][1]["fraction"] for c in self.known}
        highest = max(at.values())
        best = max((c for c in at if at[c] == highest), key=self.known.__getitem__)
        return self.problem.places[str(self.problem.candidates[best][0]["learner"])][1.0]

    def _at(self, learners: list[str], fraction: float) -> Generator[int, float, dict[str, float]]:
        """Return the values of learners at a fraction, where each was measured nearest to it."""
        values = {}
        for learner in learners:
            places = self.problem.places[learner]
            number = places[min(places, key=lambda f: abs(math.log(f / fraction)))]
            values[learner] = yield from self._value(number)
        return values


def _best(values: dict[str, float], count: int) -> list[str]:
    return sorted(values, key=values.__getitem__, reverse=True)[: max(1, count)]


class Halving(PlannedLearners):
    """Successive halving: all at a 64th, the better half at twice as much; then from twice as much on.

    Each rung pays for its training from the beginning.
    """

    def _plan(self) -> Plan:
        least = _LEAST
        while least < 1:
            left, fraction = self._learners, least
            while fraction <= 1:
                values = yield from self._at(left, fraction)
                left, fraction = _best(values, math.ceil(len(left) / _ETA)), fraction * _ETA
            least *= _ETA


class Hyperband(PlannedLearners):
    """Brackets of halving by three, from many learners on few rows to few learners on all.

    References:
        L. Li, K. Jamieson, G. DeSalvo, A. Rostamizadeh, A. Talwalkar. Hyperband: a novel bandit-based
        approach to hyperparameter optimization. JMLR 18, 2018.
    """

    def _plan(self) -> Plan:
        least = self.problem.candidates[0][1]["fraction"]
        rungs = math.floor(math.log(1 / least) / math.log(_ETA_OF_HYPERBAND))
        for rung in range(rungs, -1, -1):
            count = math.ceil((rungs + 1) / (rung + 1) * _ETA_OF_HYPERBAND**rung)
            left = self._drawn(min(count, len(self._learners)))
            for step in range(rung, -1, -1):
                values = yield from self._at(left, _ETA_OF_HYPERBAND**-step)
                left = _best(values, len(left) // _ETA_OF_HYPERBAND)

    def _drawn(self, count: int) -> list[str]:
        order = torch.randperm(len(self._learners), generator=self.generator).tolist()
        return [self._learners[place] for place in order[:count]]


class Screening(PlannedLearners):
    """All at one fraction, then the best three on all of the data."""

    def __init__(self, problem: LearnerProblem, seed: int, *, fraction: float) -> None:
        self._fraction = fraction
        super().__init__(problem, seed)

    def _plan(self) -> Plan:
        values = yield from self._at(self._learners, self._fraction)
        yield from self._at(_best(values, _SCREENED), 1.0)


class Doubling(PlannedLearners):
    """All on the fewest rows, then the best so far on twice as many, until that is all of the data.

    What is compared are the values of each learner on its most rows.
    """

    def _plan(self) -> Plan:
        at = dict.fromkeys(self._learners, 0.0)
        values: dict[str, float] = {}
        for learner in self._learners:
            at[learner] = min(self.problem.places[learner])
            values |= yield from self._at([learner], at[learner])
        while any(fraction < 1 for fraction in at.values()):
            best = _best({name: values[name] for name in at if at[name] < 1}, 1)
            at[best[0]] = min(1.0, _ETA * at[best[0]])
            values |= yield from self._at(best, at[best[0]])


class MostlyBest(Unevaluated):
    """The learner with the least median regret on the data sets that choose."""

    problem: LearnerProblem

    def choice(self) -> int:
        known = {
            str(self.problem.candidates[target][0]["learner"]): target for target in self.order
        }
        return next(known[learner] for learner in ranking() if learner in known)


@cache
def ranking() -> list[str]:
    """Return the learners by their median regret on the data sets that choose, least first."""
    regrets: dict[str, list[float]] = {}
    for data_set in data_sets("choose"):
        problem = problem_of(data_set, TOLD_EXACTLY)
        for target in problem.targets:
            learner = str(problem.candidates[target][0]["learner"])
            regrets.setdefault(learner, []).append(problem.regret(target))
    return sorted(regrets, key=lambda learner: statistics.median(regrets[learner]))
