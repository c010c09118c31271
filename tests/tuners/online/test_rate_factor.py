"""Without going back a learning rate stays near the start's."""

import math
import random

import pytest

import botorch_costly as bc
from botorch_costly import errors

SPACE = bc.SearchSpace({"lr": bc.Real(1e-5, 1e-1, log=True), "dropout": bc.Real(0.0, 0.6)})
START = {"lr": 1e-3, "dropout": 0.1}


def rates_of(tuner, rounds=60):
    for _ in range(rounds):
        decision = tuner.ask()
        if decision.query:
            tuner.tell(decision, random.Random(decision.round).gauss(0, 1))
    return [decision.config["lr"] for decision in tuner.decisions]


@pytest.mark.parametrize("factor", [1.5, math.sqrt(10), 1e3])
def test_rates_stay_near_the_start(factor):
    rates = rates_of(bc.OnlineTuner(SPACE, 60, start=START, limits=bc.Limits(rate_factor=factor)))
    low, high = max(1e-3 / factor, 1e-5), min(1e-3 * factor, 1e-1)
    assert low * (1 - 1e-9) <= min(rates) < 1e-3 < max(rates) <= high * (1 + 1e-9)
    assert max(rates) / min(rates) > (high / low) ** 0.5  # and the room there is is used


@pytest.mark.parametrize(
    "options",
    [{"limits": bc.Limits(rate_factor=math.inf), "start": START}, {}],
    ids=["asked for", "without a start"],
)
def test_the_whole_range_is_searched(options):
    rates = rates_of(bc.OnlineTuner(SPACE, 60, **options))
    assert max(rates) / min(rates) > 1e3


def test_the_published_tuner_knows_no_limit():
    rates = rates_of(bc.OnlineTuner.as_published(SPACE, 60, start=START), 30)
    assert max(rates) / min(rates) > 1e3


def test_a_start_on_the_edge_and_other_names_for_rates():
    rates = rates_of(bc.OnlineTuner(SPACE, 60, start={**START, "lr": 1e-1}))
    assert max(rates) <= 1e-1
    assert min(rates) >= 1e-1 / math.sqrt(10) * (1 - 1e-9)
    other = bc.SearchSpace({"temperature": bc.Real(1e-5, 1e-1, log=True)})
    tuner = bc.OnlineTuner(other, 60, start={"temperature": 1e-3})
    for _ in range(60):
        tuner.tell(tuner.ask(), 0.0)
    found = [decision.config["temperature"] for decision in tuner.decisions]
    assert max(found) / min(found) > 1e2  # no learning rate


def test_a_resumed_run_knows_its_factor():
    one, other = (bc.OnlineTuner(SPACE, 60, start=START, seed=4) for _ in range(2))
    rates_of(one, 30)
    other.load_state_dict(one.state_dict())
    assert [one.ask().config for _ in range(3)] == [other.ask().config for _ in range(3)]
    changed = bc.OnlineTuner(SPACE, 60, start=START, seed=4, limits=bc.Limits(rate_factor=2.0))
    with pytest.raises(errors.StateMismatchError, match="limits"):
        changed.load_state_dict(one.state_dict())


@pytest.mark.parametrize("factor", [1.0, 0.5, -3, math.nan, "3", None, True])
def test_a_limit_is_a_factor_above_one(factor):
    with pytest.raises(errors.InvalidArgumentError, match="rate_factor"):
        bc.Limits(rate_factor=factor)


def test_a_scheduled_rate_is_refused():
    space = bc.SearchSpace({"lr": bc.Scheduled(1e-5, 1e-1)})
    with pytest.raises(errors.InvalidSpaceError, match="TwinTuner"):
        bc.OnlineTuner(space, 60)
