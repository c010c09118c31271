"""The tuner as its users meet it: ask and tell, budgets, states, and every wrong input."""

import itertools
import math
import pickle

import pytest
import torch

import botorch_costly as bc
from botorch_costly import errors
from botorch_costly.acquisition import LogBeta
from botorch_costly.models import StreamingGP
from botorch_costly.numerics.stationary import Stationary
from tests.cases import quick
from tests.tuners.online.playing import MIXED, SPACE, SPACES, make, play, reward_of, through_a_file

# -- what it does ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("acquisition", "name"),
    quick(
        itertools.product(["ucb", "ei", "pi"], SPACES),
        *(("ucb", name) for name in SPACES),
        ("ei", "mixed"),
        ("pi", "arms"),
    ),
)
def test_every_decision_belongs_to_the_space(name, acquisition):
    space = SPACES[name]
    tuner = make(space, acquisition=acquisition, query=bc.ConfidenceQuery(0.8))
    for decision in play(tuner, 15):
        space.check(decision.config)
        assert decision.reason
    assert [d.round for d in tuner.decisions] == list(range(15))


@pytest.mark.parametrize("name", SPACES)
def test_it_finds_what_is_best(name):
    """After half a run on a truth that stands still, the tuner plays near its maximum."""
    space = SPACES[name]
    generator = torch.Generator().manual_seed(0)
    target = space.sample(1, generator)[0]

    def reward(config, round):
        return -(space.encode(config) - target).square().sum().item()

    tuner = make(space, forgetting=0.001, noise=0.01, beta=0.25, query=bc.AlwaysQuery())
    played = play(tuner, 60, reward)
    late = sum(reward(d.config, 0) for d in played[40:]) / 20
    random = -(space.sample(500, generator) - target).square().sum(-1).mean().item()
    assert late > 0.15 * random
    assert reward(tuner.best(), 0) > 0.05 * random


def test_the_belief_is_that_of_the_rewards_told():
    """Late, out-of-order and failed tells end in the belief of the finite rewards alone."""
    tuner = make(initial_rounds=12, rewards=bc.RewardScale(1.0, 2.0), lengthscale=0.4)
    decisions = [tuner.ask() for _ in range(12)]
    for i in (5, 0, 11, 3):
        tuner.tell(decisions[i], float(i))
    tuner.tell(decisions[7], math.nan)
    kernel = Stationary("matern52", torch.tensor([0.4]).double(), torch.ones(()).double())
    expected = StreamingGP(kernel, 0.01, 0.5)
    for i in (0, 3, 5, 11):
        x = SPACE.encode(decisions[i].config)
        expected.observe(torch.cat([x, x.new_tensor([i])]), float(i))
    expected.rescale(1.0, 2.0, ((expected.rewards - 1) / 2).clamp(-3, 3))
    X = torch.rand(9, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    belief = tuner.belief
    torch.testing.assert_close(belief.mean_and_covariance(X), expected.mean_and_covariance(X))


def test_minimizing_is_maximizing_the_negative():
    up = make(query=bc.AlwaysQuery())
    down = make(query=bc.AlwaysQuery(), maximize=False)
    ours = play(up, 20)
    theirs = play(down, 20, lambda config, round: -reward_of(config, round))
    assert [d.config for d in ours] == [d.config for d in theirs]
    assert down.observations[3].reward == -up.observations[3].reward  # kept in the user's units


@pytest.mark.parametrize("unit", [2.0**10, 2.0**-30])
def test_rewards_may_come_in_any_unit(unit):
    """The scale of the prior follows the rewards: the same run in points and in millionths."""
    fractions = play(make(query=bc.ConfidenceQuery(0.8)), 30)
    points = play(
        make(query=bc.ConfidenceQuery(0.8)), 30, lambda c, r: unit * reward_of(c, r) + 2 * unit
    )
    for ours, theirs in zip(fractions, points, strict=True):
        if ours.query != theirs.query:  # only a tie goes either way, and then the runs part
            assert (ours.confidence, theirs.confidence) == pytest.approx((0.8, 0.8), abs=1e-5)
            break
        assert ours.config["dropout"] == pytest.approx(theirs.config["dropout"], abs=1e-3)


@pytest.mark.parametrize("name", SPACES)
def test_one_seed_decides_everything(name):
    before = torch.random.get_rng_state()
    first, again, other = (play(make(SPACES[name], seed=s), 15) for s in (1, 1, 2))
    assert first == again
    assert first != other
    assert torch.equal(before, torch.random.get_rng_state())


def test_the_first_round_plays_the_given_start():
    start = {"lr": 1e-3, "dropout": 0.5}
    tuner = make(start=start, initial_rounds=3)
    assert dict(tuner.ask().config) == start


@pytest.mark.parametrize("name", SPACES)
def test_unqueried_rounds_may_play_the_posterior_mean(name):
    """What is queried is unchanged, what is not plays the best of today's mean."""
    space = SPACES[name]
    options = {"query": bc.BernoulliQuery(0.5), "initial_rounds": 10, "beta": 4.0}
    tuner = make(space, unqueried_play="mean", **options)
    published = make(space, **options)
    play(tuner, 10)
    play(published, 10)
    ours, theirs = tuner.ask(), published.ask()
    while ours.query:
        assert ours == theirs
        for asker, decision in ((tuner, ours), (published, theirs)):
            asker.tell(decision, reward_of(decision.config, decision.round))
        ours, theirs = tuner.ask(), published.ask()
    assert theirs.query == ours.query
    everywhere = space.sample(2000, torch.Generator().manual_seed(0))
    rounds = torch.full((2000, 1), float(ours.round), dtype=torch.float64)
    means, _ = tuner.belief.mean_and_variance(torch.cat([everywhere, rounds], -1))
    played = torch.cat([space.encode(ours.config), rounds[0]])
    # The relaxed maximizer is rounded to the nearest options, which need not be the best ones.
    slack = 0.02 if name == "mixed" else 1e-6
    assert tuner.belief.mean_and_variance(played)[0] >= means.max() - slack


def test_a_schedule_of_beta_is_followed():
    asked = []

    def beta(t):
        asked.append(t)
        return LogBeta()(t)

    play(make(beta=beta, initial_rounds=2, query=bc.AlwaysQuery()), 6)
    assert asked == [3, 4, 5, 6]


def test_a_refit_learns_the_lengthscales_and_survives():
    tuner = make(
        refit_every=20, refit_seconds=60.0, learn_forgetting=True, query=bc.AlwaysQuery(), noise=0.3
    )
    play(tuner, 45, lambda c, r: 10 * math.sin(8 * c["dropout"]))
    kernel = tuner.belief.kernel
    by_name = dict(zip(SPACE.names, kernel.lengthscale.tolist(), strict=True))
    assert by_name["dropout"] < by_name["lr"]  # the rewards say nothing about the learning rate
    assert tuner.belief.forgetting != 0.01
    assert tuner.belief.noise < 0.3


# -- budgets --------------------------------------------------------------------------------------


def test_queries_never_exceed_the_budget():
    tuner = make(query=bc.AlwaysQuery(), max_queries=7, initial_rounds=2)
    decisions = play(tuner, 20)
    assert [d.query for d in decisions] == [True] * 7 + [False] * 13
    assert decisions[10].reason == "the budget of 7 queries is spent"
    assert tuner.queries == 7


def test_the_horizon_is_the_end():
    tuner = make(horizon=4)
    play(tuner, 4)
    with pytest.raises(errors.HorizonExceededError, match=r"at most 4 rounds, .* Received 5"):
        tuner.ask()


def test_a_query_that_is_never_told_is_paid_for():
    tuner = make(query=bc.AlwaysQuery(), max_queries=3, initial_rounds=0)
    queries = [tuner.ask().query for _ in range(6)]
    assert queries == [True] * 3 + [False] * 3


def test_a_skipped_round_may_be_told_and_counts_as_a_query():
    tuner = make(query=bc.BernoulliQuery(0.0), initial_rounds=1)
    tuner.ask()
    skipped = tuner.ask()
    assert not skipped.query
    tuner.tell(skipped, 1.0)
    assert tuner.queries == 2
    assert tuner.belief.num_rows == 1


# -- states ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SPACES)
@pytest.mark.parametrize("stop", [1, 17])
def test_a_restored_run_continues_identically(name, stop):
    options = {"query": bc.MixedQuery(5, 40, 60, bc.ConfidenceQuery(0.8)), "refit_every": None}
    whole = make(SPACES[name], **options)
    play(whole, stop)
    state = through_a_file(whole.state_dict())
    rest = play(whole, 15)
    restored = make(SPACES[name], **{**options, "seed": 99})
    restored.load_state_dict(state, changed=["seed"])
    assert play(restored, 15) == rest
    assert restored.history == whole.history


def test_a_restored_run_refits_as_the_whole_one_does():
    options = {"refit_every": 9, "query": bc.AlwaysQuery(), "refit_seconds": 60.0}
    whole = make(**options)
    play(whole, 12)
    restored = make(**options)
    restored.load_state_dict(through_a_file(whole.state_dict()))
    assert play(restored, 12) == play(whole, 12)


def test_a_decision_pending_at_the_stop_may_be_told_after_it():
    tuner = make()
    pending = tuner.ask()
    restored = make()
    restored.load_state_dict(through_a_file(tuner.state_dict()))
    restored.tell(pickle.loads(pickle.dumps(pending)), 1.0)
    assert restored.observations[0].reward == 1.0


def test_a_state_of_another_space_or_version_is_refused():
    state = make(SPACE).state_dict()
    with pytest.raises(
        errors.StateMismatchError, match="state: option parameters: Expected lr, depth"
    ):
        make(MIXED).load_state_dict(state)
    wider = bc.SearchSpace({**dict(SPACE.parameters), "dropout": bc.Real(0.0, 0.9)})
    named = r"option space.dropout: Expected .*0\.9.*Received .*0\.6"
    with pytest.raises(errors.StateMismatchError, match=named):
        make(wider).load_state_dict(state)
    with pytest.raises(errors.StateMismatchError, match="state: option maximize: Expected False"):
        make(SPACE, maximize=False).load_state_dict(state)
    newer = {**state, "header": {**state["header"], "version": 99}}
    with pytest.raises(
        errors.StateMismatchError, match="state: option version: Expected 5; Received 99"
    ):
        make(SPACE).load_state_dict(newer)
    with pytest.raises(errors.StateMismatchError, match="state_dict of OnlineTuner"):
        make(SPACE).load_state_dict({"weights": 1})


@pytest.mark.parametrize("missing", ["ledger", "learner", "strategy", "generator"])
def test_a_damaged_state_changes_nothing(missing):
    tuner = make()
    play(tuner, 8)
    before = tuner.history
    damaged = {k: v for k, v in make().state_dict().items() if k != missing}
    with pytest.raises(errors.StateMismatchError, match="complete state_dict"):
        tuner.load_state_dict(damaged)
    assert tuner.history == before
    assert tuner.belief.num_rows == len(tuner.observations)


# -- what went wrong is named, and nothing is lost ------------------------------------------------


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf, torch.tensor(math.nan)])
def test_a_reward_that_is_not_finite_is_a_failed_query(bad, caplog):
    tuner = make(query=bc.AlwaysQuery())
    play(tuner, 5)
    rows = tuner.belief.num_rows
    seen = tuner.tell(tuner.ask(), bad)
    assert seen.failed
    assert seen.reward is None
    assert tuner.belief.num_rows == rows
    assert tuner.queries == 6
    assert tuner.failed_queries == 1
    assert "The query in round 5 failed" in caplog.text
    assert "1 of them failed" in tuner.summary()
    play(tuner, 3)


def test_a_dead_network_does_not_fill_the_log(caplog):
    tuner = make(query=bc.AlwaysQuery())
    for _ in range(9):
        tuner.tell(tuner.ask(), math.nan)
    assert [record.args[-2] for record in caplog.records] == [1, 2, 4, 8]
    assert tuner.failed_queries == 9


def test_a_query_without_a_reward_yet_is_recorded_and_not_learnt():
    tuner = make()
    tuner.tell(tuner.ask(), None)
    assert tuner.observations[0].reward is None
    assert not tuner.observations[0].failed
    assert tuner.belief.num_rows == 0


@pytest.mark.parametrize("reward", ["0.3", [1.0], True, {}])
def test_a_reward_that_is_no_number_is_refused(reward):
    tuner = make()
    decision = tuner.ask()
    with pytest.raises(errors.InvalidArgumentError, match="reward: Expected a number"):
        tuner.tell(decision, reward)
    tuner.tell(decision, 1.0)


def test_a_decision_is_told_once_and_only_by_who_made_it():
    tuner, stranger = make(seed=1), make(seed=2)
    decision = tuner.ask()
    with pytest.raises(errors.UnknownDecisionError, match="one of the 0 decisions"):
        stranger.tell(decision, 1.0)
    stranger.ask()
    with pytest.raises(errors.UnknownDecisionError, match="one of the 1 decisions"):
        stranger.tell(decision, 1.0)
    tuner.tell(decision, 1.0)
    with pytest.raises(errors.AlreadyToldError, match="the first outcome of round 0"):
        tuner.tell(decision, 2.0)
    assert tuner.observations[0].reward == 1.0


@pytest.mark.parametrize(
    ("options", "error", "name"),
    [
        ({"forgetting": 1.5}, errors.InvalidArgumentError, "forgetting"),
        ({"noise": -0.1}, errors.InvalidArgumentError, "noise"),
        ({"lengthscale": 0.0}, errors.InvalidArgumentError, "lengthscale"),
        ({"beta": -1.0}, errors.InvalidArgumentError, "beta"),
        ({"bandwidth": 0.0}, errors.InvalidArgumentError, "bandwidth"),
        ({"kernel": "cubic"}, errors.InvalidArgumentError, "kernel"),
        ({"acquisition": "thompson"}, errors.InvalidArgumentError, "acquisition"),
        ({"unqueried_play": "median"}, errors.InvalidArgumentError, "unqueried_play"),
        ({"query": 0.5}, errors.InvalidArgumentError, "query"),
        ({"horizon": 0}, errors.InvalidArgumentError, "horizon"),
        ({"max_queries": 61}, errors.InvalidBudgetError, "max_queries"),
        ({"initial_rounds": 61}, errors.InvalidBudgetError, "design rounds"),
        ({"start": {"lr": 1.0, "dropout": 0.1}}, errors.InvalidConfigError, "lr"),
        ({"start": {"learning_rate": 0.1}}, errors.InvalidConfigError, "config"),
        ({"refit_every": 0}, errors.InvalidArgumentError, "every"),
        ({"refit_every": 5, "kernel": "rbf"}, errors.InvalidArgumentError, "refit.every"),
        ({"seed": -1}, errors.InvalidArgumentError, "seed"),
        ({"learn_forgetting": True}, errors.InvalidArgumentError, "forgetting"),
    ],
)
def test_a_wrong_option_is_named(options, error, name):
    with pytest.raises(error, match=rf"{name}: Expected .*; Received "):
        make(**options)


def test_a_space_with_nothing_to_tune_is_named():
    with pytest.raises(errors.InvalidSpaceError, match="something to tune"):
        make(bc.SearchSpace({"only": bc.Choice(["one"])}))


# -- what is left behind --------------------------------------------------------------------------


def test_the_schedule_replays_without_the_tuner(tmp_path):
    tuner = make()
    played = play(tuner, 12)
    tuner.export_schedule(tmp_path / "schedule.json")
    replay = bc.Schedule.from_json(tmp_path / "schedule.json").replay()
    assert [dict(config) for config in replay] == [dict(d.config) for d in played]


def test_history_and_summary_of_an_empty_run():
    tuner = make()
    assert tuner.history == []
    assert tuner.best() is None
    assert "0 of 60 rounds, 0 queries" in tuner.summary()


def test_float32_works_end_to_end():
    tuner = make(dtype=torch.float32, query=bc.ConfidenceQuery(0.8))
    play(tuner, 15)
    assert tuner.belief.rewards.dtype == torch.float32
