"""Whatever is heard, what is restored was kept, and few states are held."""

import math
import random

import pytest

import botorch_costly as bc
from tests.cases import quick

SPACES = [
    bc.SearchSpace({"lr": bc.Real(1e-5, 1e-1, log=True), "dropout": bc.Real(0, 0.6)}),
    bc.SearchSpace({"drop": bc.Real(0, 0.6), "k": bc.Integer(0, 5), "c": bc.Choice(["a", "b"])}),
    bc.SearchSpace({"lr": bc.Scheduled(1e-5, 1e-1), "body": bc.Scheduled(1e-3, 1.0)}),
    bc.SearchSpace({"lr": bc.Real(1e-4, 1, log=True)}),
]
_HELD = 8


@pytest.mark.parametrize("seed", quick(range(40), *range(0, 40, 3)))
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


def test_the_state_that_a_search_of_rates_ends_in_is_kept():
    """Kind: a search ends with a configuration whose state was dropped, or never kept."""
    space = bc.SearchSpace({"lr": bc.Scheduled(1e-5, 10.0)})
    tuner = bc.TwinTuner(space, 200, start={"lr": 1e-2})
    losses, held = [0.7, 0.6, 0.2, 2, 2, 2, 1.2, 1.4, 1.1, 1.0], set()
    for _ in range(200):
        decision = tuner.ask()
        held |= {decision.keep} - {None}
        assert decision.restore is None or decision.restore in held
        held -= set(decision.drop)
        if decision.query:
            tuner.tell(decision, losses.pop(0) if losses else 1.0)


def test_a_loss_that_grows_by_orders_of_magnitude_can_be_diagnosed():
    tuner, loss = bc.TwinTuner(SPACES[0], 60), 1e-300
    for _ in range(60):
        decision = tuner.ask()
        if decision.query:
            tuner.tell(decision, loss)
            loss = min(loss * 1e30, 1e300)
    assert "The metric is worse than it was at first" in str(tuner.diagnose())
