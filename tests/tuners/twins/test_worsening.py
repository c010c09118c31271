"""A search of the rate ends in a kept state, where training worsens all networks or breaks them."""

import math
import random

import pytest

import botorch_costly as bc
from tests.tuners.twins.running import RATE, Run, play


def played(start, seed, horizon, breaks):
    """A run whose loss rises, and is NaN after some rounds of a state."""
    draws = random.Random(seed)

    def metric(run):
        rounds = len(run.played)
        return 1 + 0.1 * rounds + 0.05 * draws.gauss(0, 1) if rounds < breaks else math.nan

    tuner = bc.TwinTuner(RATE, horizon, start={"lr": start})
    play(tuner, Run(), metric=metric, rounds=horizon // 2)
    return tuner


@pytest.mark.parametrize(
    ("start", "seed", "horizon"), [(1e-2, 4, 150), (1e-2, 22, 150), (1e-3, 7, 400)]
)
def test_a_loss_that_rises(start, seed, horizon):
    assert played(start, seed, horizon, breaks=1000).given_back > 0


@pytest.mark.parametrize(
    ("start", "breaks", "horizon"), [(1e-3, 4, 150), (1e-4, 7, 400), (1e-2, 16, 400)]
)
def test_all_rates_diverge_after_as_many_rounds(start, breaks, horizon):
    tuner = played(start, breaks + 100 * horizon, horizon, breaks)
    assert tuner.failed_queries > 0
