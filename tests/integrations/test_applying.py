"""A configuration is put into effect where it says, as a whole or not at all."""

import copy
import sys
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW
from torch.optim.lr_scheduler import (
    CosineAnnealingLR,
    CosineAnnealingWarmRestarts,
    CyclicLR,
    ExponentialLR,
    LambdaLR,
    OneCycleLR,
    ReduceLROnPlateau,
    StepLR,
)

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError, InvalidConfigError
from botorch_costly.integrations import apply
from tests.oracles.scheduled_rates import train_by_hand

SCHEDULERS = {
    "LambdaLR": lambda o: LambdaLR(o, lambda t: 0.9**t),
    "OneCycleLR": lambda o: OneCycleLR(o, max_lr=0.2, total_steps=40, cycle_momentum=False),
    "CosineAnnealingLR": lambda o: CosineAnnealingLR(o, T_max=12, eta_min=0.01),
    "CosineAnnealingWarmRestarts": lambda o: CosineAnnealingWarmRestarts(o, T_0=5),
    "StepLR": lambda o: StepLR(o, step_size=3, gamma=0.5),
    "ExponentialLR": lambda o: ExponentialLR(o, gamma=0.8),
    "CyclicLR": lambda o: CyclicLR(o, 0.01, 0.2, step_size_up=3, cycle_momentum=False),
}


class Network(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Dropout1d(0.2))
        self.head = nn.Sequential(nn.Linear(4, 1), nn.Dropout(0.1))
        self.attention = nn.MultiheadAttention(4, 2, dropout=0.3)


@pytest.fixture
def network():
    return Network()


def groups(network, **head):
    body = {"params": network.body.parameters(), "name": "body"}
    return [body, {"params": network.head.parameters(), "name": "head", **head}]


def settings(optimizer, key):
    return [group[key] for group in optimizer.param_groups]


def calls_of(function):
    """Return the number of functions of Python that a call of a function calls."""
    called = []
    sys.setprofile(lambda frame, event, _: called.append(event) if event == "call" else None)
    try:
        function()
    finally:
        sys.setprofile(None)
    return len(called)


def test_a_group_more_takes_few_calls_more():
    """A round applies a configuration, and some optimizers have a group for each tensor."""

    def calls(number):
        layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(number))
        optimizer = AdamW([{"params": [layer.weight]} for layer in layers], lr=0.1)
        config = {"lr": 0.2, "weight_decay": 0.3}
        apply(config, optimizer)  # which keeps the first values
        return calls_of(lambda: apply(config, optimizer))

    assert calls(60) - calls(20) <= 40 * 6


# -- what a name says ------------------------------------------------------------------------------


def test_a_decision_sets_all_groups(network):
    optimizer = SGD(groups(network), lr=0.1, momentum=0.9)
    config = {"lr": 0.02, "weight_decay": 0.1, "momentum": 0.5}
    apply(bc.Decision(0, config, query=False, reason="a test"), optimizer)
    assert settings(optimizer, "lr") == [0.02, 0.02]
    assert settings(optimizer, "weight_decay") == [0.1, 0.1]
    assert settings(optimizer, "momentum") == [0.5, 0.5]


def test_a_group_is_named_or_numbered(network):
    optimizer = SGD(groups(network, lr=1.0), lr=0.1)
    apply({"head.lr": 0.5, "0.learning_rate": 0.05, "1.weight_decay": 0.3}, optimizer)
    assert settings(optimizer, "lr") == [0.05, 0.5]
    assert settings(optimizer, "weight_decay") == [0, 0.3]


def test_betas_as_a_whole_and_one_by_one(network):
    optimizer = Adam(groups(network), lr=0.1)
    apply({"betas": (0.8, 0.99)}, optimizer)
    apply({"head.beta1": 0.7, "head.beta2": 0.9, "eps": 1e-6}, optimizer)
    assert settings(optimizer, "betas") == [(0.8, 0.99), (0.7, 0.9)]
    assert settings(optimizer, "eps") == [1e-6, 1e-6]


def test_dropout_of_a_network_and_of_a_part(network):
    optimizer = SGD(network.parameters(), lr=0.1)
    apply({"dropout": 0.25}, optimizer, network)
    apply({"body.dropout": 0.4}, optimizer, [network])
    apply({"head.1.dropout": 0}, optimizer, network)
    dropped = [module.p for module in network.modules() if hasattr(module, "p")]
    assert dropped == [0.4, 0.4, 0.0]
    assert network.attention.dropout == 0.25


def test_probabilities_that_are_made_alike_earn_one_warning(network, caplog):
    optimizer = SGD(network.parameters(), lr=0.1)
    for rate in (0.25, 0.1, 0.3):
        apply({"dropout": rate}, optimizer, network)
        network.attention.dropout = 0.0  # by the training loop
    (message,) = caplog.messages
    assert message.startswith(
        "dropout is set in 4 places, whose probabilities were 0.1, 0.2, 0.3, 0.5"
    )


def test_probabilities_of_parts_and_those_that_are_alike_earn_none(network, caplog):
    optimizer = SGD(network.parameters(), lr=0.1)
    for rate in (0.25, 0.1):
        apply({"head.dropout": rate, "attention.dropout": 2 * rate}, optimizer, network)
    alike = nn.Sequential(nn.Dropout(0.0), nn.Linear(1, 1), nn.Dropout(0.0), nn.GRU(2, 3))
    for rate in (0.25, 0.1):
        apply({"dropout": rate}, SGD(alike.parameters(), lr=0.1), alike)
    assert not caplog.records


def test_dropout_between_the_layers_of_a_recurrent_module():
    layers = nn.ModuleList([nn.LSTM(2, 3, num_layers=2, dropout=0.1), nn.GRU(2, 3)])
    apply({"dropout": 1.0}, SGD(layers.parameters(), lr=0.1), layers)
    assert [layer.dropout for layer in layers] == [1.0, 0.0]  # one layer has none between
    x, second = torch.ones(4, 1, 2), layers[0]
    assert torch.equal(second(x)[0], second(2 * x)[0])  # nothing of the first layer comes through
    layers.eval()
    assert not torch.equal(second(x)[0], second(2 * x)[0])


class Functional(nn.Module):
    """As attentions of Transformers: probabilities of its own, for functions, and a count beside them."""

    def __init__(self):
        super().__init__()
        self.dropout, self.attention_dropout = 0.1, 0.2
        self.dropout_layers, self.scale = 2, 0.5


def test_dropout_that_a_module_hands_to_functions():
    """The kind: a setting reaches one part of a network, and the rest keeps its own without a word."""
    network = nn.Sequential(nn.Linear(2, 2), Functional())
    apply({"dropout": 0.0}, SGD(network.parameters(), lr=0.1), network)
    assert vars(network[1])["dropout"] == vars(network[1])["attention_dropout"] == 0.0
    assert (network[1].dropout_layers, network[1].scale) == (2, 0.5)


class Distributed(nn.parallel.DistributedDataParallel):
    """One without processes: it holds the network as ever."""

    def __init__(self, module):
        nn.Module.__init__(self)
        self.module = module


def test_parts_of_a_distributed_network_have_their_own_names(network):
    optimizer = SGD(network.parameters(), lr=0.1)
    apply({"body.dropout": 0.4, "head.1.dropout": 0.3}, optimizer, Distributed(network))
    assert [m.p for m in network.modules() if hasattr(m, "p")] == [0.4, 0.4, 0.3]


def test_a_group_without_weight_decay_keeps_none(network):
    optimizer = AdamW(groups(network, weight_decay=0.0), lr=0.1, weight_decay=0.1)
    for decay in (0.3, 0.0, 0.2):
        apply({"weight_decay": decay}, optimizer)
        assert settings(optimizer, "weight_decay") == [decay, 0.0]
    resumed = AdamW(groups(network), lr=0.1, weight_decay=0.7)
    apply({"weight_decay": 0.0}, optimizer)
    resumed.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    apply({"weight_decay": 0.4}, resumed)
    assert settings(resumed, "weight_decay") == [0.4, 0.0]


def test_other_names_are_left_to_the_loop(network):
    optimizer = SGD(network.parameters(), lr=0.1)
    apply({"lr": 0.2, "policy": "light"}, optimizer, others=["policy"])
    assert settings(optimizer, "lr") == [0.2]


def test_a_rate_that_is_a_tensor_stays_that_tensor(network):
    optimizer = Adam(network.parameters(), lr=torch.tensor(0.1), capturable=False, foreach=False)
    rate = optimizer.param_groups[0]["lr"]
    apply({"lr": 0.02}, optimizer)
    assert optimizer.param_groups[0]["lr"] is rate
    torch.testing.assert_close(rate, torch.tensor(0.02))


def test_a_wrapped_optimizer_is_looked_into(network):
    optimizer = SGD(network.parameters(), lr=0.1)
    apply({"lr": 0.2}, SimpleNamespace(optimizer=SimpleNamespace(optimizer=optimizer)))
    assert settings(optimizer, "lr") == [0.2]


# -- what is refused, and changes nothing ----------------------------------------------------------

REFUSED = {
    "unknown": ({"policy": "light"}, "others="),
    "unknown group": ({"tail.lr": 0.1}, "others="),
    "no such module": ({"tail.dropout": 0.1}, "modules="),
    "not a setting": ({"params": 1}, "others="),
    "negative rate": ({"lr": -0.1}, ">= 0"),
    "momentum of 1": ({"momentum": 1}, "in .0, 1"),
    "text": ({"lr": "fast"}, ">= 0"),
    "not a probability": ({"dropout": 1.5}, "in .0, 1"),
    "twice": ({"learning_rate": 0.3, "lr": 0.2}, "one entry"),
    "twice within": ({"body.lr": 0.3, "lr": 0.2}, "one entry"),
    "groups that differ": ({"dampening": 0.5}, "'0.dampening'"),
    "dropout twice": ({"dropout": 0.1, "body.dropout": 0.2}, "one entry"),
    "no betas": ({"beta1": 0.5}, "others="),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused_and_changes_nothing(network, case):
    config, said = REFUSED[case]
    optimizer = SGD(groups(network, dampening=0.1), lr=0.1, momentum=0.9)
    before = copy.deepcopy(optimizer.state_dict())
    with pytest.raises(InvalidConfigError, match=said):
        apply({"weight_decay": 0.1, **config}, optimizer, network)
    assert optimizer.state_dict() == before
    assert network.body[1].p == 0.5


@pytest.mark.parametrize("betas", [(0.5,), 0.5, (0.5, 1.0), ("a", "b")])
def test_betas_that_do_not_fit(network, betas):
    with pytest.raises(InvalidConfigError, match="a tuple of 2 numbers"):
        apply({"betas": betas}, Adam(network.parameters()))


def test_betas_and_one_of_them(network):
    with pytest.raises(InvalidConfigError, match="one entry"):
        apply({"betas": (0.5, 0.5), "beta2": 0.9}, Adam(network.parameters()))


def test_dropout_without_a_network(network):
    with pytest.raises(InvalidConfigError, match="modules="):
        apply({"dropout": 0.1}, SGD(network.parameters(), lr=0.1))


def test_rates_of_groups_that_differ_are_set_by_group(network):
    optimizer = SGD(groups(network, lr=1.0), lr=0.1)
    with pytest.raises(InvalidConfigError, match=r"'0\.lr'"):
        apply({"lr": 0.1}, optimizer)
    apply({"lr": 0.1}, optimizer, rates="multipliers")


@pytest.mark.parametrize(
    "wrong",
    [
        {"rates": "factors"},
        {"optimizer": None},
        {"modules": [1]},
        {"decision": [0.1]},
        {"others": "lr"},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_arguments_that_are_wrong(network, wrong):
    given = {"decision": {"lr": 0.1}, "optimizer": SGD(network.parameters(), lr=0.1), **wrong}
    with pytest.raises(InvalidArgumentError):
        apply(given.pop("decision"), given.pop("optimizer"), **given)


# -- beside a scheduler ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SCHEDULERS)
def test_values_beside_a_scheduler_are_refused(network, kind):
    optimizer = SGD(network.parameters(), lr=0.1, momentum=0.9)
    SCHEDULERS[kind](optimizer)
    with pytest.raises(InvalidArgumentError, match="multipliers"):
        apply({"lr": 0.1}, optimizer)
    apply({"weight_decay": 0.1}, optimizer)


def test_a_scheduler_that_leaves_no_trace_is_named(network):
    optimizer = SGD(network.parameters(), lr=0.1)
    plateau = ReduceLROnPlateau(optimizer)
    with pytest.raises(InvalidArgumentError, match="ReduceLROnPlateau"):
        apply({"lr": 0.1}, optimizer, schedulers=[plateau])


@pytest.mark.parametrize("kind", [OneCycleLR, CyclicLR])
def test_a_cycled_momentum_is_refused(network, kind):
    optimizer = SGD(network.parameters(), lr=0.1, momentum=0.9)
    if kind is OneCycleLR:
        kind(optimizer, 0.1, total_steps=5)
        schedulers = []
    else:
        schedulers = [kind(optimizer, 0.01, 0.1)]
    with pytest.raises(InvalidArgumentError, match="cycle_momentum"):
        apply({"momentum": 0.5}, optimizer, rates="multipliers", schedulers=schedulers)


def trained(make, multipliers, steps=12, fails_at=None):
    """Weights after training, and the rates that the scheduler shows, with our multipliers."""
    torch.manual_seed(0)
    network, data = nn.Linear(3, 1), torch.randn(steps, 5, 3)
    optimizer = SGD(network.parameters(), lr=0.1, momentum=0.9)
    scheduler, shown = make(optimizer), []
    for step in range(steps):
        apply({"lr": multipliers[step // 3]}, optimizer, rates="multipliers")
        optimizer.zero_grad()
        network(data[step]).square().mean().backward()
        if step == fails_at:
            with pytest.raises(ZeroDivisionError):
                optimizer.step(lambda: 1 / 0)
        optimizer.step()
        shown.append(optimizer.param_groups[0]["lr"])
        scheduler.step()
    return network.weight.detach(), shown


@pytest.mark.parametrize("kind", SCHEDULERS)
@pytest.mark.parametrize("fails_at", [None, 4])
def test_a_multiplier_is_the_schedule_by_hand(kind, fails_at):
    multipliers = [1.0, 3.0, 0.25, 2.0]
    weight, shown = trained(SCHEDULERS[kind], multipliers, fails_at=fails_at)
    by_hand, schedule = train_by_hand(SCHEDULERS[kind], multipliers)
    torch.testing.assert_close(weight, by_hand, rtol=1e-6, atol=1e-7)
    assert shown == schedule  # the scheduler is as it is without a tuner


def test_multipliers_keep_the_ratio_of_groups(network):
    seen = []
    optimizer = SGD(groups(network, lr=1.0), lr=0.1)
    apply({"lr": 2.0}, optimizer, rates="multipliers")
    optimizer.register_step_pre_hook(lambda o, *_: seen.append(settings(o, "lr")))
    optimizer.step()
    assert seen == [[0.2, 2.0]]
    assert settings(optimizer, "lr") == [0.1, 1.0]


def test_multipliers_survive_copies_and_states(network):
    optimizer = SGD(network.parameters(), lr=0.1)
    apply({"lr": 2.0}, optimizer, rates="multipliers")
    for another in (copy.deepcopy(optimizer), SGD(network.parameters(), lr=0.1)):
        another.load_state_dict(optimizer.state_dict())
        seen = []
        apply({"lr": 3.0}, another, rates="multipliers")
        another.register_step_pre_hook(lambda o, *_, s=seen: s.append(settings(o, "lr")))
        another.step()
        assert seen == [[pytest.approx(0.3)]]
