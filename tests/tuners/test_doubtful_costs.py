"""Costs that fall toward the target, or do not depend on the fidelity: said once."""

import math
import random

import pytest
import torch

import botorch_costly as bc
from botorch_costly.tuners.subsets.doubtful_costs import LATER, are_flat, falling_fidelities

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


FLAT = {"flat", "flat with noise", "by the configuration", "falls by a hundredth"}


@pytest.mark.parametrize("name", PAID)
def test_other_costs_are_not_but_those_that_do_not_depend_on_the_fidelity(name, caplog):
    played(*PAID[name])
    assert not messages(caplog)
    assert sum("do not depend on" in text for text in caplog.messages) == (name in FLAT)


def test_a_narrow_range_is_flat_once_its_ends_have_been_tried(caplog):
    """Kind: the program reads no fidelity, and all of them lie within a factor of eight."""
    search = optimizer(bc.SearchSpace({"fraction": bc.Real(1 / 8, 1.0, log=True)}))
    draws = random.Random(0)
    for _ in range(28):
        tell(search, search.ask(), lambda _: 60 * (1 + 0.1 * draws.random()))
    (text,) = [text for text in caplog.messages if "do not depend on fraction" in text]
    assert "does your evaluation read decision.fidelities" in text


def by_chance(seed, low, cost_of, columns=3, share_of=None):
    """Return shares, costs and configurations of as many evaluations as are looked at."""
    draws = random.Random(seed)
    configs = [[draws.random() for _ in range(columns)] for _ in range(max(LATER))]
    exponents = [draws.random() if share_of is None else share_of(row[0], draws) for row in configs]
    shares = [low**exponent for exponent in exponents]
    costs = [cost_of(s, row[0], draws) for s, row in zip(shares, configs, strict=True)]
    return shares, costs, torch.tensor(configs, dtype=torch.float64)


def is_named(shares, costs, configs):
    return any(are_flat(shares[:n], costs[:n], configs[:n]) for n in LATER)


TRUE_COSTS = {
    "the share": lambda share, x, draws: share * math.exp(draws.gauss(0, 0.5)),
    "its root": lambda share, x, draws: share**0.5 * math.exp(draws.gauss(0, 0.2)),
    "and the configuration": lambda share, x, draws: share * 100**x * math.exp(draws.gauss(0, 0.1)),
    "what is fixed": lambda share, x, draws: (0.3 + share) * math.exp(draws.gauss(0, 0.1)),
}


@pytest.mark.parametrize("low", [1 / 64, 1 / 8, 1 / 4])
@pytest.mark.parametrize("chosen", ["at random", "by the configuration"])
@pytest.mark.parametrize("name", TRUE_COSTS)
def test_costs_that_depend_on_the_fidelity_are_not_flat(name, chosen, low):
    """Also where dear configurations are tried on small parts, so that all cost about as much."""
    small = None if chosen == "at random" else lambda x, draws: 0.8 * x + 0.2 * draws.random()
    runs = [by_chance(seed, low, TRUE_COSTS[name], share_of=small) for seed in range(40)]
    assert not any(is_named(*run) for run in runs)


@pytest.mark.parametrize("fixed", [0.2, 0.33, 0.5, 1.0])
@pytest.mark.parametrize("noise", [0.0, 0.02])
@pytest.mark.parametrize(("low", "most"), [(1 / 128, 0.2), (1 / 64, 0.4), (1 / 8, 1.0)])
def test_costs_most_of_which_are_fixed_are_not_flat(fixed, noise, low, most):
    """Such as loading the data: small parts cost nearly as much as each other."""

    def cost_of(share, x, draws):
        return (fixed + share * most) * math.exp(draws.gauss(0, noise))

    runs = [by_chance(seed, low / most, cost_of) for seed in range(40)]
    runs = [([share * most for share in shares], *others) for shares, *others in runs]
    assert sum(is_named(*run) for run in runs) <= 2


@pytest.mark.parametrize("low", [1 / 64, 1 / 8, 1 / 5])
def test_costs_by_the_configuration_alone_are_flat(low):
    runs = [by_chance(seed, low, lambda share, x, draws: 10**x) for seed in range(40)]
    assert sum(is_named(*run) for run in runs) > 35


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
