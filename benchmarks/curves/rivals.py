"""Simple policies: whole trainings at random, a look at many, and successive halving.

References:
    - R. Egele, F. Mohr, T. Viering, P. Balaprakash. The unreasonable effectiveness of early discarding
      after one epoch in neural network hyperparameter optimization. Neurocomputing, 2024.
    - L. Li, K. Jamieson, G. DeSalvo, A. Rostamizadeh, A. Talwalkar. Hyperband. JMLR 18, 2018.
"""

import math

import torch

from benchmarks.curves.play import Ask, Policy, Steps
from botorch_costly.problems import CurveProblem

_FACTOR = 3  # of a rung over the one before
_RUNGS = 4  # of successive halving: 1/27, 1/9, 1/3 and all of a training


def random_search(problem: CurveProblem, seed: int, budget: float) -> Steps:
    """Train configurations to their ends, in random order."""
    for config in _order(problem, seed):
        yield Ask(config, int(problem.lengths[config]))


def look_at_many(share: float | None) -> Policy:
    """Return the policy that trains many for a share, or one iteration, and the best of them to its end.

    Half of the budget goes into looks; then the most promising trainings are finished, one by one.
    """

    def policy(problem: CurveProblem, seed: int, budget: float) -> Steps:
        paid, seen = 0.0, dict[int, float]()
        for config in _order(problem, seed):
            until = _part(problem, config, share)
            told = yield Ask(config, until)
            paid += told.cost
            if not told.broken:
                seen[config] = float(told.curve[-1])
            if paid > budget / 2:
                break
        for config in sorted(seen, key=lambda one: -seen[one]):
            if _part(problem, config, share) < int(problem.lengths[config]):
                yield Ask(config, int(problem.lengths[config]))

    return policy


def halving(problem: CurveProblem, seed: int, budget: float) -> Steps:
    """Play brackets of successive halving, each of 27 configurations, continued from rung to rung."""
    order = _order(problem, seed)
    while order:
        yield from _bracket(problem, order, _RUNGS)


def hyperband(problem: CurveProblem, seed: int, budget: float) -> Steps:
    """Play brackets of 27, 12, 6 and 4 configurations, that begin at later and later rungs."""
    order = _order(problem, seed)
    while order:
        for rungs in range(_RUNGS, 0, -1):
            yield from _bracket(problem, order, rungs)


def _bracket(problem: CurveProblem, order: list[int], rungs: int) -> Steps:
    """Play one bracket of configurations that it takes from ``order``."""
    many = math.ceil(_RUNGS / rungs * _FACTOR ** (rungs - 1))
    alive = [order.pop(0) for _ in range(min(many, len(order)))]
    before: dict[int, int] = {}
    for rung in range(rungs):
        seen: dict[int, float] = {}
        for config in alive:
            until = _part(problem, config, _FACTOR ** (rung + 1 - rungs))
            if until <= before.get(config, 0):
                until = min(before[config] + 1, int(problem.lengths[config]))
            if until > before.get(config, 0):
                told = yield Ask(config, until)
                before[config] = until
                if not told.broken:
                    seen[config] = float(told.curve[-1])
        kept = max(1, len(alive) // _FACTOR)
        alive = sorted(seen, key=lambda one: -seen[one])[:kept]


def _part(problem: CurveProblem, config: int, share: float | None) -> int:
    length = int(problem.lengths[config])
    return 1 if share is None else max(1, math.ceil(share * length - 1e-9))


def _order(problem: CurveProblem, seed: int) -> list[int]:
    return torch.randperm(len(problem), generator=torch.Generator().manual_seed(seed)).tolist()


SIMPLE: dict[str, Policy] = {
    "random": random_search,
    "one iteration": look_at_many(None),
    "a quarter": look_at_many(0.25),
    "halving": halving,
    "hyperband": hyperband,
}

PLANNED = {"one iteration", "a quarter"}  # with what they may spend
