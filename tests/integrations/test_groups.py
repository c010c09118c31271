"""The kind: the role of a parameter group guessed from the value that a setting has at present."""

import copy
import logging

import pytest
import torch
from torch import nn
from torch.optim import SGD, AdamW

from botorch_costly.errors import InvalidConfigError
from botorch_costly.integrations import apply


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5, 4)
        self.layer = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)
        self.relative_bias = nn.Embedding(3, 2)  # a matrix that is a bias, as in T5


def is_decayed(name):
    return not any(part in name for part in ("bias", "norm"))


def split(network, decay=0.0):
    named = list(network.named_parameters())
    return [
        {"params": [p for n, p in named if is_decayed(n)], "weight_decay": decay},
        {"params": [p for n, p in named if not is_decayed(n)], "weight_decay": 0.0},
    ]


def settings(optimizer, key):
    return [group[key] for group in optimizer.param_groups]


@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("kind", [SGD, AdamW])
@pytest.mark.parametrize("order", [1, -1])
def test_biases_and_norms_keep_no_decay_whatever_the_default_is(kind, decay, order):
    network = Network()
    optimizer = kind(split(network, decay)[::order], lr=0.1)
    for value in (0.3, 0.0, 0.2):
        apply({"weight_decay": value}, optimizer, network)
        assert settings(optimizer, "weight_decay")[::order] == [value, 0.0]
        optimizer.load_state_dict(copy.deepcopy(optimizer.state_dict()))


def test_shapes_and_names_in_the_groups_say_it_without_a_network():
    network = Network()
    del network.relative_bias
    optimizer = SGD(split(network), lr=0.1)
    apply({"weight_decay": 0.3}, optimizer)
    assert settings(optimizer, "weight_decay") == [0.3, 0.0]
    named = [(n, p) for n, p in Network().named_parameters()]
    optimizer = SGD(
        [{"params": [(n, p) for n, p in named if is_decayed(n) == of]} for of in (True, False)],
        lr=0.1,
    )
    apply({"weight_decay": 0.3}, optimizer)
    assert settings(optimizer, "weight_decay") == [0.3, 0.0]


def test_groups_that_are_alike_are_all_decayed():
    network = Network()
    for groups in (
        [{"params": network.layer.parameters()}, {"params": network.embedding.parameters()}],
        [{"params": network.norm.parameters()}],
        [{"params": [network.norm.weight]}, {"params": [network.norm.bias]}],
    ):
        optimizer = SGD(groups, lr=0.1)
        apply({"weight_decay": 0.3}, optimizer, network)
        assert set(settings(optimizer, "weight_decay")) == {0.3}
    apply({"1.weight_decay": 0.1}, optimizer, network)  # a group that is named is meant
    assert settings(optimizer, "weight_decay") == [0.3, 0.1]


def unfrozen(lr, **options):
    """An optimizer that was tuned, and has got a group since."""
    network = Network()
    optimizer = SGD(network.layer.parameters(), lr=0.1)
    apply({"lr": 0.05, "weight_decay": 0.2}, optimizer, network, **options)
    optimizer.add_param_group({"params": network.embedding.parameters(), "lr": lr, "name": "body"})
    return network, optimizer


def test_a_group_that_appears_with_a_rate_of_its_own_keeps_it_and_a_warning_says_so_once(caplog):
    network, optimizer = unfrozen(lr=0.005)
    with caplog.at_level(logging.WARNING):
        for rate in (0.3, 0.4):
            apply({"lr": rate, "weight_decay": rate}, optimizer, network)
            assert settings(optimizer, "lr") == [rate, 0.005]
            assert settings(optimizer, "weight_decay") == [rate, rate]
            optimizer.param_groups[1]["lr"] = 0.005  # as callbacks write that unfreeze
    assert len(caplog.records) == 1
    assert "0.lr" in caplog.text
    apply({"lr": 0.3, "weight_decay": 0.1}, optimizer, network)
    apply({"0.lr": 0.3, "body.lr": 0.01}, optimizer, network)
    assert settings(optimizer, "lr") == [0.3, 0.01]


def test_a_group_that_appears_as_the_others_were_made_is_set_with_them():
    network, optimizer = unfrozen(lr=0.1)
    apply({"lr": 0.3}, optimizer, network)
    assert settings(optimizer, "lr") == [0.3, 0.3]


def test_a_group_that_appears_is_multiplied():
    network, optimizer = unfrozen(lr=0.005, rates="multipliers")
    apply({"lr": 2.0}, optimizer, network, rates="multipliers")
    optimizer.register_step_pre_hook(lambda o, *_: seen.append(settings(o, "lr")))
    seen = []
    optimizer.step()
    assert seen == [[0.2, 0.01]]


def test_groups_that_differ_from_the_beginning_are_refused_as_ever():
    network = Network()
    groups = [
        {"params": network.layer.parameters()},
        {"params": network.norm.parameters(), "lr": 1.0},
    ]
    with pytest.raises(InvalidConfigError, match=r"'0\.lr'"):
        apply({"lr": 0.3}, SGD(groups, lr=0.1), network)


def test_a_group_without_a_name_is_not_called_none():
    optimizer = SGD([nn.Parameter(torch.zeros(1))], lr=0.1)
    with pytest.raises(InvalidConfigError, match="others="):
        apply({"None.lr": 0.3}, optimizer)


def sharing():
    """An optimizer whose groups torch gives one tensor, that of its default rate."""
    body, head = nn.Linear(1, 1), nn.Linear(1, 1)
    groups = [
        {"params": body.parameters(), "name": "body"},
        {"params": head.parameters(), "name": "head"},
    ]
    return torch.optim.AdamW(groups, lr=torch.tensor(1e-3))


def test_groups_that_share_the_tensor_of_their_rate_are_set_one_by_one():
    """The kind: what is written to one group reaches others that hold the same object."""
    optimizer = sharing()
    apply({"head.lr": 0.5}, optimizer)
    assert rates(optimizer) == pytest.approx([1e-3, 0.5])
    optimizer = sharing()
    for _ in range(3):
        apply({"lr": 2.0}, optimizer, rates="multipliers")
        optimizer.step()
    assert rates(optimizer) == pytest.approx([1e-3, 1e-3])


def rates(optimizer):
    return [float(group["lr"]) for group in optimizer.param_groups]


def test_a_name_goes_before_a_number():
    optimizer = sharing()
    for group, name in zip(optimizer.param_groups, "10", strict=True):
        group["name"] = name
    apply({"1.lr": 0.5}, optimizer)
    assert rates(optimizer) == pytest.approx([0.5, 1e-3])
    apply({"0.lr": 0.25}, optimizer)
    assert rates(optimizer) == pytest.approx([0.5, 0.25])
