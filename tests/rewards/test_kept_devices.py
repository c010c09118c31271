"""Kept states of training lie on the device that was asked for, and go back to that of the parts."""

import math

import pytest
import torch
from torch import nn

import botorch_costly as bc
from botorch_costly import states as states_module
from botorch_costly.errors import InvalidArgumentError
from botorch_costly.integrations import RoundLength
from botorch_costly.integrations.driver import Driver
from botorch_costly.integrations.training import Trained, TrainerOptions
from botorch_costly.rewards import GainReward, GoodState, GuardedReward
from tests.rewards.test_guard_parts import states

needs_cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA here")
DEVICES = ["cpu", pytest.param("cuda", marks=needs_cuda)]
SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True)})


def parts_on(device):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1)).to(device)
    return network, torch.optim.Adam(network.parameters(), lr=0.1)


def step(network, optimizer):
    optimizer.zero_grad()
    network(torch.ones(4, 3, device=next(network.parameters()).device)).square().mean().backward()
    optimizer.step()


def tensors_in(state):
    if isinstance(state, torch.Tensor):
        return [state]
    values = state.values() if isinstance(state, dict) else state
    nested = isinstance(state, dict | list | tuple)
    return [tensor for value in values for tensor in tensors_in(value)] if nested else []


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", ["guard", "good state"])
def test_a_state_in_main_memory_goes_back_to_the_device_of_the_parts(kind, device):
    network, optimizer = parts_on(device)
    if kind == "guard":
        guard = GuardedReward.of(GainReward("loss"), network, optimizer, device="cpu")
        follow, kept = guard, lambda: guard.state_dict()["kept"]["state"]
    else:
        good = GoodState(network, optimizer, device="cpu")
        follow, kept = good.follow, lambda: good.state_dict()["kept"]["state"]
    step(network, optimizer)
    follow(0.5, 0)
    before = states(network, optimizer)
    held = tensors_in(kept())
    assert len(held) >= 12  # weights, biases and two moments of each
    assert {tensor.device.type for tensor in held} == {"cpu"}
    step(network, optimizer)
    follow(math.inf, 1)
    now = tensors_in(states(network, optimizer))
    for ours, theirs in zip(now, tensors_in(before), strict=True):
        assert ours.device == theirs.device
        assert torch.equal(ours, theirs)
    step(network, optimizer)  # training goes on


@pytest.mark.parametrize(
    "make", [GoodState, lambda *p, **o: GuardedReward.of(GainReward(), *p, **o)]
)
def test_a_device_that_does_not_exist_is_refused(make):
    with pytest.raises(InvalidArgumentError, match="device"):
        make(*parts_on("cpu"), device="abacus")
    with pytest.raises(InvalidArgumentError, match="device"):
        TrainerOptions(RoundLength(steps=1), device="abacus")


@pytest.mark.parametrize("twins", [False, True])
def test_a_trainer_keeps_its_states_where_it_is_told(twins, monkeypatch):
    place = "tuners.twins.parts" if twins else "rewards.recovery"
    devices = []

    def copied(state, device=None):
        devices.append(device)
        return copies(state, device)

    copies = states_module.copied
    monkeypatch.setattr(f"botorch_costly.{place}.copied", copied)
    network, optimizer = parts_on("cpu")
    tuner = bc.OnlineTuner(SPACE, 12, query=bc.AlwaysQuery())
    if twins:
        tuner = bc.TwinTuner(SPACE, 12, queries=1.0)
    driver = Driver(tuner, TrainerOptions(RoundLength(steps=2), device="cpu"))
    driver.start(Trained(network, optimizer))
    for _ in range(16):
        driver.before_step()
        step(network, optimizer)
        if driver.after_step():
            driver.validated(1.0)
    of_parts = [device for device in devices if device is not None]
    assert of_parts == [torch.device("cpu")] * len(of_parts)
    assert len(of_parts) >= 2
