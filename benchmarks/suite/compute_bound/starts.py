"""Where a user may begin: sensibly, or with one thing far off."""

from collections.abc import Callable
from typing import Any

from benchmarks.suite.compute_bound.training import LongProblem

SENSIBLE = "sensible"


def _at_rate(multiple: float) -> Callable[[LongProblem], dict[str, Any]]:
    def start(problem: LongProblem) -> dict[str, Any]:
        return with_rate(problem, dict(problem.default), multiple)

    return start


def with_rate(problem: LongProblem, config: dict[str, Any], multiple: float) -> dict[str, Any]:
    """Return a configuration with so many times its learning rate, within the space."""
    low, high = problem.rates
    rate = min(max(config["learning_rate"] * multiple, low), high)
    return {**config, "learning_rate": rate}


STARTS: dict[str, Callable[[LongProblem], dict[str, Any]]] = {
    SENSIBLE: lambda problem: dict(problem.default),
    "slow": _at_rate(1 / 30),
    "fast": _at_rate(10.0),
    "strong": lambda problem: {**problem.default, **problem.strong},
}
"""By name; ``slow`` and ``fast`` have the wrong learning rate, ``strong`` regularizes far too much."""
