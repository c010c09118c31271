"""Kind: a part that training changes is broken where the guard does not look, or is kept broken."""

import logging
import math

import pytest
import torch
from torch import nn

import botorch_costly as bc
from tests.rewards.guarding import Weights, guarded


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize("where", ["network", "optimizer"])
def test_a_state_that_is_not_finite_is_never_kept(value, where):
    network = nn.Linear(2, 1)
    network.register_buffer("mask", torch.full((2,), -math.inf))  # legal, and no divergence
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1, momentum=0.9)
    reward = bc.GuardedReward.of(bc.GainReward("loss"), network, optimizer)
    network(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert reward(0.5, 0) is None
    assert reward(0.5, 1) == 0.0
    before = network.weight.detach().clone()
    with torch.no_grad():  # the metric is that of an average, which is well
        broken = network.weight if where == "network" else optimizer.state[network.weight]
        (broken if where == "network" else broken["momentum_buffer"])[0, 1] = value
    assert reward(0.49, 2) == -1.0
    assert torch.equal(network.weight, before)
    assert reward.restores == 1
    assert optimizer.state[network.weight]["momentum_buffer"].isfinite().all()
    assert reward(0.48, 3) > 0


@pytest.mark.parametrize("metric", [math.nan, math.inf])
def test_a_metric_that_stays_nan_after_restores_points_at_what_is_not_held(metric, caplog):
    reward = guarded(Weights())
    reward(0.5, 0)
    with caplog.at_level(logging.WARNING):
        reward(metric, 1)
        assert not caplog.messages
        for t in range(2, 9):
            assert reward(metric, t) == -1.0
    assert [
        m for m in caplog.messages if "such as an average of the weights" in m
    ] == caplog.messages
    assert len(caplog.messages) == 3  # 2, 4, 8


def test_with_its_average_among_the_parts_one_step_of_nan_is_mended():
    torch.manual_seed(0)
    network = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    average = torch.optim.swa_utils.AveragedModel(network)
    reward = bc.GuardedReward.of(bc.GainReward("loss"), network, optimizer, average)
    x = torch.rand(16, 2)
    for t in range(12):
        loss = (network(x) - 3).square().mean() * (math.nan if t == 5 else 1.0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        average.update_parameters(network)
        reward((average(x) - 3).square().mean(), t)
    assert reward.restores == 1
    assert all(p.isfinite().all() for p in [*network.parameters(), *average.parameters()])


@pytest.mark.parametrize(
    "losses",
    [
        [0.02, 0.0, *[0.02] * 10],
        [0.0, *[0.5 * 0.95**t for t in range(10)]],
        [0.0, 0.0, 0.0, 0.5, 0.49, 0.0, 0.48],
        [0.5, *[0.0] * 8],
    ],
)
def test_a_loss_of_zero_gives_no_round_back(losses):
    weights = Weights()
    reward = guarded(weights)
    for t, loss in enumerate(losses):
        assert reward(loss, t) is not None or not any(losses[:t])
    assert reward.restores == 0
    weights.tensor.fill_(99.0)
    reward(50.0, len(losses))
    assert reward.restores == (1 if any(losses) else 0)
    assert weights.tensor.item() == 1.0
