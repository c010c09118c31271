"""Guards that are pickled and copied, with or without what they guard."""

import copy
import math
import pickle

import pytest
import torch

from botorch_costly.rewards import GainReward, GuardedReward
from tests.rewards.guarding import Weights, guarded

COPIES = {"pickle": lambda x: pickle.loads(pickle.dumps(x)), "deepcopy": copy.deepcopy}


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_copy_restores_its_own_parts(copied):
    weights = Weights(1.0)
    reward = guarded(weights, margin=0.3)
    reward(0.5, 0)
    other, others = copied((reward, weights))
    others.tensor.fill_(9.0)
    assert other(5.0, 1) == -1.0
    assert others.tensor.item() == 1.0
    assert (weights.tensor.item(), reward.restores, other.restores) == (1.0, 0, 1)
    weights.tensor.fill_(8.0)
    reward(5.0, 1)
    assert (weights.tensor.item(), others.tensor.item()) == (1.0, 1.0)
    assert reward.restores == other.restores
    assert reward(0.4, 2) == other(0.4, 2)


@pytest.mark.parametrize("copied", COPIES.values(), ids=COPIES)
def test_a_copy_of_networks_and_optimizers_trains_on(copied):
    torch.manual_seed(0)
    network = torch.nn.Linear(2, 1)
    optimizer = torch.optim.Adam(network.parameters())
    reward = GuardedReward.of(GainReward("loss"), network, optimizer)
    reward(0.5, 0)
    reward, network, optimizer = copied((reward, network, optimizer))
    weight = network.weight.clone()
    network(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    assert not torch.equal(network.weight, weight)
    reward(5.0, 1)
    assert torch.equal(network.weight, weight)


def test_functions_of_the_user_are_pickled_as_they_are():
    weights = {"w": 1.0}
    reward = GuardedReward(GainReward("loss"), weights.copy, weights.update)
    reward(0.5, 0)
    other, others = pickle.loads(pickle.dumps((reward, weights)))
    others["w"] = 9.0
    other(5.0, 1)
    assert others == {"w": 1.0}


def test_functions_of_the_user_receive_parameters_leaves_and_views():
    network, all_numbers = torch.nn.Linear(2, 1), torch.zeros(4)
    state = {
        "weight": network.weight,
        "leaf": torch.zeros(3, requires_grad=True),
        "all": all_numbers,
        "last": all_numbers[1:],
    }

    def restore(saved):
        state.update(saved)
        network.weight = saved["weight"]

    reward = GuardedReward(GainReward("loss"), state.copy, restore)
    reward(0.5, 0)
    kept = network.weight.detach().clone()
    with torch.no_grad():
        network.weight.fill_(math.nan)
    assert reward(math.nan, 1) == -1.0
    assert torch.equal(network.weight, kept)
    (network(torch.ones(2)).sum() + 2 * state["leaf"].sum()).backward()
    assert network.weight.grad is not None
    assert state["leaf"].grad.tolist() == [2.0, 2.0, 2.0]
    state["all"].fill_(1.0)
    assert state["last"].tolist() == [1.0, 1.0, 1.0]
    assert all_numbers.tolist() == [0.0, 0.0, 0.0, 0.0]  # of the state before
