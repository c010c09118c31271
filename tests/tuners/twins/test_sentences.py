"""No two sentences of a diagnosis of twins contradict each other; what was never tried has a reason."""

import itertools
import math

import pytest

import botorch_costly as bc
from botorch_costly.tuners.twins.diagnosis import TwinDiagnosis
from botorch_costly.tuners.twins.told import Passed
from tests.tuners.twins.running import GOOD, Run, play

# Two phrases of which a diagnosis has one at most.
EXCLUSIVE = [
    ("exploring is cheap", "took what trials may cost"),
    ("exploring is cheap", "cost more than they promised"),
    ("exploring is cheap", "plays its incumbent to the end"),
    ("Compute hardly binds (", "Never tried"),
    ("Exploring has paid:", "changed 0 times"),
    ("Exploring has paid:", "It should be a loss"),
    ("Exploring has paid:", "or the metric is no loss"),
    ("has learnt nothing", "Compute binds"),
    ("has learnt nothing", "than with the start"),
    ("comparisons mean nothing", "than with the start"),
    ("comparisons mean nothing", "at the end would be"),
    ("comparisons mean nothing", "Compute"),
    ("are the same", "than with the start"),
    ("are the same", "were given back"),
    ("are the same", "Compute"),
    ("training diverges", "Compute"),
    ("overfits", "Compute binds"),
    ("worse than it was at first", "Compute binds"),
    ("worse than it was at first", "overfits"),
    ("Nothing has been tried", "were given back"),
    ("Nothing has been tried", "configuration changed"),
    ("No trial is over", "Nothing has been tried"),
]
VALUES = {
    "rounds": [100, 200, 300],
    "told": [2, 30],
    "failed": [0, 25],
    "slope": [math.nan, -0.1, 0.01, 0.3],
    "given_back": [0, 20],
    "changes": [0, 1],
    "gained": [math.nan, -0.1, 0.3],
    "most": [math.nan, 1.0],
    "flag": ["", "by_hand", "constant"],
    "worsened": [-1.0, 0.6],
    "passed": [None, Passed(59, 0.3, 0.5)],
    "untried": ["", "momentum", "settled", "costly", "costly without a rate", "binds", "few"],
    "tried": [True, False],
}


def texts():
    """What is said in all combinations that occur: a run that is the start is not ahead of it."""
    for values in itertools.product(*VALUES.values()):
        state = dict(zip(VALUES, values, strict=True))
        if state["changes"] == 0 and not state["gained"] <= 0:
            continue
        if not state["tried"] and (state["changes"] > 0 or state["given_back"] > 0):
            continue
        flag, why = state.pop("flag"), state.pop("untried")
        flags = {name: name == flag for name in ("by_hand", "constant")}
        flags["has_rate"] = why != "costly without a rate"
        numbers = {"horizon": 300, "queries": 30, "cost": 0.05, "compared": 3}
        untried = {"dropout": why.split()[0]} if why else {}
        yield str(TwinDiagnosis(**state, **flags, **numbers, untried=untried)), state


def test_no_two_sentences_contradict_each_other():
    said = dict(texts())
    assert len(said) > 500
    for (one, other), (text, state) in itertools.product(EXCLUSIVE, said.items()):
        assert not (one in text and other in text), (one, other, text)
        assert state["rounds"] < 300 or "exploring is cheap" not in text


def test_each_phrase_is_said():
    """A phrase that is never said would forbid nothing."""
    every = "\n".join(text for text, _ in texts())
    phrases = {phrase for pair in EXCLUSIVE for phrase in pair}
    assert {phrase for phrase in phrases if phrase not in every} == set()


SPACE = {
    "lr": bc.Scheduled(1e-5, 1.0),
    "momentum": bc.Real(0.0, 0.98),
    "weight_decay": bc.Real(1e-6, 1e-1, log=True),
    "dropout": bc.Real(0.0, 0.6),
}
START = {"lr": GOOD, "momentum": 0.9, "weight_decay": 1e-4, "dropout": 0.1}


def tuner_of(*names, horizon=200):
    space = bc.SearchSpace({name: SPACE[name] for name in names})
    return bc.TwinTuner(space, horizon, start={name: START[name] for name in names})


def converged(run):
    return 0.1 + math.exp(-20 * run.level)


def by_anything(config):
    return 1.0 if "lr" not in config else min(config["lr"] / GOOD, GOOD / config["lr"])


def test_what_the_search_for_the_rate_left_no_room_for_is_tried_without_it_or_in_more_rounds():
    tuner = tuner_of(*SPACE)
    play(tuner, Run(by_anything), metric=converged)
    found = tuner.diagnose()
    assert found.untried == {"momentum": "momentum", "weight_decay": "costly", "dropout": "costly"}
    text = str(found)
    assert "Never tried: weight_decay, dropout. The search for the learning rate took" in text
    assert "Never tried: momentum. Small values look better at once" in text
    assert "Compute hardly binds by now" in text
    assert "exploring is cheap" not in text
    # What it advises helps.
    for other in (tuner_of("momentum", "weight_decay", "dropout"), tuner_of(*SPACE, horizon=1000)):
        play(other, Run(by_anything), metric=converged)
        assert other.diagnose().untried == {"momentum": "momentum"}


def test_numbers_are_left_alone_while_compute_binds():
    tuner = tuner_of("lr", "weight_decay", "dropout")
    play(tuner, Run(by_anything))
    assert tuner.diagnose().untried == {"weight_decay": "binds", "dropout": "binds"}
    assert "Compute binds" in str(tuner.diagnose())


def test_a_settled_run_says_so():
    tuner = tuner_of("weight_decay", "dropout")
    tuner.settle()
    run = Run(by_anything)
    play(tuner, run, metric=converged)
    assert set(tuner.diagnose().untried.values()) == {"settled"}


def test_a_run_in_its_first_trial_has_tried_something():
    tuner = tuner_of("lr")
    session = play(tuner, Run(by_anything), rounds=4)
    assert len({decision.config["lr"] for decision in tuner.decisions}) > 1
    assert "No trial is over yet" in str(session.diagnose())


@pytest.mark.parametrize("metric", ["loss", "accuracy"])
def test_exploring_has_paid_only_if_the_metric_is_what_was_said(metric):
    numbers = dict.fromkeys(["failed", "changes"], 0) | {"horizon": 300, "queries": 30, "told": 30}
    numbers |= {"rounds": 200, "slope": 0.3, "given_back": 20, "cost": 0.05, "gained": 0.3}
    worse = TwinDiagnosis(**numbers, by_hand=False, constant=False, worsened=0.6, metric=metric)
    kind = "a loss" if metric == "loss" else "an accuracy"
    assert str(worse).startswith(f"Exploring has paid, if the metric is {kind}:")
