"""Rounds of the user's inside a run, refused ones, and whatever follows from the order of entries."""

import io

import numpy as np
import pytest
import torch

import botorch_costly as bc
from botorch_costly import errors
from botorch_costly.ask_tell import Domain, Optimizer, Proposal, Strategy
from botorch_costly.errors import check
from botorch_costly.query import AlwaysQuery, PricedQuery
from tests.registry.optimizers import OPTIMIZERS

ARMS = bc.SearchSpace({"arm": bc.Choice(["x", "y", "z"])})
LINE = bc.SearchSpace({"x": bc.Real(0.0, 1.0)})


def test_rounds_of_the_user_count_in_the_clock_of_a_bandit():
    """Its arms drift on: what was told of early rounds is old in the round to come."""
    tuner = bc.BanditTuner(ARMS, 100, query=AlwaysQuery())
    for number in range(40):
        tuner.tell(tuner.enqueue({"arm": "x"}), 0.9 if number < 20 else 0.1)
    now, then = tuner.predict([{"arm": "x"}]), tuner.predict([{"arm": "x"}], 40)
    assert now[0] == pytest.approx(then[0])
    assert now[0] < 0.5


def test_rounds_of_the_user_count_in_the_budget_and_cancelled_ones_do_not():
    tuner = bc.BanditTuner(ARMS, 20, query=PricedQuery(budget=6))
    for _ in range(4):
        tuner.tell(tuner.enqueue({"arm": "x"}), 0.5)
    cancelled = tuner.enqueue({"arm": "y"})
    tuner.cancel(cancelled)
    for _ in range(15):
        decision = tuner.ask()
        if decision.query:
            tuner.tell(decision, 0.5)
    assert tuner.queries == 6


def test_an_online_tuner_learns_from_a_round_beyond_its_trust_region():
    """A learning rate of the user far from the start's is played, and the region stays where it is."""
    space = bc.SearchSpace({"lr": bc.Real(1e-6, 1.0, log=True)})
    tuner = bc.OnlineTuner(space, 30, start={"lr": 1e-3})
    before = tuner.trust_region
    tuner.tell(tuner.enqueue({"lr": 1e-6}), 1.0)
    assert tuner.trust_region == before
    low, high = before["lr"]
    for _ in range(6):
        decision = tuner.ask()
        if decision.query:
            tuner.tell(decision, 0.5)
    assert low <= decision.config["lr"] <= high
    with pytest.raises(errors.InvalidConfigError):
        tuner.enqueue({"lr": 1e-7})


def test_a_round_of_the_user_is_in_its_interval_and_can_be_the_best():
    tuner = bc.OnlineTuner(LINE, 100, hold=bc.Hold(share=0.5, shortest=5))
    for _ in range(7):
        decision = tuner.ask()
        if decision.query:
            tuner.tell(decision, 0.0)
    entered = tuner.enqueue({"x": 0.123})
    assert entered.interval == tuner.interval_of(7) == 1
    tuner.tell(entered, 100.0)
    following = tuner.ask()
    assert (following.interval, following.config["x"]) == (1, 0.123)
    assert tuner.best()["x"] == pytest.approx(0.123)
    again = bc.OnlineTuner(LINE, 100, hold=bc.Hold(share=0.5, shortest=5))
    again.load_state_dict(tuner.state_dict())
    assert [again.ask() for _ in range(9)] == [tuner.ask() for _ in range(9)]


class Careful(Strategy):
    """Refuses enqueued values above 0.8, which it reads from the encoded points."""

    def suggest(self, seen):
        return Proposal({"x": 0.5}, "the middle")

    def entered(self, suggestion, seen):
        point = seen.domain.encode(suggestion.config)
        check(float(point) <= 0.8, "x", "at most 0.8", suggestion.config)

    def learn(self, outcome, seen, *details):
        assert seen.outcomes[-1] == outcome
        check(float(seen.points[-1]) > 0.2, "x", "more than 0.2", outcome.config)


def test_a_strategy_that_refuses_leaves_nothing_behind():
    optimizer = Optimizer(Domain(LINE), Careful(), horizon=5)
    with pytest.raises(errors.InvalidArgumentError, match="at most"):
        optimizer.enqueue({"x": 0.9})
    low = optimizer.enqueue({"x": 0.1})
    with pytest.raises(errors.InvalidArgumentError, match="more than"):
        optimizer.tell(low, 1.0)
    assert optimizer.observations == ()
    assert optimizer.pending == (low,)
    optimizer.tell(optimizer.ask(), 1.0)
    assert optimizer.best() == {"x": 0.5}


@pytest.mark.parametrize("name", ["OnlineTuner", "RandomTuner", "SubsetOptimizer", "TwinTuner"])
def test_costs_of_any_kind_of_number_are_saved_as_plain_ones(name):
    case = OPTIMIZERS[name]
    optimizer = case.make(0)
    decision = optimizer.ask()
    optimizer.tell(decision, 0.5, seconds=np.float64(1.5))
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    again = case.make(0)
    again.load_state_dict(torch.load(file, weights_only=True))
    assert again.total_cost == optimizer.total_cost > 0


def test_a_schedule_is_not_applied_to_a_round_of_the_user():
    space = bc.SearchSpace({"lr": bc.Scheduled(1e-4, 1e-1)})
    tuner = bc.FixedTuner(space, {"lr": 1e-2}, horizon=4)
    for _ in range(3):
        tuner.ask()
    assert tuner.enqueue({"lr": 1e-2}).config["lr"] == 1e-2


def test_a_bandit_that_begins_with_a_round_of_the_user_prices_queries_as_others_do():
    one, other = (bc.BanditTuner(ARMS, 20, query=PricedQuery(price=0.1)) for _ in range(2))
    one.cancel(one.enqueue({"arm": "x"}))
    for tuner in (one, other):
        tuner.ask()
    states = [tuner.state_dict()["player"] for tuner in (one, other)]
    assert states[0]["information_share"] == states[1]["information_share"] < 1
