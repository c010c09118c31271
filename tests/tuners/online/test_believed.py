"""What a tuner says of configurations in a round, against its belief and the rewards told."""

import pytest
import torch

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError, InvalidConfigError
from tests.tuners.online.playing import MIXED, make, play

CONFIGS = [
    {"lr": 1e-3, "depth": 2, "policy": "a"},
    {"lr": 5e-2, "depth": 4, "policy": "b"},
]


@pytest.mark.parametrize("maximize", [True, False])
def test_means_are_those_of_the_belief_in_units_of_the_reward(maximize):
    tuner = make(MIXED, query=bc.AlwaysQuery(), maximize=maximize)
    play(tuner, 12)
    mean, std = tuner.predict(CONFIGS, round=5)
    for i, config in enumerate(CONFIGS):
        row = torch.cat([MIXED.encode(config), torch.tensor([5.0], dtype=torch.float64)])
        posterior = tuner.belief.posterior(row.reshape(1, -1))
        sign = 1 if maximize else -1
        assert float(mean[i]) == pytest.approx(sign * float(posterior.mean), abs=1e-9)
        assert float(std[i]) == pytest.approx(float(posterior.variance) ** 0.5, rel=1e-6)


def test_a_round_is_believed_by_its_interval_and_the_next_one_by_default():
    tuner = make(MIXED, query=bc.AlwaysQuery(), hold=0.2, shortest_hold=4, forgetting=0.3)
    play(tuner, 17)
    within = [tuner.predict(CONFIGS, round=round)[0] for round in (8, 9, 16, 17)]
    torch.testing.assert_close(within[0], within[1], rtol=0, atol=0)
    assert not torch.allclose(within[0], within[2])
    torch.testing.assert_close(tuner.predict(CONFIGS)[0], within[3], rtol=0, atol=0)


def test_asking_what_is_believed_changes_no_decision():
    alone, asked = (make(MIXED, query=bc.ConfidenceQuery(0.8)) for _ in range(2))
    for _ in range(4):
        play(alone, 5)
        play(asked, 5)
        asked.predict([d.config for d in asked.decisions])
    assert alone.history == asked.history


def test_nothing_seen_is_believed_to_be_the_prior():
    mean, std = make(MIXED).predict(CONFIGS)
    assert mean.tolist() == [0.0, 0.0]
    assert std.tolist() == [1.0, 1.0]
    assert make(MIXED).predict([])[0].shape == (0,)


def test_what_lies_outside_the_space_is_refused_and_outside_the_region_is_not():
    start = {"lr": 1e-3, "depth": 2, "policy": "a"}
    tuner = bc.OnlineTuner(MIXED, horizon=50, start=start)
    assert tuner.trust_region == {"lr": pytest.approx((1e-3 / 1.5, 1.5e-3))}
    assert tuner.predict([start, {**start, "lr": 0.1}])[0].shape == (2,)
    with pytest.raises(InvalidConfigError, match="lr"):
        tuner.predict([{**start, "lr": 7.0}])
    with pytest.raises(InvalidArgumentError, match="round"):
        tuner.predict([start], round=-1)
