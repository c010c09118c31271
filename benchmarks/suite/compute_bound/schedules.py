"""Where a user may begin, and what a learning rate is multiplied by, round by round."""

import math
from collections.abc import Callable
from typing import Any

from benchmarks.suite.compute_bound.account import AccountedRun, Config
from benchmarks.suite.compute_bound.training import LongProblem

SENSIBLE = "sensible"


def _at_rate(multiple: float) -> Callable[[LongProblem], dict[str, Any]]:
    def start(problem: LongProblem) -> dict[str, Any]:
        return with_rate(problem, dict(problem.default), multiple)

    return start


def with_rate(problem: LongProblem, config: dict[str, Any], multiple: float) -> dict[str, Any]:
    """Return a configuration with so many times its learning rate, within the space."""
    low, high = problem.rates
    rate = min(max(config[problem.rate_name] * multiple, low), high)
    return {**config, problem.rate_name: rate}


STARTS: dict[str, Callable[[LongProblem], dict[str, Any]]] = {
    SENSIBLE: lambda problem: dict(problem.default),
    "slow": _at_rate(1 / 30),
    "fast": _at_rate(10.0),
    "strong": lambda problem: {**problem.default, **problem.strong},
}
"""By name; ``slow`` and ``fast`` have the wrong learning rate, ``strong`` regularizes far too much."""


LATE = 0.2  # of a run, in which the learning rate falls to 0
Schedule = Callable[[int, int], float]


def constant(round: int, rounds: int) -> float:
    """Return 1."""
    return 1.0


def cosine(round: int, rounds: int) -> float:
    """Return half a cosine from 1 in round 0 to 0 after the last of so many rounds."""
    return (1 + math.cos(math.pi * round / rounds)) / 2


def wsd(round: int, rounds: int) -> float:
    """Return 1, and in the last fifth a straight line to 0 after the last round.

    References:
        S. Hu et al. MiniCPM. 2024, section 4: warm-up, stable, decay; here without warm-up.
    """
    late = max(1, math.floor(LATE * rounds + 0.5))
    return min(1.0, (rounds - round) / late)


def finish(
    run: AccountedRun, config: Config, rounds: int, schedule: Schedule, *, origin: int = 0
) -> None:
    """Train through round ``rounds`` of a run with a schedule that began in round ``origin``."""
    while run.round < rounds:
        factor = schedule(run.round - origin, rounds - origin)
        run.train_round(config, rate_factor=factor)
