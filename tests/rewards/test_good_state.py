"""A run without a tuner goes back to its last good state, by the rule of the guarded reward."""

import math

import pytest
import torch
from torch import nn

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError, StateMismatchError
from tests.rewards.guarding import Weights, guarded


def followed(values, **options):
    """Steps of the good state and restores after each reading of a run whose weight counts steps."""
    weights = Weights(0.0)
    good = bc.GoodState(weights, **options)
    result = []
    for step, value in enumerate(values):
        weights.tensor.fill_(float(step))
        restored = good.follow(value, step)
        result.append((restored, good.step, weights.tensor.item()))
    return result


def test_the_rule_is_that_of_the_guarded_reward():
    generator = torch.Generator().manual_seed(0)
    noise = torch.randn(60, generator=generator).mul(0.08).exp().tolist()
    values = [factor / (1 + k) for k, factor in enumerate(noise)]
    values[20], values[35], values[50] = 1.0, math.nan, math.inf
    weights = Weights(0.0)
    guard, expected = guarded(weights, kind="loss"), []
    for k, value in enumerate(values):
        weights.tensor.fill_(float(k))
        restores = guard.restores
        guard(value, round=k)
        expected.append((guard.restores > restores, weights.tensor.item()))
    assert [(restored, held) for restored, _, held in followed(values)] == expected
    assert sum(restored for restored, _ in expected) >= 3


def test_a_spike_goes_back_to_the_good_step_and_a_worse_reading_within_the_margin_does_not():
    assert followed([1.0, 0.5, 0.52, 2.0, math.nan]) == [
        (False, 0, 0.0),
        (False, 1, 1.0),
        (False, 2, 2.0),  # within two thirds of the margin: as good
        (True, 2, 2.0),
        (True, 2, 2.0),
    ]
    assert not followed([1.0, 0.5, 2.0], margin=2.0)[-1][0]


@pytest.mark.parametrize(
    ("values", "metric"),
    [([1.0, 0.2, -0.1, 5.0], "loss"), ([0.5, 30.0, 20.0], "accuracy")],
    ids=["a loss below 0", "a score above 1"],
)
def test_values_without_a_margin_diverge_only_by_not_being_finite(values, metric):
    result = followed([*values, math.nan], metric=metric)
    assert [restored for restored, _, _ in result] == len(values) * [False] + [True]


def test_a_loss_of_0_counts_as_the_smallest_one_above_0():
    result = followed([1.0, 0.5, 0.0, 0.0, 0.51, 0.9])
    assert [restored for restored, _, _ in result] == 5 * [False] + [True]
    assert followed([0.0, 3.0, 2.9])[-1] == (False, 2, 2.0)  # the first loss has no level


def test_a_score_has_the_margin_that_is_given():
    assert followed([30.0, 26.0], metric="accuracy", margin=5.0)[-1][0] is False
    assert followed([30.0, 24.0], metric="accuracy", margin=5.0)[-1][0] is True


def test_before_a_good_reading_there_is_nothing_to_return_to():
    assert followed([math.nan, math.nan]) == [(False, None, 0.0), (False, None, 1.0)]
    with pytest.raises(InvalidArgumentError, match="a good state"):
        bc.GoodState(Weights()).restore()


def test_weights_that_are_not_finite_have_diverged_whatever_the_metric():
    weights = Weights(1.0)
    good = bc.GoodState(weights)
    good.follow(1.0, 0)
    weights.tensor.fill_(math.nan)
    assert good.follow(0.9, 1)
    assert (weights.tensor.item(), good.step, good.restores) == (1.0, 0, 1)
    weights.tensor.fill_(math.inf)
    good.restore()
    assert (weights.tensor.item(), good.restores) == (1.0, 2)


def test_the_scheduler_and_its_rates_go_on():
    network = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(network.parameters(), lr=1.0, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    good = bc.GoodState(network, optimizer, scheduler)
    for value in (1.0, math.nan):
        network(torch.ones(1)).backward()
        optimizer.step()
        scheduler.step()
        good.follow(value, 0)
    assert scheduler.last_epoch == 2
    assert optimizer.param_groups[0]["lr"] == 0.25


@pytest.mark.parametrize(
    "values",
    [
        [1.0, 0.5, 0.45, 3.0, 0.44, math.nan, -1.0, 2.0, math.nan],
        [1.0, 0.5, 0.0, 0.5, 0.9, 0.0],  # 0 counts as the smallest one above it
        [1.0, 0.3, 0.3, 0.4, 0.4, 0.4, 0.39, 3.0],  # a lucky reading
    ],
)
def test_a_state_continues(values):
    ends = set()
    for cut in range(len(values) + 1):
        weights = Weights(0.0)
        good, result = bc.GoodState(weights), []
        for step, value in enumerate(values):
            if step == cut:
                state, good = good.state_dict(), bc.GoodState(weights)
                good.load_state_dict(state)
            weights.tensor.fill_(float(step))
            result.append((good.follow(value, step), good.step, weights.tensor.item()))
        assert result == followed(values)
        ends.add(str(good.state_dict()))
    assert len(ends) == 1  # levels and counts as well, those without a cut among them


def test_a_lucky_reading_does_not_catch_a_run(caplog):
    """From a lucky state the run is at its usual level again after each return."""
    result = followed([1.0, 0.3, 0.3, *10 * [0.4]])
    assert [restored for restored, _, _ in result] == [*3 * [False], True, True, *8 * [False]]
    assert result[-1] == (False, 12, 12.0)
    assert followed([1.0, 0.3, 0.3, 0.4, 0.4, 0.4, math.nan])[-1] == (True, 5, 5.0)
    assert sum("taken as the level" in record.getMessage() for record in caplog.records) == 2
    assert [restored for restored, _, _ in followed([1.0, 0.3, 0.3, 0.4, 0.4, 0.4, 0.8])][-1]


@pytest.mark.parametrize("bad", [math.nan, math.inf, 1e12])
def test_a_run_that_stays_broken_is_never_accepted(bad):
    assert all(restored for restored, _, _ in followed([1.0, 0.3, *20 * [bad]])[2:])
    weights = Weights(1.0)
    good = bc.GoodState(weights)
    for value in (1.0, 0.3, 0.3, 0.4, 0.4):
        good.follow(value, 0)
    assert good.restores == 2
    weights.tensor.fill_(math.nan)
    assert good.follow(0.4, 1)
    assert (weights.tensor.item(), good.restores) == (1.0, 3)
    assert good.follow(0.45, 2)
    assert not good.follow(0.45, 3)  # accepted after three returns from a finite reading
    assert good.restores == 4


def test_returns_from_what_is_not_finite_do_not_widen_the_margin():
    assert followed([1.0, math.nan, math.nan, math.inf, 1.35])[-1] == (True, 0, 0.0)
    weights = Weights(1.0)
    good = bc.GoodState(weights)
    good.follow(1.0, 0)
    for _ in range(5):  # by the training loss
        good.restore()
    assert good.follow(1.5, 1)
    assert not good.follow(1.05, 2)


def test_states_of_others_are_refused_and_nothing_is_changed():
    good = bc.GoodState(Weights())
    good.follow(1.0, 3)
    before = good.state_dict()
    other = bc.GoodState(nn.Linear(1, 1)).state_dict()
    wrong = [
        None,
        {},
        {**before, "margin": 2.0},
        {**before, "step": -1},
        {**before, "kept": {}},
        other,
    ]
    for state in wrong:
        with pytest.raises(StateMismatchError):
            good.load_state_dict(state)
    assert (good.state_dict()["step"], good.restores) == (3, 0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: bc.GoodState(),
        lambda: bc.GoodState(nn.Linear),
        lambda: bc.GoodState(3),
        lambda: bc.GoodState(Weights(), metric="bleu"),
        lambda: bc.GoodState(Weights(), margin=0.0),
        lambda: bc.GoodState(Weights()).follow("low", 1),
        lambda: bc.GoodState(Weights()).follow(0.5, -1),
    ],
)
def test_arguments_that_are_wrong(make):
    with pytest.raises(InvalidArgumentError):
        make()
