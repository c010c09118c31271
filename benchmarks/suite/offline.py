"""The ceiling of fixed settings: the best of fifty, each judged by a whole run."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from torch import Generator

from benchmarks.suite.protocol import OnlineProblem

CANDIDATES = 50
# How many go on, and on how many runs each of them has then been judged.
STAGES = ((CANDIDATES, 1), (10, 3), (3, 7))
FIRST_SEED = 10_000  # of the search: no seed that anything is reported on


Losses = Callable[[Sequence[tuple[dict[str, Any], int]]], Sequence[float]]


def best_fixed(problem: OnlineProblem, losses: Losses) -> dict[str, Any]:
    """Return the best of fifty fixed configurations, the default among them, or of all if fewer.

    Each trains once and is judged by its last validation loss; the best ten train twice more, and the
    best three of these four times more. The least loss on average is the best: one that diverges
    now and then is not.

    Args:
        problem: What is trained.
        losses: Returns the ``last_loss`` of each pair of a configuration and a seed.
    """
    found: list[tuple[dict[str, Any], list[float]]] = [(c, []) for c in _candidates(problem)]
    for many, runs in STAGES:
        found = found[:many]
        seeds = range(FIRST_SEED + len(found[0][1]), FIRST_SEED + runs)
        ends = iter(losses([(config, seed) for config, _ in found for seed in seeds]))
        found = [(config, [*seen, *(next(ends) for _ in seeds)]) for config, seen in found]
        found.sort(key=lambda pair: fmean(pair[1]))
    return found[0][0]


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
