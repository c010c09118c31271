"""Kind: a guard holds, or is given, a state that its parts cannot go on from, without a word."""

import copy
import logging
import math

import pytest
import torch
from torch import nn

import botorch_costly as bc
from botorch_costly import errors
from tests.rewards.guarding import Weights, guarded


def broken_network():
    network = nn.Linear(2, 1)
    nn.init.constant_(network.weight, math.nan)
    return network


def test_a_first_state_with_a_nan_is_not_kept_and_named_once(caplog):
    network, average = broken_network(), nn.Linear(2, 1)
    reward = bc.GuardedReward.of(bc.GainReward("loss"), average, network)
    with caplog.at_level(logging.WARNING):
        rewards = [reward(loss, round=t) for t, loss in enumerate([0.9, 0.8, 0.7])]
    assert all(map(math.isnan, rewards))
    assert not reward.has_good_state
    assert len(caplog.messages) == 1
    assert "(Linear, weight)" in caplog.text
    nn.init.ones_(network.weight)
    assert reward(0.6, round=3) is None  # gains are counted from the first good state
    nn.init.constant_(network.weight, math.nan)
    assert reward(0.5, round=4) == -1.0
    assert network.weight.tolist() == [[1.0, 1.0]]


def test_a_first_state_of_functions_with_a_nan_is_not_kept_either(caplog):
    weights = {"w": torch.tensor(math.nan)}
    reward = bc.GuardedReward(bc.GainReward("loss"), weights.copy, weights.update)
    assert math.isnan(reward(0.5, round=0))
    assert not reward.has_good_state
    assert "(w)" in caplog.text


def test_a_first_state_with_infinities_is_kept():
    """A mask is no divergence."""
    reward = guarded(Weights(-math.inf))
    assert reward(0.5, 0) is None
    assert reward.has_good_state


@pytest.mark.parametrize("saved", [False, True])
def test_a_rollback_in_inference_mode_can_be_trained_on(saved):
    network = nn.Linear(2, 1)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.1)
    reward = bc.GuardedReward.of(bc.GainReward("loss"), network, optimizer)
    for t, loss in enumerate([0.5, 9.0, 0.5]):
        network(torch.ones(2)).sum().backward()
        optimizer.step()
        with torch.inference_mode():
            reward(loss, round=t)
            if saved:
                reward.load_state_dict(copy.deepcopy(reward.state_dict()))
    assert reward.restores == 1
    optimizer.step()
    assert all(p.requires_grad and p.is_leaf for p in network.parameters())


def test_what_a_guard_calls_is_called_with_gradients_as_they_are_set():
    seen = []
    weights = nn.Parameter(torch.ones(1))

    def restore(state):
        seen.append(torch.is_grad_enabled())
        with torch.no_grad():
            weights.copy_(state)

    reward = bc.GuardedReward(bc.GainReward("loss"), lambda: weights.detach(), restore)
    reward(0.5, round=0)
    for number, setting in enumerate([torch.enable_grad, torch.no_grad, torch.inference_mode]):
        with setting():
            reward(9.0, round=number + 1)
    assert seen == [True, False, False]


def parts(*, swapped=False):
    networks = [nn.Linear(2, 1), nn.Linear(3, 1)]
    optimizers = [torch.optim.SGD(networks[0].parameters()), torch.optim.SGD([networks[1].bias])]
    together = (networks, optimizers)
    return [one for kind in together for one in (kind[::-1] if swapped else kind)]


OTHERS = {
    "fewer": lambda: parts()[:3],
    "more": lambda: [*parts(), nn.Linear(1, 1)],
    "of another kind": lambda: [nn.Bilinear(2, 2, 1), *parts()[1:]],
    "in another order": lambda: parts()[::-1],
    "of the same kinds in another order": lambda: parts(swapped=True),
}


@pytest.mark.parametrize("others", OTHERS)
def test_a_state_of_other_parts_is_refused_when_it_is_loaded(others):
    reward = bc.GuardedReward.of(bc.GainReward("loss"), *parts())
    reward(0.5, round=0)
    other = bc.GuardedReward.of(bc.GainReward("loss"), *OTHERS[others]())
    with pytest.raises(errors.StateMismatchError, match="state: part"):
        other.load_state_dict(reward.state_dict())
    assert not other.has_good_state


def test_a_state_that_says_no_parts_loads_if_it_has_as_many():
    reward = bc.GuardedReward.of(bc.GainReward("loss"), *parts())
    reward(0.5, round=0)
    state = {key: value for key, value in reward.state_dict().items() if key != "parts"}
    bc.GuardedReward.of(bc.GainReward("loss"), *parts()).load_state_dict(state)
    with pytest.raises(errors.StateMismatchError, match="4 states"):
        bc.GuardedReward.of(bc.GainReward("loss"), *parts()[:3]).load_state_dict(state)


@pytest.mark.parametrize("name", ["metric", "last", "smooth", "best", "round", "in_a_row", "worse"])
@pytest.mark.parametrize("value", [None, math.nan, "a"])
def test_a_damaged_state_is_refused_by_name(name, value):
    reward = guarded(Weights())
    reward(0.5, 0)
    state = copy.deepcopy(reward.state_dict())
    state["kept"][name] = value
    with pytest.raises(errors.StateMismatchError, match="a state_dict of GuardedReward"):
        reward.load_state_dict(state)
    assert reward(9.0, 1) == -1.0


class Warmup:
    """A scheduler of another library, which only holds its optimizer."""

    def __init__(self, optimizer):
        self.optimizer, self.steps = optimizer, 0

    def step(self):
        self.steps += 1

    def state_dict(self):
        return {"steps": self.steps}

    def load_state_dict(self, state):
        self.steps = state["steps"]


class Lookahead(Warmup):
    """A wrapper around an optimizer, which is none of torch's classes."""

    def zero_grad(self):
        self.optimizer.zero_grad()


@pytest.mark.parametrize(("kind", "steps"), [(Warmup, 1), (Lookahead, 0)])
def test_a_scheduler_of_another_library_goes_on_and_a_wrapper_of_an_optimizer_goes_back(
    kind, steps
):
    network = nn.Linear(2, 1)
    part = kind(torch.optim.SGD(network.parameters()))
    reward = bc.GuardedReward.of(bc.GainReward("loss"), network, part)
    reward(0.5, round=0)
    part.step()
    reward(9.0, round=1)
    assert (reward.restores, part.steps) == (1, steps)
