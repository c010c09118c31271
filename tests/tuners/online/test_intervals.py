"""Configurations are held for a share of the rounds so far, and only their last round is queried."""

import copy
import math
from contextlib import nullcontext

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import botorch_costly as bc
from botorch_costly import errors
from botorch_costly.tuners.online.intervals import Intervals
from botorch_costly.tuners.online.proposer import Account
from tests import cases
from tests.tuners.online.grouped import grouped
from tests.tuners.online.playing import SPACE, SPACES, play, reward_of, through_a_file

quick = settings(derandomize=True, deadline=None, max_examples=100)
START = {"lr": 1e-3, "dropout": 0.5}


def held(space=SPACE, **options):
    defaults = {"horizon": 60, "num_restarts": 4, "seed": 3, "hold": 0.1, "shortest_hold": 1}
    return bc.OnlineTuner(space, **grouped({**defaults, **options}))


def places_by_hand(share, rounds, horizon=None, shortest=1):
    """Each round's interval, its first round and its length, one round after the other."""
    places, first, interval = [], 0, 0
    while first < rounds:
        length = max(shortest, int(share * first)) if share else 1
        if horizon is not None:
            length = max(1, min(length, horizon - first))
        places += [(interval, first, length)] * length
        first, interval = first + length, interval + 1
    return places[:rounds]


# -- intervals ----------------------------------------------------------------------------------------


@quick
@given(
    share=st.floats(0, 1),
    horizon=st.none() | st.integers(1, 300),
    shortest=st.integers(1, 5),
    order=st.randoms(),
)
def test_intervals_are_those_counted_by_hand_in_whatever_order_they_are_asked_for(
    share, horizon, shortest, order
):
    rounds = horizon or 300
    expected = places_by_hand(share, rounds, horizon, shortest)
    asked = list(range(rounds))
    order.shuffle(asked)
    intervals = Intervals(share, horizon, shortest)
    for round in asked:
        interval = intervals.at(round)
        assert tuple(interval) == expected[round]
        assert intervals.first_of(interval.number) == interval.first
        assert interval.is_last(round) == (round == interval.first + interval.length - 1)
    assert intervals.within(rounds) == expected[-1][0] + 1


def test_a_last_interval_ends_with_the_run():
    assert Intervals(0.5, 100).at(99).is_last(99)
    assert not Intervals(0.5).at(99).is_last(99)


def test_intervals_are_few_in_a_long_run():
    assert Intervals(0.05).within(200) < 80
    assert Intervals(0.05).within(1_000_000) < 300
    assert Intervals(0.0).within(1_000_000) == 1_000_000


# -- runs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(SPACES))
def test_a_configuration_is_held_and_only_its_end_is_queried_at(name):
    tuner = held(SPACES[name], query=bc.AlwaysQuery())
    decisions = play(tuner, 60)
    places = places_by_hand(0.1, 60, 60)
    assert [d.interval for d in decisions] == [interval for interval, _, _ in places]
    for decision, (_, first, length) in zip(decisions, places, strict=True):
        assert decision.config == decisions[first].config
        assert decision.query == (decision.round == first + length - 1)
        if not decision.query:
            assert decision.reason == f"held (round {decision.round - first + 1} of {length})"
    assert tuner.queries == places[-1][0] + 1


def test_a_rule_that_waits_leaves_whole_intervals_without_a_query():
    tuner = held(query=bc.BernoulliQuery(0.5), initial_rounds=2)
    decisions = play(tuner, 60)
    queried = {d.interval for d in decisions if d.query}
    assert 0 < len(queried) < decisions[-1].interval
    assert tuner.queries == len(queried)


def test_the_belief_counts_intervals():
    plain = {"rewards": bc.RewardScale(clip=math.inf), "noise": 1e-4, "forgetting": 0.0}
    tuner = held(query=bc.AlwaysQuery(), **plain)
    play(tuner, 60, lambda config, round: float(round >= 40))
    assert tuner.belief.inputs[:, -1].tolist() == list(range(tuner.decisions[-1].interval + 1))
    rows = tuner.belief.inputs.clone()
    rows[:, -1] = tuner._intervals.at(60).number
    interval = int(tuner.belief.mean_and_variance(rows)[0].argmax())
    assert tuner.best() == next(dict(d.config) for d in tuner.decisions if d.interval == interval)
    assert interval > 10  # where rounds and intervals are no longer the same


@pytest.mark.parametrize("horizon", cases.quick([60, None], None))
def test_a_price_in_seconds_is_what_training_earns_in_as_many(horizon):
    rule = bc.PricedQuery(price_seconds=6.0, round_seconds=2.0, discount=0.99)
    tuner = held(query=rule, horizon=horizon, rewards=bc.RewardScale(scale=1.0))
    reward = bc.GainReward("loss")
    for round in range(50):
        decision = tuner.ask()
        if decision.query:  # each round lowers the loss by one per cent, whatever it plays
            tuner.tell(decision, reward(0.99**round, decision))
    reward_rate = tuner._strategy.proposer._progress(
        tuner._intervals.at(50), tuner._strategy.learner, Account(tuner.queries)
    ).reward_rate
    assert reward_rate == pytest.approx(-math.log(0.99), rel=0.05)


# -- budgets and quotas count intervals -----------------------------------------------------------------


@pytest.mark.parametrize("queries", cases.quick([5, 20, 100], 20))
@pytest.mark.parametrize(
    ("own", "known"), cases.quick([(True, True), (True, False), (False, True)], (True, False))
)
def test_a_budget_is_spent_exactly_or_all_intervals_are_queried_at(queries, own, known):
    rule = bc.PricedQuery(budget=queries, horizon=100 if own else None)
    told = pytest.warns(UserWarning, match="39 intervals.*hold=") if queries > 39 else nullcontext()
    with told:
        tuner = held(query=rule, horizon=100 if known else None, initial_rounds=1)
    play(tuner, 100)
    intervals = tuner.decisions[-1].interval + 1
    # Without a horizon the last interval, and its query, may end after the rounds that were played.
    assert min(queries, intervals) - (not known) <= tuner.queries <= min(queries, intervals)


@pytest.mark.slow
def test_quotas_bind_runs_of_intervals():
    rule = bc.MixedQuery(20, 25, 100, rule=bc.BernoulliQuery(0.01), hard=True)
    tuner = held(query=rule, horizon=100, initial_rounds=0)
    play(tuner, 100)
    assert 20 <= tuner.queries <= 25
    rule = bc.MixedQuery(90, 95, 100, rule=bc.PricedQuery(budget=95), hard=True)
    with pytest.warns(UserWarning, match="quota of 90 queries cannot be spent"):
        tuner = held(query=rule, horizon=100, initial_rounds=0)
    play(tuner, 100)
    assert tuner.queries == tuner.decisions[-1].interval + 1


def test_nothing_is_explored_for_in_the_last_interval():
    rule = bc.PricedQuery(price=0.05, horizon=100)
    tuner = held(query=rule, horizon=100, rewards=bc.RewardScale(scale=1.0))
    proposer, last = tuner._strategy.proposer, tuner._intervals.at(99)
    counted = proposer._decider._query
    assert (
        counted.effective_horizon(
            proposer._progress(last, tuner._strategy.learner, Account(tuner.queries))
        )
        == 0
    )


@pytest.mark.parametrize(
    "raised", cases.quick([KeyboardInterrupt, RuntimeError], KeyboardInterrupt)
)
@pytest.mark.parametrize("part", ["_choose", "_within_budget"])
@pytest.mark.parametrize("rounds", cases.quick([0, 30, 41], 30))
def test_an_ask_that_was_interrupted_anywhere_changes_nothing(monkeypatch, raised, part, rounds):
    undisturbed = held()
    play(undisturbed, rounds)
    tuner = copy.deepcopy(undisturbed)
    before, method = str(tuner.state_dict()), getattr(tuner._strategy.proposer, part)

    def stumble(*arguments):
        method(*arguments)
        raise raised

    monkeypatch.setattr(tuner._strategy.proposer, part, stumble)
    if part == "_choose" and tuner._intervals.at(rounds).first < rounds:
        return  # nothing is chosen within an interval
    with pytest.raises(raised):
        tuner.ask()
    monkeypatch.undo()
    assert str(tuner.state_dict()) == before
    assert play(tuner, 12) == play(undisturbed, 12)


def test_any_round_of_a_interval_may_be_told():
    tuner = held(query=bc.AlwaysQuery())
    play(tuner, 31)
    decision = tuner.ask()
    assert not decision.query
    queries = tuner.queries
    tuner.tell(decision, 1.0)
    assert tuner.queries == queries + 1
    assert tuner.belief.inputs[-1, -1] == decision.interval


@pytest.mark.parametrize("name", ["cube", "arms"])
@pytest.mark.parametrize("stop", cases.quick([0, 1, 25, 41, 43], 1, 41))
def test_a_run_restored_within_a_interval_goes_on_with_it(name, stop):
    whole, resumed = held(SPACES[name]), held(SPACES[name])
    decisions = play(whole, stop)
    resumed.load_state_dict(through_a_file(whole.state_dict()))
    rest = play(whole, 17)
    assert play(resumed, 17) == rest
    assert [d.round for d in decisions + rest] == list(range(stop + 17))


def test_a_state_of_other_intervals_is_refused():
    tuner = held()
    play(tuner, 45)
    for options in ({"hold": 0.2}, {"shortest_hold": 3}):
        with pytest.raises(errors.StateMismatchError, match="hold"):
            held(**options).load_state_dict(tuner.state_dict())


@pytest.mark.parametrize("shortest", [0, -1, 1.5, True])
def test_a_shortest_interval_that_is_none_is_refused(shortest):
    with pytest.raises(errors.InvalidArgumentError, match="shortest"):
        held(shortest_hold=shortest)


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), "0.1", True])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(errors.InvalidArgumentError, match="share"):
        held(hold=share)


def seen(round, interval):
    return bc.Decision(round, START, query=True, reason="", interval=interval)


def test_gains_are_counted_by_intervals():
    ours, theirs = bc.GainReward("loss"), bc.GainReward("loss")
    assert ours(1.0, seen(40, 30)) is None
    assert theirs(1.0, 30) is None
    assert ours(0.5, seen(49, 32)) == theirs(0.5, 32)


def test_a_second_query_in_a_interval_counts_as_one_interval():
    reward = bc.GainReward("loss")
    reward(1.0, seen(40, 30))
    assert reward(0.5, seen(41, 30)) == pytest.approx(math.log(2))
    with pytest.raises(errors.InvalidArgumentError, match=r"a round after 41, .* Received 41"):
        reward(0.4, seen(41, 30))


def test_a_run_that_is_extended_within_its_last_interval_goes_on():
    short, reward = held(horizon=55), bc.GainReward("loss")
    long = held(horizon=60)

    def train(tuner, rounds):
        for round in rounds:
            decision = tuner.ask()
            if decision.query:
                tuner.tell(decision, reward(0.99**round, decision))

    train(short, range(55))
    with pytest.raises(errors.StateMismatchError, match="option horizon: Expected 60; Received 55"):
        long.load_state_dict(short.state_dict())
    long.load_state_dict(short.state_dict(), changed=["horizon"])
    train(long, range(55, 60))
    assert long.observations[-1].round == 59


def test_a_guard_counts_intervals_as_well():
    rounds, intervals = (bc.GuardedReward(bc.GainReward("loss"), dict, print) for _ in range(2))
    intervals(1.0, seen(40, 30))
    intervals(0.5, seen(49, 32))
    rounds(1.0, 30)
    rounds(0.5, 32)
    assert intervals._kept.smooth == rounds._kept.smooth
    resumed = bc.GuardedReward(bc.GainReward("loss"), dict, print)
    resumed.load_state_dict(through_a_file(intervals.state_dict()))
    assert resumed(0.4, seen(60, 35)) == intervals(0.4, seen(60, 35))


@pytest.mark.parametrize("interval", [-1, 4, 1.5, True])
def test_a_interval_after_its_round_is_refused(interval):
    with pytest.raises(errors.InvalidArgumentError, match="interval"):
        bc.Decision(3, START, query=True, reason="", interval=interval)


# -- defaults -------------------------------------------------------------------------------------


def test_the_published_tuner_decides_every_round_anew_on_rewards_as_they_are():
    ours = bc.OnlineTuner.as_published(SPACE, 30, seed=1, search=bc.Search(num_restarts=4))
    by_hand = bc.OnlineTuner(
        SPACE,
        30,
        query=bc.ConfidenceQuery(),
        seed=1,
        rewards=bc.RewardScale(),
        search=bc.Search(num_restarts=4),
        hold=bc.Hold(share=0.0),
        design=bc.Design(kind="random"),
    )
    by_hand.queries_last = False
    assert play(ours, 30) == play(by_hand, 30)
    assert [d.interval for d in ours.decisions] == list(range(30))


def test_ranks_count_unless_the_rule_reads_rewards():
    ranks = bc.RewardScale(ranks=True, winsorize_lower=0.4)
    assert held(query=bc.AlwaysQuery())._strategy.learner.scale == ranks
    assert held(query=bc.PricedQuery(budget=10))._strategy.learner.scale == ranks
    assert held(query=bc.PricedQuery(price=0.1))._strategy.learner.scale == bc.RewardScale()


@pytest.mark.parametrize(
    ("options", "starts"),
    [
        ({"horizon": 200, "hold": 0.05}, 5),
        ({"horizon": 60}, 3),
        ({"horizon": 5}, 1),
        ({"horizon": 200, "max_queries": 6}, 3),
        ({"horizon": 200, "query": bc.PricedQuery(budget=40)}, 4),
        ({"horizon": None}, 5),
    ],
)
def test_the_start_is_played_for_some_intervals_by_default(options, starts):
    tuner = held(start=START, **options)
    decisions = play(tuner, min(16, options["horizon"] or 16))
    played = {d.interval for d in decisions if dict(d.config) == START}
    assert set(range(starts)) <= played
    assert starts not in played


def test_a_held_run_is_told_in_any_units():
    ours, scaled = held(), held()
    play(ours, 60)
    play(scaled, 60, lambda config, round: 1e6 * reward_of(config, round) - 3)
    assert [d.config for d in ours.decisions] == [d.config for d in scaled.decisions]


# -- rounds of the user -------------------------------------------------------------------------------


def enqueuing(rounds):
    """A tuner whose intervals are of five rounds, after some of its own."""
    tuner = held(hold=0.0001, shortest_hold=5, seed=1)
    for _ in range(rounds):
        tuner.ask()
    return tuner


@pytest.mark.parametrize("rounds", [0, 2, 5, 7, 40, 42])
@pytest.mark.parametrize("played", cases.quick([0, 1, 2], 1))
def test_a_cancelled_configuration_of_the_user_is_held_no_more(rounds, played):
    """The kind: it was held for the rest of its interval, and in states of the run."""
    tuner, other = enqueuing(rounds), enqueuing(rounds + 1 + played)
    mine = tuner.enqueue(START)
    assert all(tuner.ask().config == START for _ in range(played))
    tuner.cancel(mine)
    again = held(hold=0.0001, shortest_hold=5, seed=1)
    again.load_state_dict(through_a_file(tuner.state_dict()))
    expected = [other.ask() for _ in range(10)]
    for each in (tuner, again):
        found = [each.ask() for _ in range(10)]
        assert [d.config for d in found] == [d.config for d in expected]
        assert [d.query for d in found] == [d.query for d in expected]


def test_the_latest_configuration_of_the_user_that_is_not_cancelled_is_held():
    tuner = enqueuing(41)
    first, second = tuner.enqueue(START), tuner.enqueue({**START, "dropout": 0.1})
    assert tuner.ask().config == second.config
    tuner.cancel(second)
    last = tuner.ask()
    assert (last.config, last.query) == (START, True)
    assert tuner.ask().config != START
    tuner.cancel(first)  # its interval is over
    assert tuner.ask().config == tuner.decisions[-2].config
