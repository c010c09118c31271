"""Whether queries keep to their share of the clock, and spend it."""

import math

import pytest

import botorch_costly as bc
from botorch_costly.ask_tell.tariff import NOT_YET
from botorch_costly.errors import InvalidArgumentError
from botorch_costly.query import ConfidenceQuery, MixedQuery, PricedQuery
from tests.cases import quick, slow
from tests.tuners.within_a_share.playing import KINDS, SPACE, START, begun, count_of, make
from tests.validation.clock import Clock

each_kind = pytest.mark.parametrize("kind", KINDS)


PRICES = [(0.01, 0.03), (0.1, 0.03), (1.0, 0.1), (10, 0.25)]  # of a query, and the share


@each_kind
@pytest.mark.parametrize(
    ("price", "overhead", "says"),
    quick(
        [(*both, says) for both in PRICES for says in (False, True)],
        (*PRICES[0], False),
        (*PRICES[2], True),
        (*PRICES[3], False),
    ),
)
def test_queries_keep_to_the_share_whatever_they_cost(kind, says, price, overhead):
    horizon = 60 if kind == "population" else 120
    run = begun(kind, horizon, overhead, price, says=says).rounds(horizon)
    affordable = overhead / (1 - overhead) * horizon / price
    first = 1 if kind != "population" else 2
    later = run.shares[1:]  # the price of the first query was unknown
    assert max(later, default=0.0) <= overhead + 1e-9
    assert first <= run.queries <= max(affordable, first)
    assert run.shares[-1] <= overhead + 1e-9
    if kind == "online":  # one query in each interval at most, and the last one is reserved
        assert run.queries >= 0.5 * min(affordable, 20)
        assert run.decisions[-1].query


@pytest.mark.parametrize("query", [ConfidenceQuery(), slow(PricedQuery()), PricedQuery(price=0.01)])
def test_every_rule_keeps_to_the_share(query):
    run = begun("online", 120, 0.1, 1.0, query=query).rounds(120)
    assert run.queries >= 3
    assert max(run.shares[1:]) <= 0.1 + 1e-9


def test_a_share_of_the_clock_is_a_budget_that_is_spent():
    """A query that costs as much as a round, a tenth of the clock: at an even pace, to the end."""
    run = begun("online", 100, 0.2, 1.0, query=PricedQuery(), hold=bc.Hold(share=0.0)).rounds(100)
    rounds = [decision.round for decision in run.decisions if decision.query]
    assert 0.75 * 25 <= len(rounds) <= 25
    assert sum(number < 50 for number in rounds) <= 0.75 * len(rounds)


@each_kind
def test_the_whole_clock_sets_no_limit(kind):
    run = begun(kind, 30, 1.0, 1e6).rounds(30)
    free = begun(kind, 30, None, 1e6).rounds(30)
    assert [one.config for one in run.decisions] == [one.config for one in free.decisions]
    assert run.queries == free.queries


@each_kind
def test_the_first_rounds_tell_the_seconds_of_training(kind):
    run = begun(kind, 100, 0.1, 0.1).rounds(2)
    assert not run.decisions[0].query
    if kind != "twins":
        assert NOT_YET in run.decisions[1].reason


def test_an_opening_waits_with_the_start_and_takes_a_fifth():
    run = begun("online", 200, 0.1, 2.0).rounds(200)
    design = [one for one in run.decisions if one.query and "initial design" in one.reason]
    assert len(design) == 2  # of eleven queries
    early = [one for one in run.decisions if one.round < design[0].round]
    assert all(one.config == START for one in early)


def test_without_a_start_the_opening_waits_with_its_first_configuration():
    run = begun("online", 100, 0.1, 1.0, start=None).rounds(20)
    first = next(one for one in run.decisions if one.query)
    assert all(one.config == first.config for one in run.decisions[: first.round])


def test_intervals_that_are_not_affordable_do_not_explore():
    """They play the maximizer of the mean, for nobody would hear of anything else."""
    run = begun("online", 120, 0.05, 3.0, hold=bc.Hold(share=0.0)).rounds(120)
    waited = [one for one in run.decisions[60:] if not one.query]
    configs = {tuple(one.config.values()) for one in waited}
    assert len(configs) < len(waited) / 4


def test_a_configuration_is_held_while_there_is_no_time_for_a_decision(monkeypatch):
    """Decisions of five rounds each: a quarter of the share pays for one in 200 rounds."""
    run = begun("online", 300, 0.1, 1.0)
    decider, decided = run.tuner._strategy.proposer._decider, []
    decide = decider.decide

    def slow(*args, **options):
        decided.append(run.clock.seconds)
        run.clock.seconds += 5.0
        return decide(*args, **options)

    monkeypatch.setattr(decider, "decide", slow)
    run.rounds(300)
    assert len(decided) == 2
    held = [
        one
        for one in run.decisions
        if one.reason == "the share of the clock affords no decision yet"
    ]
    assert len(held) >= 5
    configs = {tuple(one.config.values()) for one in run.decisions if decided[0] < one.round < 200}
    assert len(configs) <= 2
    total = run.training + run.querying + 5.0 * len(decided)
    assert (run.querying + 5.0 * len(decided)) / total <= 0.1 + 1e-9


@pytest.mark.parametrize("kind", ["online", "population"])
def test_a_run_without_a_known_end_keeps_to_the_share(kind):
    run = begun(kind, None, 0.1, 1.0).rounds(60)
    assert max(run.shares[1:]) <= 0.1 + 1e-9
    assert run.queries >= 3


def test_a_share_is_spent_at_an_even_pace_where_the_end_is_not_known():
    query = PricedQuery(discount=0.99)
    run = begun("online", None, 0.2, 1.0, query=query, hold=bc.Hold(share=0.0)).rounds(80)
    assert max(run.shares[1:]) <= 0.2 + 1e-9
    assert run.queries >= 8


def test_members_are_queried_together_or_not_at_all_and_at_the_end():
    run = begun("population", 80, 0.2, 1.0).rounds(80)
    assert all(sum(one.queries) in (0, 2) for one in run.decisions)
    assert run.decisions[-1].queries == (True, True)
    waited = [one for one in run.decisions[1:] if not one.query]
    before = [run.decisions[one.round - 1] for one in waited]
    assert any(one.configs == other.configs for one, other in zip(waited, before, strict=True))


def test_twins_begin_a_comparison_that_is_affordable_to_its_end():
    run = begun("twins", 300, 0.1, 1.0).rounds(300)
    assert run.tuner.given_back > 0
    assert max(run.shares) <= 0.1 + 1e-9


@pytest.mark.parametrize("overhead", [0, -0.1, 1.01, math.nan, math.inf, "3 %", True, [0.1]])
@each_kind
def test_a_share_that_is_none_is_named(kind, overhead):
    with pytest.raises(InvalidArgumentError, match="overhead: Expected"):
        make(kind, 20, overhead, Clock())


@pytest.mark.parametrize("query", [PricedQuery(), MixedQuery(1, 2, 9, PricedQuery())])
def test_a_rule_that_spends_a_share_needs_one(query):
    with pytest.raises(InvalidArgumentError, match=r"query: Expected a price.*overhead="):
        bc.OnlineTuner(SPACE, 9, query=query)
    with pytest.raises(InvalidArgumentError, match="query: Expected a rule that compares"):
        bc.PopulationTuner(SPACE, 9, query=query, overhead=0.1)
    arms = bc.SearchSpace({"arm": bc.Choice(["left", "right"])})
    with pytest.raises(InvalidArgumentError, match="query: Expected a price"):
        bc.BanditTuner(arms, 9, query=query)


@each_kind
def test_a_summary_says_what_queries_took_and_what_was_saved(kind):
    run = begun(kind, 100, 0.1, 1.0, says=True)
    assert "no query has been measured" in run.tuner.summary()
    said = run.rounds(100).tuner.summary()
    every = 100 * (2 if kind == "population" else 1)
    spent = run.querying
    assert f"queries took {spent:.3g} s" in said
    assert f"{every - spent:.3g} s less than queries in every round ({every:.3g} s)" in said
    assert "clock" not in begun(kind, 100, None, 1.0).rounds(10).tuner.summary()


@pytest.mark.parametrize("kind", ["online", "population"])
def test_queries_that_are_told_late_are_paid_for(kind):
    run = begun(kind, 120, 0.1, 1.0, says=True)
    waiting, paid = [], 0
    for number in range(120):
        waiting.append(run.tuner.ask())
        run.train()
        paid += count_of(waiting[-1])
        if number % 40 == 39:
            for decision in [decision for decision in waiting if decision.query]:
                run.query(decision)
            waiting = []
    assert 2 <= paid <= 0.1 / 0.9 * 120


def test_a_query_that_is_never_told_is_not_the_last_one():
    run = begun("online", 200, 0.1, 1.0)
    decisions = [(run.tuner.ask(), run.train())[0] for _ in range(200)]
    assert 5 <= sum(decision.query for decision in decisions) <= 0.1 / 0.9 * 200
