"""Bandits, rewards, guards and sessions compute where tensors are, and decide there as on the CPU.

With ``-p tests.far --device far`` the device is one that refuses tensors of the CPU.
"""

import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly.bandits import BanditPolicy, simulate_arms
from botorch_costly.problems import DriftingArms
from tests.registry.optimizers import BANDITS
from tests.tuners.twins.running import RATE

ARMS = bc.SearchSpace({"arm": bc.Choice(["left", "middle", "right"])})


def loss_of(network, X):
    return network(X).square().mean() + 0.1


@pytest.fixture
def training(tkwargs):
    """A network of the device, its optimizer and data, in single precision as networks are."""
    generator = torch.Generator().manual_seed(1)
    X = torch.randn(16, 3, generator=generator).to(tkwargs["device"])
    torch.manual_seed(2)
    network = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4)).to(X)
    return network, torch.optim.Adam(network.parameters(), lr=0.01), X


def train(training, lr):
    network, optimizer, X = training
    for group in optimizer.param_groups:
        group["lr"] = lr
    optimizer.zero_grad()
    loss = loss_of(network, X)
    loss.backward()
    optimizer.step()
    return loss.detach()


@pytest.mark.parametrize("name", BANDITS)
def test_a_bandit_plays_as_on_the_cpu(name, tkwargs):
    strategy, query = BANDITS[name]
    runs = []
    for device in ("cpu", tkwargs["device"]):
        tuner = bc.BanditTuner(ARMS, 12, strategy=strategy, query=query, seed=4, device=device)
        for number in range(12):
            decision = tuner.ask()
            if decision.query:
                tuner.tell(decision, math.sin(number) / 2 + 0.5)
        runs.append(tuner.history)
    assert runs[0] == runs[1]


@pytest.mark.parametrize("name", BANDITS)
def test_arms_are_simulated_as_on_the_cpu(name, tkwargs):
    policy = BanditPolicy(name, *BANDITS[name])
    near, there = (
        simulate_arms(DriftingArms("sine"), [policy], 2, 10, device=device)
        for device in ("cpu", tkwargs["device"])
    )
    torch.testing.assert_close(there.regret.cpu(), near.regret)


def test_a_loss_may_be_a_tensor_of_the_device(tkwargs):
    told = []
    for device in ("cpu", tkwargs["device"]):
        tuner = bc.OnlineTuner(RATE, 6, start={"lr": 0.01})
        reward, values = bc.GainReward(), []
        for number in range(6):
            decision = tuner.ask()
            loss = torch.tensor(1.0 / (1 + number), device=device)
            values.append(reward(loss, decision))
        told.append(values)
    assert told[0] == told[1]


def test_a_guard_gives_parts_of_the_device_back(training, tkwargs):
    network, optimizer, X = training
    reward = bc.GuardedReward.of(bc.GainReward(), network, optimizer)
    tuner = bc.OnlineTuner(RATE, 8, start={"lr": 0.01}, query=bc.query.AlwaysQuery())
    for _ in range(3):
        decision = tuner.ask()
        train(training, 0.01)
        tuner.tell(decision, reward(loss_of(network, X).detach(), decision))
    good = [parameter.detach().clone() for parameter in network.parameters()]
    decision = tuner.ask()
    with torch.no_grad():
        network[0].weight.fill_(math.nan)
    tuner.tell(decision, reward(loss_of(network, X).detach(), decision))
    assert reward.restores == 1
    assert all(torch.equal(*pair) for pair in zip(network.parameters(), good, strict=True))
    assert {p.device.type for p in network.parameters()} == {tkwargs["device"].type}
    assert math.isfinite(float(train(training, 0.01)))


def test_twins_are_held_on_the_device_and_go_to_a_file(training, tkwargs, tmp_path):
    network, optimizer, X = training
    session = bc.Session.of(bc.TwinTuner(RATE, 12, start={"lr": 0.01}), network, optimizer)
    for _ in range(8):
        decision = session.ask()
        train(training, decision.config["lr"])
        session.tell(decision, loss_of(network, X).item())
    bc.save(tmp_path / "run.pt", network=network, session=session)
    expected = [p.detach().clone() for p in network.parameters()]
    with torch.no_grad():
        network[0].weight.zero_()
    bc.load(tmp_path / "run.pt", network=network, session=session)
    assert all(torch.equal(*pair) for pair in zip(network.parameters(), expected, strict=True))
    train(training, session.ask().config["lr"])
