"""The kind: a wrapper around a network, or around a part of it, that changes what names stand for."""

import logging

import pytest
import torch
from torch import nn
from torch.optim import SGD

from botorch_costly.integrations import apply
from botorch_costly.integrations.parts import inner_network, named_parts, parts_of


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Dropout(0.5)))
        self.head = nn.Sequential(nn.Dropout(0.1), nn.Linear(2, 1))

    def forward(self, x):
        return self.head(self.encoder(x))


class Distributed(nn.parallel.DistributedDataParallel):
    """One without processes: it holds the network as ever."""

    def __init__(self, module):
        nn.Module.__init__(self)
        self.module = module


class Checkpointed(nn.Module):
    """Activation checkpointing, by the name under which torch holds what it wraps."""

    def __init__(self, module):
        super().__init__()
        self._checkpoint_wrapped_module = module


def compiled(network):
    return torch.compile(network, backend="eager")


def compiled_within(network):
    network.encoder = compiled(network.encoder)
    network.head = Distributed(network.head)
    return network


def in_place(network):
    network.compile(backend="eager")
    return network


WRAPPED = {
    "bare": lambda network: network,
    "compiled": compiled,
    "compiled and distributed": lambda network: Distributed(compiled(network)),
    "distributed and compiled": lambda network: compiled(Distributed(network)),
    "parallel": lambda network: nn.DataParallel(network),
    "compiled within": compiled_within,
    "compiled in place": in_place,
    "checkpointed": Checkpointed,
}


@pytest.mark.parametrize("kind", WRAPPED)
def test_parts_have_the_names_that_the_user_gave_them(kind):
    network = Network()
    inner, second = network.encoder[1][0], network.head[0]
    wrapped = WRAPPED[kind](network)
    optimizer = SGD(wrapped.parameters(), lr=0.1)
    apply({"encoder.1.dropout": 0.3, "head.0.dropout": 0.2}, optimizer, wrapped)
    assert (inner.p, second.p) == (0.3, 0.2)
    apply({"encoder.dropout": 0.6}, optimizer, wrapped)
    assert (inner.p, second.p) == (0.6, 0.2)


@pytest.mark.parametrize(
    "kind", ["compiled", "compiled within", "compiled in place", "checkpointed"]
)
def test_groups_have_the_names_of_the_parameters(kind):
    wrapped = WRAPPED[kind](Network())
    named = [{"params": [p], "name": name} for name, p in wrapped.named_parameters()]
    optimizer = SGD(named, lr=0.1)
    apply({"encoder.0.weight.lr": 0.7}, optimizer, wrapped)
    assert [group["lr"] for group in optimizer.param_groups] == [0.7, 0.1, 0.1, 0.1]
    apply({f"{named[1]['name']}.lr": 0.6}, optimizer, wrapped)  # as the wrapper says it
    assert [group["lr"] for group in optimizer.param_groups] == [0.7, 0.6, 0.1, 0.1]


@pytest.mark.parametrize("kind", [k for k in WRAPPED if "within" not in k and k != "checkpointed"])
def test_a_state_is_that_of_the_network_itself(kind):
    network = Network()
    assert inner_network(WRAPPED[kind](network)) is network


def test_a_part_that_is_called_module_keeps_its_name():
    network = nn.ModuleDict({"module": nn.Dropout(0.5)})
    assert [name for name, _ in named_parts(network)] == ["", "module"]


@pytest.mark.parametrize("kind", WRAPPED)
def test_a_tuned_dropout_of_a_compiled_network_earns_one_warning(kind, caplog):
    network = WRAPPED[kind](Network())
    optimizer = SGD(network.parameters(), lr=0.1)
    with caplog.at_level(logging.WARNING):
        apply({"lr": 0.2}, optimizer, network)
        assert caplog.text == ""
        for dropout in (0.1, 0.2):
            apply({"encoder.dropout": dropout}, optimizer, network)
    assert len(caplog.records) == ("compiled" in kind)


@pytest.mark.slow
def test_each_value_of_dropout_is_compiled_and_a_few_are_kept():
    """What the warning says holds: torch compiles once a value, and values that come again are known."""
    frames = []

    def counting(graph, inputs):
        frames.append(graph)
        return graph.forward

    network = torch.compile(Network(), backend=counting)
    optimizer = SGD(network.parameters(), lr=0.1)
    for dropout in (0.1, 0.2, 0.3, 0.1, 0.2, 0.3):
        apply({"dropout": dropout}, optimizer, network)
        network(torch.ones(1, 2))
    assert len(frames) == 3


def test_each_submodule_comes_once():
    network = Network()
    network.again, network.nothing = network.head[0], None
    network.register_module("empty", None)
    assert set(parts_of(network)) == set(network.modules())
    assert len(parts_of(network)) == len(list(network.modules()))
