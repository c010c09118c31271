"""The kind: what a hook puts into effect is lost when the optimizer is built anew from its state."""

import copy
import io
import pickle

import pytest
import torch
from torch import nn
from torch.optim import SGD, Adam

from botorch_costly.integrations import apply


def made():
    network = nn.Linear(1, 1, bias=False)
    return network, SGD(network.parameters(), lr=0.1)


def loaded(optimizer):
    _, another = made()
    buffer = io.BytesIO()
    torch.save(optimizer.state_dict(), buffer)
    buffer.seek(0)
    another.load_state_dict(torch.load(buffer, weights_only=True))
    return another


def set_anew(optimizer):
    optimizer.__setstate__(optimizer.__getstate__())  # as libraries do that change an optimizer
    return optimizer


REBUILT = {
    "itself": lambda optimizer: optimizer,
    "a copy": copy.deepcopy,
    "a pickle": lambda optimizer: pickle.loads(pickle.dumps(optimizer)),
    "a state": loaded,
    "a copy of a copy": lambda optimizer: copy.deepcopy(loaded(optimizer)),
    "set anew": set_anew,
}


def stepped(optimizer):
    """Return how far a step with a gradient of 1 goes: the rate in effect."""
    (weight,) = optimizer.param_groups[0]["params"]
    before, weight.grad = weight.detach().clone(), torch.ones_like(weight)
    optimizer.step()
    return float(before - weight.detach())


@pytest.mark.parametrize("kind", REBUILT)
def test_a_multiplier_is_in_effect_however_the_optimizer_was_made(kind):
    _, optimizer = made()
    apply({"lr": 3.0}, optimizer, rates="multipliers")
    again = REBUILT[kind](optimizer)
    assert stepped(again) == pytest.approx(0.3)
    assert stepped(again) == pytest.approx(0.3)  # not multiplied twice
    assert again.param_groups[0]["lr"] == 0.1


def test_values_are_values_after_multipliers():
    _, optimizer = made()
    apply({"lr": 3.0}, optimizer, rates="multipliers")
    for again in (loaded(optimizer), optimizer):
        apply({"lr": 0.2}, again)
        assert stepped(again) == pytest.approx(0.2)


def test_optimizers_without_multipliers_step_as_ever():
    _, tuned = made()
    _, other = made()
    apply({"lr": 3.0}, tuned, rates="multipliers")
    assert stepped(other) == pytest.approx(0.1)


class Around(torch.optim.Optimizer):
    """An optimizer around another one, with the groups of that one."""

    def __init__(self, inner):
        super().__init__([nn.Parameter(torch.zeros(1))], {"lr": 0.1})
        self.inner, self.param_groups = inner, inner.param_groups

    def step(self, closure=None):
        self.inner.step(closure)


def test_a_wrapped_optimizer_multiplies_once():
    _, optimizer = made()
    outer = Around(optimizer)
    apply({"lr": 3.0}, outer, rates="multipliers")
    assert stepped(outer) == pytest.approx(0.3)
    assert optimizer.param_groups[0]["lr"] == 0.1


def test_a_rate_that_is_a_tensor_is_multiplied_in_a_copy():
    network, _ = made()
    optimizer = Adam(network.parameters(), lr=torch.tensor(0.1), foreach=False)
    apply({"lr": 3.0}, optimizer, rates="multipliers")
    again = copy.deepcopy(optimizer)
    assert stepped(again) == pytest.approx(0.3, rel=1e-4)
    assert float(again.param_groups[0]["lr"]) == pytest.approx(0.1)
