"""A setting that something else writes while a round is trained earns one warning of the driver."""

import copy

import pytest
import torch
from torch import nn

import botorch_costly as bc
from botorch_costly.integrations import RoundLength
from botorch_costly.integrations.driver import Driver
from botorch_costly.integrations.training import Trained, TrainerOptions

SPACES = {
    "lr": bc.SearchSpace({"lr": bc.Real(1e-3, 1.0, log=True)}),
    "head.lr": bc.SearchSpace({"head.lr": bc.Real(1e-3, 1.0, log=True)}),
    "beta1": bc.SearchSpace({"beta1": bc.Real(0.5, 0.99)}),
    "weight_decay": bc.SearchSpace({"weight_decay": bc.Real(1e-4, 0.5, log=True)}),
    "multiplier": bc.SearchSpace({"lr": bc.Real(0.1, 10.0, log=True)}),
    "twins": bc.SearchSpace({"lr": bc.Real(1e-3, 1.0, log=True)}),
}


def warnings_of_run(caplog, name, meddle=lambda optimizer, step: None, others=(), rounds=12):
    """Train a few rounds, with a hand in the optimizer after each step; return the warnings about it."""
    torch.manual_seed(0)
    body, head = nn.Linear(2, 2), nn.Linear(2, 1)
    groups = [
        {"params": body.parameters(), "name": "body"},
        {"params": head.parameters(), "name": "head"},
    ]
    optimizer = torch.optim.AdamW(groups, lr=torch.tensor(0.1) if name == "head.lr" else 0.1)
    is_multiplied = name == "multiplier"
    steps = torch.optim.lr_scheduler.StepLR(optimizer, 1, 0.5) if is_multiplied else None
    tuner = bc.OnlineTuner(SPACES[name], rounds, query=bc.AlwaysQuery())
    if name == "twins":
        tuner = bc.TwinTuner(SPACES[name], rounds, queries=1.0)
    options = TrainerOptions(
        RoundLength(steps=2), rates="multipliers" if is_multiplied else "values", others=others
    )
    driver, network = Driver(tuner, options), nn.Sequential(body, head)
    driver.start(Trained(network, optimizer, () if steps is None else (steps,)))
    for step in range(2 * rounds):
        driver.before_step()
        optimizer.zero_grad()
        network(torch.ones(1, 2)).square().sum().backward()
        optimizer.step()
        if steps is not None:
            steps.step()
        meddle(optimizer, step)
        if driver.after_step():
            driver.validated(1.0)
    return [text for text in caplog.messages if "something else writes it" in text]


@pytest.mark.parametrize("name", SPACES)
def test_settings_that_hold_earn_no_warning(name, caplog):
    assert warnings_of_run(caplog, name) == []


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("lr", "lr", 0.3),
        ("twins", "lr", 0.3),
        ("head.lr", "lr", torch.tensor(0.3)),
        ("beta1", "betas", (0.1, 0.9)),
        ("weight_decay", "weight_decay", 0.9),
        ("multiplier", "lr_multiplier", 3.0),
    ],
)
def test_a_setting_that_is_overwritten_earns_one_warning(name, key, value, caplog):
    def overwrite(optimizer, step):
        optimizer.param_groups[-1][key] = copy.deepcopy(value)

    (text,) = warnings_of_run(caplog, name, overwrite)
    assert text.startswith("lr" if name in ("multiplier", "twins") else name)
    assert "rates='multipliers'" in text


def test_settings_that_are_not_tuned_may_change(caplog):
    def anneal(optimizer, step):
        for group in optimizer.param_groups:
            group["lr"] *= 0.9
            group["untuned_lr"] = 0.1  # of an earlier run that tuned it
        if step == 3:
            optimizer.add_param_group({"params": [nn.Parameter(torch.ones(1))], "lr": 0.7})

    assert warnings_of_run(caplog, "beta1", anneal) == []
    assert warnings_of_run(caplog, "lr", anneal, others=["lr"]) == []

    def thaw(optimizer, step):
        if step == 2:
            optimizer.param_groups[0]["lr"] = 0.7

    assert warnings_of_run(caplog, "head.lr", thaw) == []
