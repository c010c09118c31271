"""A setting that reaches some groups of an optimizer, and not the others, earns one warning."""

import copy
import pickle

import pytest
import torch
from torch import nn
from torch.optim.lr_scheduler import StepLR

import botorch_costly as bc
from botorch_costly.integrations import apply
from botorch_costly.rewards import GainReward, GuardedReward
from botorch_costly.rewards.applied_rates import AppliedGroups
from tests.ask_tell.test_silent_training import Training as Plain

RATES, DECAY = bc.Real(1e-4, 1e-1, log=True), bc.Real(1e-5, 1e-1, log=True)
SAID = "as all had at first"


class Training(Plain):
    """Two layers, each a group of one optimizer."""

    def __init__(self, *options, kind=torch.optim.AdamW, **both):
        torch.manual_seed(0)
        self.network = nn.Sequential(nn.Linear(2, 4), nn.Tanh(), nn.Linear(4, 1))
        layers = self.network[0], self.network[2]
        options = options or ({}, {})
        pairs = zip(layers, options, strict=True)
        groups = [{"params": list(layer.parameters()), **own} for layer, own in pairs]
        self.optimizer = kind(groups, **{"lr": 1e-2, **both})


def in_the_first(optimizer, config):
    optimizer.param_groups[0].update(config)


def in_all(optimizer, config):
    for group in optimizer.param_groups:
        group.update(config)


def by_session(training, applied, space, rounds):
    session = bc.Session.of(
        bc.TwinTuner(space, rounds, queries=1.0), training.network, training.optimizer
    )
    for decision in session:
        applied(training.optimizer, decision.config)
        metric = training.train(steps=2)
        if decision.query:
            session.tell(decision, metric)


def by_guard(training, applied, space, rounds):
    guard = GuardedReward.of(GainReward("loss"), training.network, training.optimizer)
    tuner = bc.OnlineTuner(space, rounds, query=bc.AlwaysQuery())
    for _ in range(rounds):
        decision = tuner.ask()
        applied(training.optimizer, decision.config)
        tuner.tell(decision, guard(training.train(steps=2), decision))


RUNS = pytest.mark.parametrize("run", [by_session, by_guard])


def said(caplog, training, run, applied=in_the_first, rounds=40, **parameters):
    run(training, applied, bc.SearchSpace(parameters or {"lr": RATES}), rounds)
    return [text for text in caplog.messages if SAID in text]


@RUNS
def test_a_rate_in_the_first_group_alone(run, caplog):
    (text,) = said(caplog, Training(), run)
    assert text.startswith(
        "lr of AdamW follows the tuner, but group 1 of its param_groups still has 0.01, as all had at"
    )
    assert "apply(decision, optimizer, network)" in text


def test_a_decay_in_the_first_group_alone(caplog):
    (text,) = said(caplog, Training(weight_decay=0.3), by_guard, weight_decay=DECAY)
    assert text.startswith("weight_decay of AdamW follows the tuner, but group 1 ")


@RUNS
def test_a_rate_by_its_long_name(run, caplog):
    def applied(optimizer, config):
        optimizer.param_groups[0]["lr"] = config["learning_rate"]

    assert len(said(caplog, Training(), run, applied, learning_rate=RATES)) == 1


@RUNS
def test_a_setting_of_all_groups_is_in_order(run, caplog):
    assert not said(caplog, Training(), run, in_all)
    assert not said(caplog, Training(), run, lambda o, config: apply(config, o))


@RUNS
def test_groups_that_differ_from_the_start_are_to_differ(run, caplog):
    assert not said(caplog, Training({"lr": 1e-3}, {}), run)


def test_a_group_may_go_without(caplog):
    """Biases without weight decay, by an optimizer whose default is none."""
    training = Training(kind=torch.optim.Adam)
    assert not said(caplog, training, by_guard, weight_decay=DECAY)


@RUNS
def test_groups_that_keep_their_ratio_are_in_order(run, caplog):
    def applied(optimizer, config):
        optimizer.param_groups[0]["lr"] = config["lr"]
        optimizer.param_groups[1]["lr"] = config["lr"] / 10

    assert not said(caplog, Training(), run, applied)


@RUNS
def test_a_rate_named_for_its_group_is_in_order(run, caplog):
    def applied(optimizer, config):
        optimizer.param_groups[0]["lr"] = config["0.lr"]

    assert not said(caplog, Training(), run, applied, **{"0.lr": RATES})


@RUNS
def test_a_scheduler_of_all_groups_is_in_order(run, caplog):
    training = Training()
    scheduler = StepLR(training.optimizer, 1, 0.9)

    def applied(optimizer, config):
        optimizer.param_groups[0]["lr"] = config["lr"]
        if optimizer.state:
            scheduler.step()

    assert not said(caplog, training, run, applied)


def test_a_group_that_is_added_later_is_not_compared(caplog):
    training, late = Training(), nn.Linear(1, 1)

    def applied(optimizer, config):
        if len(optimizer.param_groups) == 2:
            optimizer.add_param_group({"params": late.parameters()})
        for group in optimizer.param_groups[:2]:
            group["lr"] = config["lr"]

    assert not said(caplog, training, by_guard, applied)


def test_three_values_are_enough_and_two_are_not(caplog):
    training = Training()
    groups = AppliedGroups([training.optimizer])
    for rate in (1e-2, 2e-2, 2e-2, 3e-2):  # the first is what all groups had
        in_the_first(training.optimizer, {"lr": rate})
        groups.note({"lr": rate})
    assert not caplog.messages
    for rate in (4e-2, 5e-2, 6e-2, 7e-2):
        in_the_first(training.optimizer, {"lr": rate})
        groups.note({"lr": rate})
    assert len(caplog.messages) == 1


def test_a_rate_in_single_precision(caplog):
    training = Training(lr=torch.tensor(1e-2))
    groups = AppliedGroups([training.optimizer])
    for rate in (0.03, 0.05, 0.07):
        in_the_first(training.optimizer, {"lr": torch.tensor(rate)})
        groups.note({"lr": rate})
    assert len(caplog.messages) == 1


def test_a_rate_on_an_accelerator_is_not_waited_for(caplog):
    training = Training()
    for group in training.optimizer.param_groups:
        group["lr"] = torch.empty((), device="meta")
    groups = AppliedGroups([training.optimizer])
    for rate in (0.03, 0.05, 0.07):
        groups.note({"lr": rate})
    assert not caplog.messages


def test_a_copy_goes_on_with_its_own_optimizer(caplog):
    training = Training()
    groups = AppliedGroups([training.optimizer])
    for twin in (copy.deepcopy, lambda both: pickle.loads(pickle.dumps(both))):
        own, optimizer = twin((groups, training.optimizer))
        caplog.clear()
        for rate in (0.03, 0.05, 0.07):
            in_the_first(optimizer, {"lr": rate})
            own.note({"lr": rate})
        assert len(caplog.messages) == 1
