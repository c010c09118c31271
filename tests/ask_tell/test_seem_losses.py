"""Which values look like losses: a table of shapes, and how often random networks are taken for them."""

import math
import random

import pytest

from botorch_costly.ask_tell.observed import seem_losses

ERRORS = [0.9, 0.9, 0.9, 0.88, 0.5, 0.2, 0.05, 0.02]  # of ten classes: three have learnt nothing
LOSSES = [0.4, 0.5, 0.45, 2.3, 0.6, 0.42, 9.0, 0.5]
SHARES = [1 / 64, 1 / 8, 1 / 64, 1 / 8, 1 / 2, 1 / 2, 1.0, 1.0]

SHAPES = {
    "losses, one diverged": (LOSSES, True),
    "losses, two diverged": ([0.31, 0.3, 0.33, 0.36, 0.32, 2.1, 0.34, 5.0], True),
    "perplexities": ([21.0, 22.0, 23.5, 24.0, 22.5, 90.0, 400.0, 23.0], True),
    "error in percent": ([4.8, 5.0, 5.2, 5.1, 6.0, 30.0, 90.0, 5.6], True),
    "accuracies": ([0.1, 0.8, 0.9, 0.91, 0.85, 0.7, 0.3, 0.88], False),
    "accuracies in percent": ([10.0, 80.0, 90.0, 91.0, 85.0, 70.0, 30.0, 88.0], False),
    "-log(error), failures at chance": ([-math.log(e) for e in ERRORS], False),
    "-log10(error)": ([-math.log10(e) for e in ERRORS], False),
    "-log(error), all have learnt": ([1.6, 1.9, 2.0, 2.1, 2.3, 2.4, 2.6, 3.0], False),
    "log-likelihoods": ([-one for one in LOSSES], False),
    "negative losses": ([-0.3, -0.31, -2.3, -0.35, -0.4, -0.32, -9.0, -0.33], False),
    "R2": ([0.1, 0.5, 0.62, 0.6, -3.0, 0.64, 0.55, 0.63], False),
    "rewards near 0": ([0.01, -0.02, 0.03, 0.0, 0.015, -0.01, 0.02, 0.005], False),
    "returns, failures at 0": ([0.0, 0.0, 1.0, 2.0, 0.0, 5.0, 40.0, 0.5], False),
    "all equal": ([2.0] * 8, False),
    "too few": ([0.4, 0.5, 0.6, 9.0], False),
}


@pytest.mark.parametrize("name", SHAPES)
def test_shapes(name):
    values, expected = SHAPES[name]
    assert seem_losses(values) is expected
    assert seem_losses(values[::-1]) is expected


def test_what_rises_with_the_fidelity_is_a_reward():
    rising = [0.11, 0.4, 0.12, 0.3, 0.45, 0.5, 2.9, 3.9]  # -log(error): more data, fewer errors
    falling = [3.9, 0.5, 2.9, 0.45, 0.3, 0.4, 0.12, 0.11]
    assert seem_losses(rising)
    assert not seem_losses(rising, SHARES)
    assert seem_losses(falling, SHARES)
    assert seem_losses(falling, [1.0] * 8)


def learnt(draw, share=1.0):
    """Return the error of a random network: a third of them stay at chance, others learn."""
    if draw.random() < 1 / 3:
        return 0.9
    return min(0.9, 0.02 * math.exp(draw.expovariate(0.7)) * share**-0.5)


def alarms(make, shares=None, runs=300):
    count = 0
    for seed in range(runs):
        draw = random.Random(seed)
        used = None if shares is None else [draw.choice(shares) for _ in range(8)]
        values = [make(draw, 1.0 if used is None else used[i]) for i in range(8)]
        count += seem_losses(values, used)
    return count / runs


def test_rewards_of_random_networks_are_rarely_taken_for_losses():
    def reward(draw, share):
        return -math.log(learnt(draw, share))

    def diverging(draw, share):
        return (
            10.0 * math.exp(draw.gauss(0, 3)) if draw.random() < 0.2 else 0.3 + 0.1 * draw.random()
        )

    assert alarms(reward) < 0.05
    assert alarms(reward, [1 / 64, 1 / 8, 1.0]) < 0.05
    assert alarms(diverging) > 0.6
    assert alarms(diverging, [1 / 64, 1 / 8, 1.0]) > 0.5
