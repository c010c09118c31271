"""Steps of optimizers that torch compiles, and their copies, are as without the global hooks."""

import copy
import logging
import pickle

import pytest
import torch
from torch import nn
from torch.optim import optimizer as module

from botorch_costly.integrations.multiplier import MULTIPLIER, multiply_rates
from botorch_costly.rewards.outside_optimizers import OutsideOptimizers

KINDS = {"Adam": torch.optim.Adam, "SGD": torch.optim.SGD}


def trained(kind):
    """A network and its optimizer, the rate of which is a tensor, so that no rate is compiled in."""
    torch.manual_seed(0)
    network = nn.Linear(3, 1)
    return network, KINDS[kind](network.parameters(), lr=torch.tensor(0.1))


def steps(network, step, count=5):
    for _ in range(count):
        network.zero_grad()
        network(torch.ones(4, 3)).square().mean().backward()
        step()
    return network.weight.detach().clone()


def graphs_of(step, network):
    """Compile a step, make some, and return the weights and the number of graphs."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    weights = steps(network, torch.compile(step, backend="eager"))
    return weights, torch._dynamo.utils.counters["stats"]["unique_graphs"]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_hooks_are_in_no_graph_if_they_have_nothing_to_do(kind, monkeypatch):
    network, optimizer = trained(kind)
    ours = graphs_of(optimizer.step, network)
    for name in ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks"):
        assert len(getattr(module, name)) >= 1
        monkeypatch.setattr(module, name, {})
    network, optimizer = trained(kind)
    plain = graphs_of(optimizer.step, network)
    assert torch.equal(ours[0], plain[0])
    assert ours[1] == plain[1]


@pytest.mark.slow
@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_a_step_without_hooks_is_one_graph(backend):
    """A whole ``step()`` is none with any hooks or without: torch itself breaks its graph."""
    network, optimizer = trained("Adam")
    torch._dynamo.reset()
    inner = type(optimizer).step.__wrapped__.__wrapped__
    compiled = torch.compile(lambda: inner(optimizer), fullgraph=True, backend=backend)

    def step():
        with torch.no_grad():
            compiled()

    expected, other = trained("Adam")
    torch.testing.assert_close(steps(network, step), steps(expected, other.step))


@pytest.mark.slow
def test_multiplied_rates_hold_in_compiled_steps():
    network, optimizer = trained("Adam")
    multiply_rates(optimizer.param_groups, 2.0)
    weights, _ = graphs_of(optimizer.step, network)
    expected, other = trained("Adam")
    multiply_rates(other.param_groups, 2.0)
    torch.testing.assert_close(weights, steps(expected, other.step))
    plain, once = trained("Adam")
    assert not torch.allclose(weights, steps(plain, once.step))
    assert float(optimizer.param_groups[0]["lr"]) == pytest.approx(0.1)  # the scheduler's own


@pytest.mark.slow
def test_an_optimizer_that_does_not_go_back_is_noticed_in_compiled_steps(caplog):
    network, optimizer = trained("Adam")
    watch = OutsideOptimizers([network], "GuardedReward.of(.., network, optimizer)")
    with caplog.at_level(logging.WARNING):
        weights, _ = graphs_of(optimizer.step, network)
    watch.end()
    assert sum("does not go back with it" in one.message for one in caplog.records) == 1
    expected, other = trained("Adam")
    torch.testing.assert_close(weights, steps(expected, other.step))


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_of_an_optimizer_is_as_without_the_hooks(copied, monkeypatch):
    network, optimizer = trained("Adam")
    multiply_rates(optimizer.param_groups, 2.0)
    watch = OutsideOptimizers([network, optimizer], "advice")
    steps(network, optimizer.step)
    ours, size = copied((network, optimizer)), len(pickle.dumps(optimizer))
    watch.end()
    for name in ("_global_optimizer_pre_hooks", "_global_optimizer_post_hooks"):
        monkeypatch.setattr(module, name, {})
    assert len(pickle.dumps(optimizer)) == size
    assert ours[1].param_groups[0][MULTIPLIER] == 2.0
    assert "lr_scheduled" not in ours[1].param_groups[0]
    monkeypatch.undo()
    torch.testing.assert_close(steps(*[ours[0], ours[1].step]), steps(network, optimizer.step))
