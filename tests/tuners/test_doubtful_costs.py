"""Costs that fall toward the target, or do not depend on the fidelity: said once."""

import random

import pytest

import botorch_costly as bc
from botorch_costly.tuners.subsets.doubtful_costs import falling_fidelities

SPACE = bc.SearchSpace({"x": bc.Real(0.0, 1.0)})
FAST = bc.Sampling(draws=2, first_steps=8, steps=8, points=5, candidates=20, first=14)
TWO = bc.SearchSpace({"data": bc.Real(0.05, 1.0, log=True), "epochs": bc.Real(1.0, 20.0, log=True)})
TOLERANCE = bc.SearchSpace({"tolerance": bc.Real(1e-4, 1e-1, log=True)})


def optimizer(fidelities=None):
    return bc.SubsetOptimizer(SPACE, fidelities, sampling=FAST, maximize=False)


def tell(search, decision, cost_of):
    cost = None if cost_of is None else cost_of(decision)
    search.tell(decision, (decision.config["x"] - 0.3) ** 2, cost=cost)


def played(fidelities, cost_of):
    search = optimizer(fidelities)
    for _ in range(13):
        tell(search, search.ask(), cost_of)
    return search


def messages(caplog):
    return [r.message for r in caplog.records if "fall toward the target" in r.message]


INVERTED = {
    "speed": (None, lambda d: 1 / d.fidelities["fraction"]),
    "with noise": (None, lambda d: (1 + d.config["x"] / 2) / d.fidelities["fraction"]),
    "a tolerance": (TOLERANCE, lambda d: d.fidelities["tolerance"] ** -0.5),
    "one of two": (TWO, lambda d: d.fidelities["epochs"] ** 0.1 / d.fidelities["data"]),
}
PAID = {
    "share": (None, lambda d: d.fidelities["fraction"]),
    "omitted": (None, None),
    "flat": (None, lambda d: 3.0),
    "flat with noise": (None, lambda d: 3 + random.Random(d.round).random()),
    "by the configuration": (None, lambda d: 10 ** d.config["x"]),
    "falls by a hundredth": (None, lambda d: 1 - 0.01 * d.fidelities["fraction"]),
    "two": (TWO, lambda d: d.fidelities["epochs"] * d.fidelities["data"]),
    "one of two": (TWO, lambda d: d.fidelities["epochs"]),
}


@pytest.mark.parametrize("name", INVERTED)
def test_costs_that_fall_are_named_once(name, caplog):
    search = played(*INVERTED[name])
    (message,) = messages(caplog)
    assert search.fidelities.names[0] in message


FLAT = {"flat", "flat with noise", "falls by a hundredth"}


@pytest.mark.parametrize("name", PAID)
def test_other_costs_are_not_but_those_that_do_not_depend_on_the_fidelity(name, caplog):
    played(*PAID[name])
    assert not messages(caplog)
    assert sum("are about equal" in text for text in caplog.messages) == (name in FLAT)


def test_evaluations_of_ones_own_are_not(caplog):
    search = optimizer()
    for number in range(12):
        own = search.enqueue({"x": number / 12}, {"fraction": (number + 1) / 13})
        tell(search, own, lambda d: 1 / d.fidelities["fraction"])
    assert not messages(caplog)


def test_a_loaded_run_does_not_say_it_again(caplog):
    search, cost_of = optimizer(), INVERTED["speed"][1]
    for _ in range(10):
        tell(search, search.ask(), cost_of)
    again = optimizer()
    again.load_state_dict(search.state_dict())
    tell(again, again.enqueue({"x": 0.5}, {"fraction": 1.0}), cost_of)
    failed = again.ask()
    again.tell(failed, float("nan"), cost=1.0)
    tell(again, again.ask(), cost_of)
    assert len(messages(caplog)) == 1


@pytest.mark.parametrize("noise", [0.0, 1e-6])
def test_of_two_opposite_fidelities_the_costs_may_rise_with_one(noise):
    generator = random.Random(0)
    at = [{"a": n / 10, "b": 1.1 - n / 10 + generator.gauss(0, noise)} for n in range(1, 11)]
    assert falling_fidelities(at, [f["b"] for f in at]) == []
    assert falling_fidelities(at, [f["a"] for f in at]) == []
    assert falling_fidelities(at, [1.0] * 10) == []
