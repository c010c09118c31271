"""A metric of the other kind makes twins choose what worsens the network: one warning says so."""

import math
import random
from functools import partial

import pytest
import torch

import botorch_costly as bc
from tests.tuners.twins.running import RATE, Run, play

DROPOUT = bc.SearchSpace({"dropout": bc.Real(0.0, 0.6)})


def told(space, start, kind, metric, *, horizon=200, noise=0.0):
    """The messages of a run with these metrics."""
    tuner = bc.TwinTuner(space, horizon, start=start, metric=kind)
    speed = (lambda config: 1 - config["dropout"]) if space is DROPOUT else None
    run = Run(noise=noise) if speed is None else Run(speed, noise=noise)
    play(tuner, run, metric=metric)


def accuracy(run):
    return 1 - 0.9 * min(run.loss(), 1.0)


KINDS = {
    "an accuracy as a loss": ("loss", accuracy),
    "a loss as an accuracy": ("accuracy", lambda run: 0.9 * min(run.loss(), 1.0)),
}


@pytest.mark.parametrize(("space", "start"), [(RATE, {"lr": 1e-3}), (DROPOUT, {"dropout": 0.2})])
@pytest.mark.parametrize("name", KINDS)
def test_the_other_kind_is_reported_once(name, space, start, caplog):
    kind, metric = KINDS[name]
    told(space, start, kind, metric)
    found = [record.getMessage() for record in caplog.records]
    assert len([message for message in found if f"If they are no {kind}" in message]) == 1


@pytest.mark.parametrize(("space", "start"), [(RATE, {"lr": 1e-3}), (DROPOUT, {"dropout": 0.2})])
@pytest.mark.parametrize("noise", [0.0, 0.2])
def test_the_kind_that_is_declared_is_fine(space, start, noise, caplog):
    told(space, start, "accuracy", accuracy, noise=noise)
    told(space, start, "loss", lambda run: 0.9 * min(run.loss(), 1.0), noise=noise)
    assert "declare them as" not in caplog.text


@pytest.mark.parametrize("kind", ["loss", "accuracy"])
def test_noise_around_a_level_is_fine(kind, caplog):
    """States are chosen by their metrics, so that the next metric is worse by chance."""
    for seed in range(3):
        draws = random.Random(seed)
        tuner = bc.TwinTuner(RATE, 120, start={"lr": 1e-3}, metric=kind)
        play(tuner, Run(), metric=lambda run, draws=draws: 0.5 + 0.05 * draws.gauss(0, 1))
    assert "declare them as" not in caplog.text


def test_a_resumed_run_counts_what_it_was_told_before(caplog):
    kind, metric = KINDS["an accuracy as a loss"]
    tuner, run = bc.TwinTuner(RATE, 200, start={"lr": 1e-3}, metric=kind), Run()
    play(tuner, run, metric=metric, rounds=20)
    again = bc.TwinTuner(RATE, 200, start={"lr": 1e-3}, metric=kind)
    again.load_state_dict(tuner.state_dict())
    assert "declare them as" not in caplog.text
    play(again, run, metric=metric)
    assert "declare them as accuracy" in caplog.text


def shares(run, examples=500):
    """An accuracy of a number of examples, in single precision; a tenth after a divergence."""
    share = 0.1 if math.isnan(run.level) else accuracy(run)
    return torch.tensor(round(examples * share) / examples, dtype=torch.float32).item()


def errors(run, examples=500):
    return 1 - shares(run, examples)


@pytest.mark.parametrize(("kind", "metric"), [("loss", shares), ("accuracy", errors)])
@pytest.mark.parametrize("start", [1e-3, 1e-2])
def test_shares_of_the_other_kind_are_reported_in_the_first_tenth(kind, metric, start, caplog):
    tuner = bc.TwinTuner(RATE, 200, start={"lr": start}, metric=kind)
    play(tuner, Run(), metric=metric, rounds=20)
    assert f"If they are no {kind}, declare them as" in caplog.text


@pytest.mark.parametrize("examples", [68, 500, 1000, 10_000])
@pytest.mark.parametrize("start", [1e-4, 1e-2])
def test_shares_of_the_declared_kind_are_fine(examples, start, caplog):
    for kind, metric in (("loss", errors), ("accuracy", shares)):
        tuner = bc.TwinTuner(RATE, 200, start={"lr": start}, metric=kind)
        play(tuner, Run(noise=0.02), metric=partial(metric, examples=examples))
    assert "declare them as" not in caplog.text
