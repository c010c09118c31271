"""Where the tuner might be left half-changed, slow down, or repeat itself."""

import copy
import dataclasses
import math

import numpy as np
import pytest
import torch

import botorch_costly as bc
from botorch_costly import errors
from botorch_costly.acquisition import fixed_round
from botorch_costly.models import StreamingGP
from botorch_costly.query import ConfidenceQuery, Verdict
from botorch_costly.tuners.online import decider, learner
from tests.cases import quick
from tests.tuners.online.playing import SPACE, make, play, reward_of, through_a_file
from tests.tuners.online.states import SPACES, count_slowly, same

# -- what was raised leaves the tuner as it was ---------------------------------------------------


class Stumbling(ConfidenceQuery):
    """Raises once, after the search for rivals has drawn and moved its warm starts."""

    stumbled = False

    def __call__(self, comparison, progress, generator):
        if progress.round == 12 and not Stumbling.stumbled:
            Stumbling.stumbled = True
            torch.rand(3, generator=generator)
            raise KeyboardInterrupt
        return super().__call__(comparison, progress, generator)


@pytest.mark.parametrize("name", SPACES)
def test_an_ask_that_was_interrupted_may_be_repeated(name):
    Stumbling.stumbled = False
    options = {"initial_rounds": 4}
    tuner = make(SPACES[name], query=Stumbling(0.8), **options)
    played = play(tuner, 11)
    before = copy.deepcopy(tuner.state_dict())
    with pytest.raises(KeyboardInterrupt):
        tuner.ask()
    assert same(tuner.state_dict(), before)
    played += play(tuner, 6)
    assert played == play(make(SPACES[name], query=ConfidenceQuery(0.8), **options), 17)


def test_a_tell_that_was_interrupted_may_be_repeated(monkeypatch):
    options = {"refit_every": 5, "query": bc.AlwaysQuery(), "refit_seconds": 60.0}
    tuner = make(**options)
    play(tuner, 4)
    decision = tuner.ask()
    before = copy.deepcopy(tuner.state_dict())

    def interrupt(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(learner, "fit", interrupt)
        with pytest.raises(KeyboardInterrupt):
            tuner.tell(decision, reward_of(decision.config, 4))
    assert same(tuner.state_dict(), before)
    assert tuner.queries == 5
    tuner.tell(decision, reward_of(decision.config, 4))
    assert [d.config for d in play(tuner, 4)] == [d.config for d in play(make(**options), 9)[5:]]


@pytest.mark.parametrize(
    ("reward", "seconds", "dtype"),
    [
        (1.0, math.nan, torch.float64),
        (1.0, -1.0, torch.float64),
        (1.0, "fast", torch.float64),
        (10**400, None, torch.float64),
        (1e300, None, torch.float32),  # finite, but not in the model's precision
        (1j, None, torch.float64),
    ],
)
def test_what_cannot_be_told_changes_nothing(reward, seconds, dtype):
    tuner = make(dtype=dtype)
    decision = tuner.ask()
    before = copy.deepcopy(tuner.state_dict())
    with pytest.raises(errors.InvalidArgumentError, match=r"(reward|seconds): Expected"):
        tuner.tell(decision, reward, seconds=seconds)
    assert same(tuner.state_dict(), before)
    assert tuner.tell(decision, 1.0, seconds=0.5).seconds == 0.5


@pytest.mark.parametrize(
    "reward",
    [
        np.float32(0.5),
        np.float64(0.5),
        np.array(0.5),
        torch.tensor(0.5),
        torch.tensor([0.5]),
        torch.tensor(0.5, requires_grad=True),
    ],
    ids=lambda reward: type(reward).__name__,
)
def test_scalars_of_numpy_and_torch_are_rewards(reward):
    tuner = make()
    seen = tuner.tell(tuner.ask(), reward)
    assert type(seen.reward) is float
    assert seen.reward == 0.5


# -- budgets, the first round, unqueried rounds -------------------------------------------------------


def test_queries_are_counted_as_they_come():
    """By a count that is kept, checked against one that is taken: told late, early, unasked, not."""
    tuner = make(query=bc.BernoulliQuery(0.4), initial_rounds=2, max_queries=18)
    draws = torch.Generator().manual_seed(0)
    for _ in range(60):
        tuner.ask()
        told = {o.round for o in tuner.observations}
        untold = [d for d in tuner.decisions if d.round not in told]
        pick = int(torch.randint(3 * len(untold), (), generator=draws))
        if pick < len(untold):
            tuner.tell(untold[pick], math.nan if pick % 5 == 0 else float(pick))
        assert tuner.queries == count_slowly(tuner)
        restored = make(query=bc.BernoulliQuery(0.4), initial_rounds=2, max_queries=18)
        restored.load_state_dict(tuner.state_dict())
        assert restored.queries == tuner.queries


class NotToBeReadThrough(dict):
    """Decisions that may be added to and queried up, but not gone through."""

    def __iter__(self):
        raise AssertionError("a decision went through all decisions before it")

    keys = values = items = __iter__


def test_a_decision_goes_through_no_list_that_grows_with_the_rounds():
    tuner = make(query=bc.BernoulliQuery(0.5), max_queries=12)
    play(tuner, 8)
    tuner._ledger._suggested = NotToBeReadThrough(tuner._ledger._suggested)
    for _ in range(6):
        decision = tuner.ask()
        if decision.query:
            tuner.tell(decision, 1.0)
    assert tuner.queries <= 12


def test_no_covariance_of_all_arms_with_all_is_formed(monkeypatch):
    """All arms are rivals: the covariance of each with each would hold 90,000 numbers."""
    space = bc.SearchSpace({"arm": bc.Choice(list(range(300)))})
    tuner = bc.OnlineTuner.as_published(space, query=bc.ConfidenceQuery(joint=True))
    tuner.tell(tuner.ask(), 1.0)
    largest = []
    ours = StreamingGP._covariance

    def watched(self, x1, x2):
        cov = ours(self, x1, x2)
        largest.append(cov.numel())
        return cov

    monkeypatch.setattr(StreamingGP, "_covariance", watched)
    tuner.ask()
    assert max(largest) == 300


def test_the_comparison_is_that_of_the_joint_belief():
    tuner = make(query=bc.AlwaysQuery())
    play(tuner, 10)
    points = SPACE.sample(6, torch.Generator().manual_seed(1))
    belief = tuner._strategy.learner.belief
    comparison = decider.comparison_of(belief, points, 10, 1.0)
    rows = fixed_round.at_round(points, torch.tensor(10.0))
    mean, cov = belief.mean_and_covariance(rows)
    torch.testing.assert_close(comparison.mean, mean[0])
    torch.testing.assert_close(comparison.variance, cov[0, 0])
    torch.testing.assert_close(comparison.rival_mean, mean[1:])
    torch.testing.assert_close(comparison.rival_variance, cov.diagonal()[1:])
    torch.testing.assert_close(comparison.rival_covariance, cov[0, 1:])
    assert comparison.exists.all()
    alone = decider.comparison_of(belief, points[:1], 10, 1.0)
    assert alone.rival_mean.shape == alone.rival_covariance.shape == (0,)


def test_a_round_the_budget_forbids_to_query_at_plays_the_mean_as_well():
    options = {"query": bc.AlwaysQuery(), "max_queries": 10, "initial_rounds": 10, "beta": 9.0}
    tuner = make(unqueried_play="mean", **options)
    play(tuner, 10)
    decision = tuner.ask()
    assert not decision.query
    assert decision.reason == "the budget of 10 queries is spent"
    everywhere = SPACE.sample(2000, torch.Generator().manual_seed(0))
    played = torch.cat([SPACE.encode(decision.config).unsqueeze(0), everywhere])
    rows = fixed_round.at_round(played, torch.tensor(10.0))
    mean, _ = tuner._strategy.learner.model.mean_and_variance(rows)
    assert mean[0] >= mean.max() - 1e-6


# -- what is reported -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_best_configuration_is_one_that_was_played_to_the_last_digit(dtype):
    tuner = make(dtype=dtype, query=bc.AlwaysQuery(), maximize=False)
    play(tuner, 12)
    seen = [dict(o.config) for o in tuner.observations]
    assert tuner.best() in seen
    start = {"lr": 0.0123, "dropout": 0.1234}
    tuner = make(dtype=dtype, start=start)
    tuner.tell(tuner.ask(), 1.0)
    assert tuner.best() == start


def test_the_summary_speaks_of_rewards_as_they_were_told():
    tuner = make(maximize=False, query=bc.AlwaysQuery(), initial_rounds=5)
    play(tuner, 5, lambda config, round: 7.0 + round / 100)
    assert "center 7.02, scale" in tuner.summary()
    tuner = make(query=bc.AlwaysQuery(), initial_rounds=5)
    play(tuner, 5, lambda config, round: -7.0 - round / 100)
    assert "center -7.02, scale" in tuner.summary()


@pytest.mark.parametrize("name", ["mixed", "huge"])
def test_no_configuration_rivals_itself(name, monkeypatch):
    tuner = make(SPACES[name], query=ConfidenceQuery(0.8), num_restarts=16)
    comparison = decider.comparison_of

    def watched(belief, points, now, beta, *rest):
        assert len(points) > 1
        assert len(points.unique(dim=0)) == len(points)
        assert torch.equal(points, SPACES[name].round(points))
        return comparison(belief, points, now, beta)

    monkeypatch.setattr(decider, "comparison_of", watched)
    play(tuner, 25)


def test_a_run_without_a_horizon_goes_on():
    tuner = make(horizon=None, query=bc.MixedQuery(5, 20, 60))
    assert [d.query for d in play(tuner, 4)] == [True] * 4  # twice the dimension
    play(tuner, 70)
    assert "74 rounds" in tuner.summary()


def warm_starts(state):
    return state["strategy"]["rivals"]["search"]["warm_starts"]


def test_without_a_reward_nothing_piles_up():
    tuner = make(initial_rounds=0, query=bc.BernoulliQuery(0.0), num_restarts=200)
    sizes = [len(warm_starts(through_a_file(tuner.state_dict())))]
    for _ in range(5):
        tuner.ask()
        sizes.append(len(warm_starts(tuner.state_dict())))
    assert max(sizes) <= 500


def test_a_verdict_beyond_one_query_is_taken_as_it_is():
    """A rule that never says how sure it is leaves the confidence out."""

    class Every(bc.AlwaysQuery):
        def __call__(self, comparison, progress, generator):
            verdict = super().__call__(comparison, progress, generator)
            return Verdict(~verdict.query, verdict.confidence, verdict.cause)

    decision = make(query=Every(), initial_rounds=0).ask()
    assert not decision.query
    assert decision.confidence is None


def test_wrong_types_are_named():
    with pytest.raises(errors.InvalidSpaceError, match="space: Expected a SearchSpace"):
        bc.OnlineTuner({"lr": bc.Real(0.0, 1.0)})


def test_a_decision_of_another_run_is_refused_where_it_differs():
    ours, theirs = make(seed=1), make(seed=2)
    mine, foreign = ours.ask(), theirs.ask()
    for stranger in (foreign, dataclasses.replace(mine, round=1)):
        with pytest.raises(errors.UnknownDecisionError):
            ours.tell(stranger, 1.0)
    assert ours.queries == 1
    assert ours.observations == ()


def test_only_the_latest_rounds_are_kept_if_so_wanted():
    tuner = make(query=bc.BernoulliQuery(0.5), keep_rounds=5, initial_rounds=3)
    every = make(query=bc.BernoulliQuery(0.5), initial_rounds=3)
    first = None
    for _ in range(20):
        decision, same = tuner.ask(), every.ask()
        assert decision == same  # what is kept has no say in what is decided
        first = first or decision
        if decision.query:
            for run, asked in ((tuner, decision), (every, same)):
                run.tell(asked, math.nan if decision.round == 1 else math.sin(decision.round))
    assert tuner.decisions == every.decisions[-5:]
    assert [o.round for o in tuner.observations] == [
        o.round for o in every.observations if o.round >= 15
    ]
    assert (tuner.queries, tuner.failed_queries) == (every.queries, every.failed_queries)
    assert len(tuner.history) == 5
    assert tuner.best() == pytest.approx(every.best())
    with pytest.raises(errors.UnknownDecisionError, match="one of the last 5 decisions"):
        tuner.tell(first, 1.0)
    restored = make(query=bc.BernoulliQuery(0.5), keep_rounds=5, initial_rounds=3)
    restored.load_state_dict(tuner.state_dict())
    assert (restored.queries, restored.failed_queries) == (tuner.queries, tuner.failed_queries)
    assert restored.ask() == tuner.ask() == every.ask()


def test_a_number_of_rounds_to_keep_is_checked_at_the_door():
    with pytest.raises(errors.InvalidArgumentError, match="keep_rounds"):
        make(keep_rounds=0)


def test_a_belief_holds_no_more_rewards_than_allowed():
    tuner = make(max_rows=6, initial_rounds=3)
    for _ in range(12):
        decision = tuner.ask()
        tuner.tell(decision, math.sin(decision.round))
    assert tuner.belief.num_rows == 6
    assert tuner.belief.inputs[:, -1].tolist() == [float(k) for k in range(6, 12)]
    with pytest.raises(errors.InvalidArgumentError, match="max_rows"):
        make(max_rows=0)


@pytest.mark.parametrize("name", quick(SPACES, "mixed", "arms"))
@pytest.mark.parametrize("query", [bc.ConfidenceQuery(0.8), bc.PricedQuery(price=0.1)])
def test_validation_under_inference_mode_is_validation(name, query):
    with torch.inference_mode():
        tuner = make(SPACES[name], query=query, initial_rounds=3, num_restarts=8)
    other = make(SPACES[name], query=query, initial_rounds=3, num_restarts=8)
    for k in range(9):
        decision = other.ask()
        with torch.inference_mode(k % 2 == 0):
            assert tuner.ask() == decision
            if decision.query:
                tuner.tell(decision, math.sin(k))
        if decision.query:
            other.tell(decision, math.sin(k))


def test_loading_keeps_no_more_rounds_than_wanted():
    long, short = make(), make(keep_rounds=3)
    for _ in range(10):
        long.ask()
    short.load_state_dict(long.state_dict(), changed=["limits"])
    assert short.decisions == long.decisions[-3:]


@pytest.mark.parametrize("dtype", quick([torch.float32, torch.float64], torch.float64))
@pytest.mark.parametrize("scale", [None, bc.RewardScale(), bc.RewardScale(center=0.0, scale=1.0)])
def test_a_reward_that_is_too_large_is_named_and_the_next_is_welcome(dtype, scale):
    tuner = make(SPACES["cube"], dtype=dtype, rewards=scale, initial_rounds=2)
    largest = {torch.float32: 1e30, torch.float64: 1e150}[dtype]
    for value in (1e300, -1e300, largest, -largest, 1.0, 1e-320, 0.0) * 3:
        decision = tuner.ask()
        if not decision.query:
            continue
        if abs(value) > largest:
            before = tuner.state_dict()
            with pytest.raises(errors.InvalidArgumentError, match=r"reward: Expected .* in size"):
                tuner.tell(decision, value)
            assert same(tuner.state_dict(), before)
            value = 0.5
        tuner.tell(decision, value)
        assert bool(tuner._strategy.learner.model.targets.isfinite().all())
    assert str(tuner.diagnose())
    assert tuner.summary()


@pytest.mark.parametrize("device", ["tpu of mine", "cuda:99", 3.5, None])
def test_a_device_that_is_not_here_is_named(device):
    with pytest.raises(errors.InvalidArgumentError, match=r"device: Expected a device"):
        bc.OnlineTuner(SPACE, device=device)
