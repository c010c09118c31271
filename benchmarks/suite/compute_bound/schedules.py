"""What a learning rate is multiplied by, round by round: a share of its peak."""

import math
from collections.abc import Callable

from benchmarks.suite.compute_bound.account import AccountedRun, Config

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
