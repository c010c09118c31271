"""Metrics that mean something else than the guard believes: a warning says so, and nothing is lost."""

import math
import statistics

import botorch_costly as bc
from tests.rewards.guarding import Weights, guarded
from tests.tuners.online.grouped import grouped


def test_a_reversed_metric_is_warned_of_and_nothing_is_lost(caplog):
    weights = Weights()
    reward = guarded(weights)
    for round in range(20):  # an accuracy that rises, told as a loss
        weights.tensor.fill_(float(round))
        gain = reward(0.1 + 0.04 * round, round)
        assert round == 0 or gain < 0
    assert weights.tensor.item() <= 1.0  # only what lay within the margin was kept
    said = [r.getMessage() for r in caplog.records if "in a row" in r.getMessage()]
    assert [f"rolled back {n} times in a row" in s for n, s in zip((8, 16), said, strict=True)]
    assert "reversed" in said[0]


def test_a_metric_on_another_scale_after_resuming_is_warned_of(caplog):
    before = guarded(Weights())
    for round in range(5):
        before(0.5, round)
    after = guarded(Weights())
    after.load_state_dict(before.state_dict())
    gains = [after(500.0, round) for round in range(5, 13)]
    assert gains == [-1.0] * 8
    assert after.restores == 8
    assert "another scale than 0.5" in caplog.text
    assert after(0.45, 13) > 0  # the old scale again: nothing was lost


def test_a_good_query_ends_a_row_of_restores(caplog):
    reward = guarded(Weights())
    for round in range(40):
        reward(5.0 if round % 5 else 0.5, round)
    assert reward.restores == 32
    assert "in a row" not in caplog.text


def test_a_run_whose_first_ten_metrics_are_nan_is_tuned_afterwards():
    space = bc.SearchSpace({"x": bc.Real(0.0, 1.0)})
    options = {"start": {"x": 0.5}, "seed": 0, "num_restarts": 4, "shortest_hold": 1}
    tuner = bc.OnlineTuner(space, horizon=40, **grouped(options))
    reward, level = guarded(Weights()), 1.0
    for round in range(40):
        decision = tuner.ask()
        level *= math.exp(-0.1 * decision.config["x"])
        if decision.query:
            tuner.tell(decision, reward(math.nan if round < 10 else level, decision))
    assert tuner.failed_queries == 10
    told = [o.reward for o in tuner.observations]
    assert told[:11] == [None] * 11  # the eleventh has no reference
    assert all(gain is not None for gain in told[11:])
    # A single round may explore.
    assert statistics.median(d.config["x"] for d in tuner.decisions[-10:]) > 0.8


def test_a_constant_metric_is_a_reward_of_nothing():
    space = bc.SearchSpace({"x": bc.Real(0.0, 1.0)})
    tuner = bc.OnlineTuner(
        space, horizon=40, start={"x": 0.5}, seed=0, search=bc.Search(num_restarts=4)
    )
    reward = guarded(Weights())
    for _ in range(40):
        decision = tuner.ask()
        if decision.query:
            tuner.tell(decision, reward(0.7, decision))
    assert {o.reward for o in tuner.observations} == {None, 0.0}
    assert "the metric does not move" in str(tuner.diagnose())
