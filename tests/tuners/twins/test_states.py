"""Whatever is heard, what is restored was kept, and few states are held."""

import math
import random

import pytest

import botorch_costly as bc

SPACES = [
    bc.SearchSpace({"lr": bc.Real(1e-5, 1e-1, log=True), "dropout": bc.Real(0, 0.6)}),
    bc.SearchSpace({"drop": bc.Real(0, 0.6), "k": bc.Integer(0, 5), "c": bc.Choice(["a", "b"])}),
    bc.SearchSpace({"lr": bc.Scheduled(1e-5, 1e-1), "body": bc.Scheduled(1e-3, 1.0)}),
    bc.SearchSpace({"lr": bc.Real(1e-4, 1, log=True)}),
]
_HELD = 8


@pytest.mark.parametrize("seed", range(40))
def test_states_that_are_restored_are_held(seed):
    draw = random.Random(seed)
    horizon, sd = draw.choice([3, 10, 25, 60, 150, 300]), draw.choice([0.01, 0.1, 0.5, 2.0])
    odd, slope = draw.choice([0, 0, 0.05, 0.3]), draw.choice([0, 0.05, 0.3])
    tuner = bc.TwinTuner(SPACES[seed % len(SPACES)], horizon, seed=seed)
    held: set[int] = set()
    for _ in range(horizon):
        decision = tuner.ask()
        if decision.keep is not None:
            held.add(decision.keep)
        assert decision.restore is None or decision.restore in held
        held -= set(decision.drop)
        assert len(held) <= _HELD
        if decision.query and draw.random() < 0.95:
            loss = math.exp(1 - slope * math.log(decision.trained + 1) + draw.gauss(0, sd))
            loss = draw.choice([math.inf, math.nan]) if draw.random() < odd else loss
            tuner.tell(decision, loss)
    tuner.space.check(tuner.incumbent)
