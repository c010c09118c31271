"""The ceiling of fixed settings: the best of fifty, each judged by a whole run."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch import Generator

from benchmarks.online_suite.protocol import OnlineProblem

CANDIDATES, FINALISTS, FINAL_RUNS = 50, 5, 3
FIRST_SEED = 10_000  # of the search: no seed that anything is reported on


Losses = Callable[[Sequence[tuple[dict[str, Any], int]]], Sequence[float]]


def best_fixed(problem: OnlineProblem, losses: Losses) -> dict[str, Any]:
    """Return the best of fifty fixed configurations, the default among them, or of all if fewer.

    Each trains once and is judged by its last validation loss; the best five train twice more and the
    best of these on average is returned.

    Args:
        problem: What is trained.
        losses: Returns the ``last_loss`` of each pair of a configuration and a seed.
    """
    configs = _candidates(problem)
    first = losses([(config, FIRST_SEED) for config in configs])
    finalists = sorted(range(len(configs)), key=first.__getitem__)[:FINALISTS]
    again = range(FIRST_SEED + 1, FIRST_SEED + FINAL_RUNS)
    later = iter(losses([(configs[i], seed) for i in finalists for seed in again]))
    total = {i: first[i] + sum(next(later) for _ in again) for i in finalists}
    return configs[min(finalists, key=total.__getitem__)]


def last_loss(problem: OnlineProblem, config: Mapping[str, Any], seed: int) -> float:
    """Return the validation loss after a whole run under one configuration."""
    run = problem.setup(seed)
    for _ in range(problem.horizon):
        run.train_round(config)
    return run.validate().loss


def _candidates(problem: OnlineProblem) -> list[dict[str, Any]]:
    if (problem.space.size or CANDIDATES + 1) <= CANDIDATES:
        return [dict(config) for config in problem.space.configurations()]
    others = problem.space.sample(CANDIDATES - 1, Generator().manual_seed(FIRST_SEED))
    return [dict(problem.default), *(problem.space.decode(x) for x in others)]
