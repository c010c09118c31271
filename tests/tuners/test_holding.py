"""Configurations are held for a share of the rounds so far, and only their last round is looked at."""

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import botorch_costly as bc
from botorch_costly import errors
from botorch_costly.tuners.holding import Moves
from tests.tuners.playing import SPACE, SPACES, play, reward_of, through_a_file

quick = settings(derandomize=True, deadline=None, max_examples=100)
START = {"lr": 1e-3, "dropout": 0.5}


def held(space=SPACE, **options):
    defaults = {"horizon": 60, "num_restarts": 4, "seed": 3, "hold": 0.1, "shortest_hold": 1}
    return bc.OnlineTuner(space, **{**defaults, **options})


def places_by_hand(share, rounds, horizon=None, shortest=1):
    """Each round's move, its first round and its length, one round after the other."""
    places, first, move = [], 0, 0
    while first < rounds:
        length = max(shortest, int(share * first)) if share else 1
        if horizon is not None:
            length = max(1, min(length, horizon - first))
        places += [(move, first, length)] * length
        first, move = first + length, move + 1
    return places[:rounds]


# -- moves ----------------------------------------------------------------------------------------


@quick
@given(
    share=st.floats(0, 1),
    horizon=st.none() | st.integers(1, 300),
    shortest=st.integers(1, 5),
    order=st.randoms(),
)
def test_moves_are_those_counted_by_hand_in_whatever_order_they_are_asked_for(
    share, horizon, shortest, order
):
    rounds = horizon or 300
    expected = places_by_hand(share, rounds, horizon, shortest)
    asked = list(range(rounds))
    order.shuffle(asked)
    moves = Moves(share, horizon, shortest)
    for round in asked:
        place = moves.at(round)
        assert tuple(place) == expected[round]
        assert moves.first_of(place.move) == place.first
        assert place.is_last(round) == (round == place.first + place.length - 1)
    assert moves.within(rounds) == expected[-1][0] + 1


def test_a_last_move_ends_with_the_run():
    assert Moves(0.5, 100).at(99).is_last(99)
    assert not Moves(0.5).at(99).is_last(99)


def test_moves_are_few_in_a_long_run():
    assert Moves(0.05).within(200) < 80
    assert Moves(0.05).within(1_000_000) < 300
    assert Moves(0.0).within(1_000_000) == 1_000_000


# -- runs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(SPACES))
def test_a_configuration_is_held_and_only_its_end_is_looked_at(name):
    tuner = held(SPACES[name], query=bc.AlwaysQuery())
    decisions = play(tuner, 60)
    places = places_by_hand(0.1, 60, 60)
    assert [d.move for d in decisions] == [move for move, _, _ in places]
    for decision, (_, first, length) in zip(decisions, places, strict=True):
        assert decision.config == decisions[first].config
        assert decision.query == (decision.round == first + length - 1)
        if not decision.query:
            assert decision.reason == f"held (round {decision.round - first + 1} of {length})"
    assert tuner.looks == places[-1][0] + 1


def test_a_rule_that_waits_leaves_whole_moves_without_a_look():
    tuner = held(query=bc.BernoulliQuery(0.5), initial_rounds=2)
    decisions = play(tuner, 60)
    looked = {d.move for d in decisions if d.query}
    assert 0 < len(looked) < decisions[-1].move
    assert tuner.looks == len(looked)


def test_the_belief_counts_moves():
    tuner = held(query=bc.AlwaysQuery())
    play(tuner, 60)
    assert tuner.belief.inputs[:, -1].tolist() == list(range(tuner.decisions[-1].move + 1))
    best = tuner.best()
    assert best in [dict(d.config) for d in tuner.decisions]


def test_a_price_in_seconds_is_what_training_earns_in_as_many():
    rule = bc.PricedQuery(price_seconds=6.0, round_seconds=2.0)
    tuner = held(query=rule, reward_scale=bc.RewardScale(scale=1.0))
    for _ in range(50):
        decision = tuner.ask()
        if decision.query:
            tuner.tell(decision, 0.3)
    place = tuner._moves.at(50)
    assert place.length == 5
    assert tuner._progress(place).income == pytest.approx(0.06)  # a round of five to a move


def test_any_round_of_a_move_may_be_told():
    tuner = held(query=bc.AlwaysQuery())
    play(tuner, 31)
    decision = tuner.ask()
    assert not decision.query
    looks = tuner.looks
    tuner.tell(decision, 1.0)
    assert tuner.looks == looks + 1
    assert tuner.belief.inputs[-1, -1] == decision.move


@pytest.mark.parametrize("name", ["cube", "arms"])
@pytest.mark.parametrize("stop", [0, 1, 25, 41, 43])
def test_a_run_restored_within_a_move_goes_on_with_it(name, stop):
    whole, resumed = held(SPACES[name]), held(SPACES[name])
    decisions = play(whole, stop)
    resumed.load_state_dict(through_a_file(whole.state_dict()))
    rest = play(whole, 60 - stop)
    assert play(resumed, 60 - stop) == rest
    assert len(decisions + rest) == 60


def test_a_state_of_other_moves_is_refused():
    tuner = held()
    play(tuner, 45)
    for options in ({"hold": 0.2}, {"shortest_hold": 3}):
        with pytest.raises(errors.StateMismatchError, match="hold"):
            held(**options).load_state_dict(tuner.state_dict())


@pytest.mark.parametrize("shortest", [0, -1, 1.0, True])
def test_a_shortest_move_that_is_none_is_refused(shortest):
    with pytest.raises(errors.InvalidArgumentError, match="shortest_hold"):
        held(shortest_hold=shortest)


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan"), "0.1", True])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(errors.InvalidArgumentError, match="hold"):
        held(hold=share)


def test_gains_are_counted_by_moves():
    ours, theirs = bc.GainReward("loss"), bc.GainReward("loss")
    first = bc.Decision(40, START, True, "", move=30)
    later = bc.Decision(49, START, True, "", move=32)
    assert ours(1.0, first) is None
    assert theirs(1.0, 30) is None
    assert ours(0.5, later) == theirs(0.5, 32)


def test_a_guard_counts_moves_as_well():
    reward = bc.GuardedReward(bc.GainReward("loss"), dict, lambda state: None)
    reward(1.0, bc.Decision(40, START, True, "", move=30))
    reward(0.9, bc.Decision(49, START, True, "", move=32))
    assert reward._kept.round == 32


@pytest.mark.parametrize("move", [-1, 4, 1.0, True])
def test_a_move_after_its_round_is_refused(move):
    with pytest.raises(errors.InvalidArgumentError, match="move"):
        bc.Decision(3, START, True, "", move=move)


# -- defaults -------------------------------------------------------------------------------------


def test_the_published_tuner_decides_every_round_anew_on_rewards_as_they_are():
    ours = bc.OnlineTuner.as_published(SPACE, 30, num_restarts=4, seed=1)
    by_hand = bc.OnlineTuner(
        SPACE,
        30,
        query=bc.ConfidenceQuery(),
        num_restarts=4,
        seed=1,
        hold=0.0,
        initial_design="random",
        reward_scale=bc.RewardScale(),
    )
    assert play(ours, 30) == play(by_hand, 30)
    assert [d.move for d in ours.decisions] == list(range(30))


def test_ranks_count_unless_the_rule_reads_rewards():
    assert held(query=bc.AlwaysQuery())._learner.scale.ranks
    assert held(query=bc.PricedQuery(looks=10))._learner.scale.ranks
    assert not held(query=bc.PricedQuery(price=0.1))._learner.scale.ranks


@pytest.mark.parametrize(
    ("options", "starts"),
    [
        ({"horizon": 200, "hold": 0.05}, 5),
        ({"horizon": 60}, 3),
        ({"horizon": 5}, 1),
        ({"horizon": 200, "max_looks": 6}, 3),
        ({"horizon": 200, "query": bc.PricedQuery(looks=40)}, 4),
        ({"horizon": None}, 5),
    ],
)
def test_the_start_is_played_for_some_moves_by_default(options, starts):
    tuner = held(start=START, **options)
    decisions = play(tuner, min(30, options["horizon"] or 30))
    played = {d.move for d in decisions if dict(d.config) == START}
    assert played == set(range(starts))


def test_a_held_run_is_told_in_any_units():
    ours, scaled = held(), held()
    play(ours, 60)
    play(scaled, 60, lambda config, round: 1e6 * reward_of(config, round) - 3)
    assert [d.config for d in ours.decisions] == [d.config for d in scaled.decisions]
