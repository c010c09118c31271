"""Slices of a belief, against the belief itself and a truth that is known."""

import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError, InvalidConfigError
from botorch_costly.tuners import best_values, slice_of

SPACE = bc.SearchSpace(
    {
        "lr": bc.Real(1e-4, 1e-1, log=True),
        "depth": bc.Integer(1, 4),
        "policy": bc.Choice(["none", "light", (1, 2)]),
    }
)


def reward(config, round):
    """The best learning rate falls from 1e-2 to 1e-3 halfway, and "light" is best."""
    peak = -2 if round < 30 else -3
    return -abs(math.log10(config["lr"]) - peak) + (config["policy"] == "light")


def run(rounds=60, reward=reward, **options):
    tuner = bc.OnlineTuner(
        SPACE,
        60,
        rewards=bc.RewardScale(),
        **{
            "design": bc.Design(kind="sobol", rounds=60, start_rounds=1),
            "hold": bc.Hold(share=0.0),
            "prior": bc.Prior(noise=0.01, forgetting=0.02),
            "limits": bc.Limits(rate_factor=math.inf),
            **options,
        },
    )
    for round in range(rounds):
        decision = tuner.ask()
        tuner.tell(decision, reward(decision.config, round))
    return tuner


@pytest.fixture(scope="module")
def tuner():
    return run()


def test_a_slice_is_what_is_believed(tuner):
    held = {"lr": 1e-3, "depth": 2, "policy": "light"}
    found = slice_of(tuner, "lr", 10, held, points=7)
    assert found.values == pytest.approx([10 ** (-4 + i / 2) for i in range(7)])
    mean, std = tuner.predict([{**held, "lr": value} for value in found.values], 10)
    assert (found.mean, found.std) == (tuple(mean.tolist()), tuple(std.tolist()))
    assert (found.name, found.round, found.log) == ("lr", 10, True)
    assert found.held == held
    assert len(found.told) == 60


def test_it_is_through_the_incumbent_in_the_next_round():
    tuner = run(20)
    found = slice_of(tuner, "policy")
    assert found.held == tuner.best()
    assert (found.round, found.values, found.log) == (20, ("none", "light", (1, 2)), False)
    assert slice_of(tuner, "depth").values == (1, 2, 3, 4)
    assert slice_of(tuner, "depth", points=2).values == (1, 4)


def test_before_a_reward_it_is_the_prior_at_what_was_played():
    tuner = run(0)
    with pytest.raises(InvalidArgumentError, match="config"):
        slice_of(tuner, "lr")
    decision = tuner.ask()
    found = slice_of(tuner, "lr")
    assert found.held == decision.config
    assert found.told == ()
    assert set(found.mean) == {0.0}
    assert set(found.std) == {1.0}


def test_rewards_are_as_near_as_the_prior_says(tuner):
    held = {**tuner.decisions[12].config}
    found = slice_of(tuner, "lr", 12, held)
    rewards = [reward(one.config, one.round) for one in tuner.decisions]
    assert [one.reward for one in found.told] == pytest.approx(rewards)
    values = [one.config["lr"] for one in tuner.decisions]
    assert [one.value for one in found.told] == pytest.approx(values)
    nearness = [one.nearness for one in found.told]
    assert nearness[12] == pytest.approx(1)  # its own configuration and round
    assert all(0 <= one < 1 for i, one in enumerate(nearness) if i != 12)
    # What differs in the value alone lies on the slice.
    elsewhere = {**held, "lr": 1e-4 if held["lr"] > 1e-3 else 1e-1}
    assert slice_of(tuner, "lr", 12, elsewhere).told[12].nearness == pytest.approx(1)
    # One with equal others, played nine rounds earlier, has but forgetting between them.
    earlier = slice_of(tuner, "lr", 21, held).told[12].nearness
    assert earlier == pytest.approx((1 - 0.02) ** (9 / 2), rel=1e-6)


@pytest.mark.parametrize("maximize", [True, False])
def test_the_best_value_follows_the_truth_whichever_way_is_better(maximize):
    sign = 1 if maximize else -1
    tuner = run(reward=lambda config, round: sign * reward(config, round), maximize=maximize)
    found = best_values(tuner, "lr", [5, 25, 55])
    early, middle, late = (math.log10(value) for value in found.best)
    assert abs(early + 2) < 0.3
    assert abs(middle + 2) < 0.3
    assert abs(late + 3) < 0.3
    assert best_values(tuner, "policy", [5, 55]).best == ("light", "light")
    seen = slice_of(tuner, "policy", 55)
    told = [one.reward for one in seen.told]
    assert told == pytest.approx([o.reward for o in tuner.observations])
    assert sign * seen.mean[1] > max(sign * seen.mean[0], sign * seen.mean[2])


def test_values_are_told_apart_by_the_difference_of_their_rewards(tuner):
    """By its definition: the joint posterior of each value and the best one."""
    found = best_values(tuner, "lr", [40], points=9)
    belief = tuner.belief
    mean, _ = belief.in_round(belief.inputs[:, :-1], 40.0)
    held = SPACE.decode(belief.inputs[int(mean.argmax()), :-1])
    line = torch.stack([SPACE.encode({**held, "lr": value}) for value in found.values])
    rows = torch.cat([line, torch.full((9, 1), 40.0, dtype=line.dtype)], -1)
    means = belief.posterior(rows).mean.flatten().tolist()
    best = means.index(max(means))
    assert found.best == (found.values[best],)
    for i, behind in enumerate(found.behind[0]):
        if i == best:
            assert behind == 0
            continue
        pair = belief.posterior(rows[[i, best]])
        contrast = torch.tensor([-1.0, 1.0], dtype=line.dtype)
        variance = contrast @ pair.distribution.covariance_matrix @ contrast
        missed = float(contrast @ pair.mean.flatten())
        assert behind == pytest.approx(missed / float(variance.sqrt()), rel=1e-5)


def test_numbers_ascend_and_other_options_stay_as_they_are():
    space = bc.SearchSpace({"batch": bc.Choice([64, 16, 32]), "flag": bc.Choice([True, 0.5])})
    tuner = bc.OnlineTuner(space, 20)
    tuner.ask()
    assert slice_of(tuner, "batch").values == (16, 32, 64)
    assert slice_of(tuner, "flag").values == (True, 0.5)


def test_where_nothing_is_known_each_value_may_be_best():
    tuner = run(0)
    tuner.ask()
    found = best_values(tuner, "depth")
    assert found.rounds == (0,)
    assert found.behind == ((0.0,) * 4,)


def test_rounds_of_one_interval_are_alike_and_spread_over_the_run():
    tuner = run(50, hold=bc.Hold(share=0.5, shortest=4), design=bc.Design(rounds=3))
    found = best_values(tuner, "policy")
    assert found.rounds == tuple(range(50))
    intervals = [one.interval for one in tuner.decisions]
    for i in range(1, 50):
        if intervals[i] == intervals[i - 1]:
            assert found.behind[i] == found.behind[i - 1]
    assert len(set(found.behind)) > 3


def test_looking_changes_nothing():
    seen, other = run(12), run(12)
    state = torch.get_rng_state()
    slice_of(seen, "lr")
    best_values(seen, "lr")
    assert torch.equal(state, torch.get_rng_state())
    assert seen.ask() == other.ask()
    assert repr(seen.state_dict()) == repr(other.state_dict())


def test_what_is_not_there_is_refused(tuner):
    for call in (slice_of, best_values):
        with pytest.raises(InvalidArgumentError, match="name: Expected a name among"):
            call(tuner, "momentum")
        with pytest.raises(InvalidArgumentError, match="points"):
            call(tuner, "lr", points=1)
    for rounds in ([], [0, 99]):
        with pytest.raises(InvalidArgumentError, match="rounds"):
            best_values(tuner, "lr", rounds)
    with pytest.raises(InvalidArgumentError, match="round"):
        slice_of(tuner, "lr", -1)
    with pytest.raises(InvalidConfigError, match="lr"):
        slice_of(tuner, "depth", config={"lr": 1.0, "depth": 2, "policy": "none"})
