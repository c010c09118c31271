"""The kind: a rollback that leaves parts of a run at different states, or takes time back with them.

Networks, optimizers and schedulers of torch go back as a whole or not at all, an optimizer may have got
parameters since, and a schedule ends where it would have without a rollback.
"""

import copy
import math

import pytest
import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW, lr_scheduler as schedulers

from botorch_costly.errors import RestoreError
from botorch_costly.rewards import GainReward, GuardedReward

SCHEDULERS = {
    "cosine": lambda o: schedulers.CosineAnnealingLR(o, T_max=20),
    "steps": lambda o: schedulers.StepLR(o, 3, 0.5),
    "lambda": lambda o: schedulers.LambdaLR(o, lambda t: 1 - t / 20),
    "one cycle": lambda o: schedulers.OneCycleLR(o, 0.1, total_steps=21),
    "sequence": lambda o: schedulers.SequentialLR(
        o, [schedulers.LinearLR(o), schedulers.ExponentialLR(o, 0.8)], [4]
    ),
    "plateau": lambda o: schedulers.ReduceLROnPlateau(o, patience=1),
}


def network():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))


def train(net, optimizer):
    optimizer.zero_grad()
    net(torch.ones(4, 3)).square().mean().backward()
    optimizer.step()


def guard(*parts):
    return GuardedReward.of(GainReward("loss"), *parts)


def states(*parts):
    return copy.deepcopy([part.state_dict() for part in parts])


def rates(make, *, restores, is_part):
    """Rates that a schedule of 20 steps goes through, with a rollback after every third step or none."""
    net = network()
    optimizer = SGD(net.parameters(), lr=0.1, momentum=0.9)
    scheduler = make(optimizer)
    reward = guard(net, optimizer, *([scheduler] if is_part else []))
    reward(1.0, 0)
    seen = []
    for step in range(1, 21):
        train(net, optimizer)
        scheduler.step(*([2.0] if isinstance(scheduler, schedulers.ReduceLROnPlateau) else []))
        if restores and step % 3 == 0:
            reward(math.nan, step)
        group = optimizer.param_groups[0]
        seen.append((group["lr"], group["momentum"]))
    assert reward.restores == (6 if restores else 0)
    return seen


@pytest.mark.parametrize("kind", SCHEDULERS)
@pytest.mark.parametrize("is_part", [True, False])
def test_a_schedule_is_the_same_with_rollbacks(kind, is_part):
    expected = rates(SCHEDULERS[kind], restores=False, is_part=is_part)
    assert rates(SCHEDULERS[kind], restores=True, is_part=is_part) == expected


@pytest.mark.parametrize("kind", [SGD, Adam, AdamW])
@pytest.mark.parametrize("grown", ["a group", "two groups", "parameters of a group"])
def test_an_optimizer_goes_back_when_it_has_got_parameters_since(kind, grown):
    net = network()
    extra = {"momentum": 0.9} if kind is SGD else {}
    optimizer = kind([{"params": net[1].parameters(), "name": "head"}], lr=0.1, **extra)
    train(net, optimizer)
    kept = states(net, optimizer)
    reward = guard(net, optimizer)
    reward(1.0, 0)
    if grown == "parameters of a group":
        optimizer.param_groups[0]["params"] += list(net[0].parameters())
    else:
        parts = [[net[0].weight, net[0].bias]] if grown == "a group" else net[0].parameters()
        for part in parts:
            optimizer.add_param_group({"params": part, "lr": 0.01, "name": "body"})
    train(net, optimizer)
    assert reward(math.nan, 1) == -1.0
    now = states(net, optimizer)
    for name, weight in kept[0].items():
        assert torch.equal(now[0][name], weight)
    assert now[1]["state"].keys() == kept[1]["state"].keys()  # what is new has no state yet
    for number, state in kept[1]["state"].items():
        for name, value in state.items():
            assert torch.equal(
                torch.as_tensor(now[1]["state"][number][name]), torch.as_tensor(value)
            )
    assert [group["lr"] for group in optimizer.param_groups][1:] == [0.01] * (
        len(optimizer.param_groups) - 1
    )
    train(net, optimizer)  # and trains all of them
    assert len(optimizer.state) == 4
    reward(0.9, 2)
    train(net, optimizer)
    reward(math.nan, 3)
    assert len(optimizer.state) == 4


def test_what_a_group_counts_goes_back():
    net = network()
    optimizer = SGD(net.parameters(), lr=0.1)
    optimizer.param_groups[0]["d"] = 1.0  # as optimizers without a rate keep it
    reward = guard(net, optimizer)
    reward(1.0, 0)
    optimizer.param_groups[0]["d"] = math.nan
    reward(math.nan, 1)
    assert optimizer.param_groups[0]["d"] == 1.0


def test_what_was_noted_in_a_group_since_stays():
    net = network()
    optimizer = SGD(net.parameters(), lr=0.1)
    reward = guard(net, optimizer)
    reward(1.0, 0)
    optimizer.param_groups[0]["lr_multiplier"] = 2.0
    reward(math.nan, 1)
    assert optimizer.param_groups[0]["lr_multiplier"] == 2.0


class Refusing:
    """A part that does not take its earlier state."""

    def __init__(self, error):
        self.error, self.value = error, 0

    def state_dict(self):
        return {"value": self.value}

    def load_state_dict(self, state):
        if state["value"] != self.value:
            self.value = None  # half done
            raise self.error
        self.value = state["value"]


@pytest.mark.parametrize("error", [ValueError("other size"), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize("place", range(3))
def test_if_one_part_refuses_all_are_as_they_were(error, place):
    net = network()
    optimizer = Adam(net.parameters(), lr=0.1)
    train(net, optimizer)
    refusing = Refusing(error)
    parts = [net, optimizer]
    parts.insert(place, refusing)
    reward = guard(*parts)
    reward(1.0, 0)
    train(net, optimizer)
    refusing.value = 1
    before, guarded = states(net, optimizer), copy.deepcopy(reward.state_dict())
    with pytest.raises(RestoreError if isinstance(error, Exception) else KeyboardInterrupt):
        reward(math.nan, 1)
    now = states(net, optimizer)
    assert all(torch.equal(now[0][name], weight) for name, weight in before[0].items())
    assert str(now[1]) == str(before[1])
    assert str(reward.state_dict()) == str(guarded)


def test_an_optimizer_of_another_network_is_refused_as_ever():
    net = network()
    optimizer = SGD(net.parameters(), lr=0.1, momentum=0.9)
    reward = guard(net, optimizer)
    reward(1.0, 0)
    optimizer.param_groups[0]["params"] = [net[0].weight]
    with pytest.raises(RestoreError, match="doesn't match"):
        reward(math.nan, 1)
