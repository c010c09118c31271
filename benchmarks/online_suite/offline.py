"""The ceiling of fixed settings: the best of fifty, each judged by a whole run."""

from typing import Any

from torch import Generator

from benchmarks.online_suite.protocol import OnlineProblem

CANDIDATES, FINALISTS, FINAL_RUNS = 50, 5, 3
FIRST_SEED = 10_000  # of the search: no seed that anything is reported on


def best_fixed(problem: OnlineProblem) -> dict[str, Any]:
    """Return the best of fifty fixed configurations, the default among them.

    Each trains once and is judged by its last validation loss; the best five train twice more and the
    best of these on average is returned.
    """
    generator = Generator().manual_seed(FIRST_SEED)
    others = problem.space.sample(CANDIDATES - 1, generator)
    configs = [dict(problem.default), *(problem.space.decode(x) for x in others)]
    losses = [[_last_loss(problem, config, FIRST_SEED)] for config in configs]
    finalists = sorted(range(CANDIDATES), key=lambda i: losses[i][0])[:FINALISTS]
    for i in finalists:
        losses[i] += [
            _last_loss(problem, configs[i], FIRST_SEED + run) for run in range(1, FINAL_RUNS)
        ]
    return configs[min(finalists, key=lambda i: sum(losses[i]))]


def _last_loss(problem: OnlineProblem, config: dict[str, Any], seed: int) -> float:
    run = problem.setup(seed)
    for _ in range(problem.horizon):
        run.train_round(config)
    return run.validate().loss
