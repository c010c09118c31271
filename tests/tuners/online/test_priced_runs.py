"""Runs by priced queries: budgets, units, states, failures, and what cannot be served."""

import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly import errors
from botorch_costly.tuners.online import decider
from botorch_costly.tuners.online.priced_play import best_among
from tests.cases import quick, slow
from tests.tuners.online.playing import ARMS, SPACES, play, priced, reward_of, through_a_file

# -- what is paid ---------------------------------------------------------------------------------


def restless(space, noise=0.7):
    """Rewards in which there is always something to find out."""
    configs = [dict(c) for c in space.configurations()]
    draws = torch.Generator().manual_seed(0)

    def reward(config, round):
        wave = math.sin(3 * configs.index(dict(config)) + round / 5)
        return wave + noise * torch.randn((), generator=draws).item()

    return reward


@pytest.mark.parametrize(
    ("name", "forgetting", "budget"),
    [("arms", 0.01, 6), slow(("arms", 0.01, 24)), ("arms", 0.2, 90), ("lattice", 0.05, 60)],
)
@pytest.mark.parametrize("seed", quick([3, 5, 7], 3))  # each begins with another arm
def test_runs_keep_to_their_budget(name, forgetting, budget, seed):
    space, query = (
        SPACES[name],
        bc.PricedQuery(budget=budget, supersession=0.4, lookahead_weight=0.5),
    )
    tuner = priced(space, query=query, forgetting=forgetting, horizon=120, seed=seed)
    play(tuner, 120, restless(space))
    rounds = [d.round for d in tuner.decisions if d.query]
    assert len(rounds) == tuner.queries == budget
    assert rounds[budget // 2] < 75  # they are not hoarded,
    assert rounds[budget // 2] > 30  # nor squandered


@pytest.mark.parametrize("name", SPACES)
def test_rewards_and_prices_may_come_in_any_unit_and_either_sign(name):
    unit = 1024.0  # exact
    price = 0.2 if name == "lattice" else 0.01
    queries = [
        bc.PricedQuery(p, supersession=0.4, lookahead_weight=0.5) for p in (price, price * unit)
    ]
    small = priced(SPACES[name], query=queries[0], initial_rounds=3)
    ours = play(small, 12)
    large = priced(SPACES[name], query=queries[1], initial_rounds=3, maximize=False)
    theirs = play(large, 12, lambda c, r: -unit * reward_of(c, r))
    assert [(d.config, d.query) for d in ours] == [(d.config, d.query) for d in theirs]
    assert {d.query for d in ours} == {True, False}


@pytest.mark.parametrize("name", SPACES)
def test_a_restored_run_continues_identically(name):
    query = bc.PricedQuery(budget=15)
    whole = priced(SPACES[name], query=query)
    play(whole, 9)
    state = through_a_file(whole.state_dict())
    rest = play(whole, 6)
    restored = priced(SPACES[name], query=query, seed=99)
    restored.load_state_dict(state, changed=["seed"])
    assert play(restored, 6) == rest
    query_values = whole.state_dict()["strategy"]["query_values"]
    assert query_values == restored.state_dict()["strategy"]["query_values"]
    assert len(query_values) == 15 - sum("initial" in d.reason for d in whole.decisions)


def test_an_ask_that_was_interrupted_may_be_repeated(monkeypatch):
    query = bc.PricedQuery(budget=15)
    tuner, calm = (priced(ARMS, query=query, initial_rounds=2) for _ in range(2))
    assert play(tuner, 12) == play(calm, 12)
    before = tuner.state_dict()["strategy"]

    def interrupt(self, decision):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(
            bc.PricedQuery, "explain", interrupt
        )  # after the value of the query was entered
        with pytest.raises(KeyboardInterrupt):
            tuner.ask()
    assert tuner.state_dict()["strategy"] == before
    assert play(tuner, 10) == play(calm, 10)


@pytest.mark.parametrize("query", [bc.PricedQuery(price=0.1), bc.PricedQuery(budget=30)])
def test_failed_queries_are_paid_for_and_not_learnt(query):
    for fails in (lambda r: True, lambda r: r % 2):
        tuner = priced(ARMS, query=query, initial_rounds=0)
        play(tuner, 30, lambda c, r: math.nan if fails(r) else reward_of(c, r))  # noqa: B023
        assert tuner.failed_queries > 0
        assert tuner.queries == sum(d.query for d in tuner.decisions) <= 30


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("reward", [math.nan, None])
def test_where_nothing_is_known_yet_queries_go_on(name, reward):
    """The first query found out nothing, or its reward was not told."""
    tuner = priced(SPACES[name], query=bc.PricedQuery(price=0.001), initial_rounds=0)
    for _ in range(4):
        decision = tuner.ask()
        assert decision.query
        if reward is not None:
            tuner.tell(decision, reward)


def test_query_values_without_an_effective_horizon_are_not_known():
    """The last round has none, nor have those that follow the rule's own horizon."""
    tuner = priced(ARMS, query=bc.PricedQuery(budget=5, horizon=10), initial_rounds=0, horizon=14)
    play(tuner, 14)
    query_values = tuner.state_dict()["strategy"]["query_values"]
    assert [math.isfinite(value) for value in query_values] == [True] * 9 + [False] * 5
    assert not any(map(math.isinf, query_values))


def test_queries_that_are_not_told_are_paid_for():
    tuner = priced(ARMS, query=bc.PricedQuery(budget=5), initial_rounds=0, horizon=20)
    queries = [tuner.ask().query for _ in range(20)]
    assert queries[0]
    assert sum(queries) == 5 == tuner.queries


# -- what it cannot serve -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        bc.PricedQuery(price=0.1),
        bc.PricedQuery(price_seconds=1.0, round_seconds=2.0),
        bc.MixedQuery(2, 20, 60, bc.PricedQuery(price=0.1)),
    ],
)
def test_a_price_in_rewards_needs_their_size(query):
    with pytest.raises(errors.InvalidArgumentError, match="rewards: Expected values, not ran"):
        priced(ARMS, query=query, rewards=bc.RewardScale(ranks=True))


def test_a_budget_needs_only_their_order():
    query, ranks = bc.PricedQuery(budget=20), bc.RewardScale(ranks=True)
    tuner = priced(ARMS, query=query, rewards=ranks, horizon=40)
    play(tuner, 40, lambda c, r: math.exp(5 * reward_of(c, r)))
    assert tuner.queries == 20


def test_without_a_horizon_it_needs_a_discount():
    with pytest.raises(errors.InvalidArgumentError, match="horizon: Expected a number"):
        priced(ARMS, horizon=None)
    tuner = priced(ARMS, query=bc.PricedQuery(price=0.1, discount=0.95), horizon=None)
    assert {d.query for d in play(tuner, 30)} == {True, False}
    own = priced(ARMS, query=bc.PricedQuery(budget=9, horizon=30), horizon=None)
    assert sum(d.query for d in play(own, 30)) == 9


@pytest.mark.parametrize("query", [bc.PricedQuery(budget=9), bc.PricedQuery(price=0.1)])
def test_inside_quotas_it_has_their_horizon(query):
    tuner = priced(ARMS, query=bc.MixedQuery(0, 30, 30, query), horizon=None, forgetting=0.0)
    assert sum(d.query for d in play(tuner, 30)) < 30


def test_more_queries_than_rounds_are_named():
    for query in (bc.PricedQuery(budget=61), bc.MixedQuery(2, 20, 60, bc.PricedQuery(budget=61))):
        with pytest.raises(
            errors.InvalidBudgetError, match="budget: Expected at most 60 rounds; R"
        ):
            priced(ARMS, query=query)
    priced(ARMS, query=bc.PricedQuery(budget=60))


# -- the first round ------------------------------------------------------------------------------


def test_the_first_query_is_weighed_by_points_that_are_spread_over_a_list(monkeypatch):
    considered = []

    def watched(belief, picks, lines, now, outlook):
        considered.append(lines)
        return best_among(belief, picks, lines, now, outlook)

    monkeypatch.setattr(decider, "best_among", watched)
    space = bc.SearchSpace({"n": bc.Integer(1, 200)})
    tuner = priced(space, query=bc.PricedQuery(price=0.1), initial_rounds=0)
    tuner.ask()
    (lines,) = considered
    assert len(lines) == 32
    assert lines.squeeze(-1).sort().values.diff().max() < 0.1
    assert lines.min() < 0.1
    assert lines.max() > 0.9


@pytest.mark.parametrize("hold", [None, bc.Hold(share=0.0, shortest=5)])
def test_prices_of_a_budget_are_the_same_in_a_run_that_is_resumed_in_any_round(hold):
    """Also where a trust region has moved, whose boxes follow from its state."""
    space = bc.SearchSpace({"lr": bc.Real(1e-8, 1e-6, log=True)})
    options = {"query": bc.PricedQuery(budget=9), "start": {"lr": 8e-8}, "horizon": 25}
    options |= {} if hold is None else {"hold": hold}
    tuner = bc.OnlineTuner(space, **options)
    for round in range(12):
        resumed = bc.OnlineTuner(space, **options)
        resumed.load_state_dict(through_a_file(tuner.state_dict()))
        decision = tuner.ask()
        assert resumed.ask() == decision
        if decision.query:
            tuner.tell(decision, math.sin(3.0 * round) + 2 * round % 3)
