"""A decision waits for its device a few times at most, whatever is decided.

The kind: a number that a device has computed is read where nothing depends on it yet, one by one in
place of all at once, or though the CPU knows it anyway. On a CPU reading is free, so the counts are made
where a device is, with ``--device far`` or ``--device cuda``; that it decides as a CPU does is checked
there, too.
"""

import pytest
import torch

import botorch_costly as bc
from benchmarks.speed.waits import counting
from botorch_costly.query import AlwaysQuery, BernoulliQuery, ConfidenceQuery, PricedQuery
from tests.cases import quick

MOST = 5  # waits of an ask with its tell
ROUNDS = 7

CUBE = bc.SearchSpace({"a": bc.Real(0.0, 1.0), "b": bc.Real(0.0, 1.0)})
MIXED = bc.SearchSpace(
    {"a": bc.Real(1e-3, 1.0, log=True), "b": bc.Choice([0, 1]), "c": bc.Integer(1, 9)}
)
ARMS = bc.SearchSpace({"a": bc.Choice([0, 1, 2]), "b": bc.Choice([0, 1])})
LATTICE = bc.SearchSpace({"a": bc.Integer(0, 5), "b": bc.Choice([0, 1])})
# Of two queries in opposite corners the bound would have equal maxima, and the last bits would decide.
DESIGN = {"design": bc.Design(rounds=3)}
EACH = {"hold": bc.Hold(share=0.0), **DESIGN}

CASES = {
    "as it comes": (CUBE, DESIGN),
    "with a query": (CUBE, {"query": AlwaysQuery(), **EACH}),
    "without a query": (
        CUBE,
        {"query": ConfidenceQuery(1e-9), **EACH},
    ),
    "by confidence": (CUBE, {"query": ConfidenceQuery(0.8, joint=True), **EACH}),
    "by a coin": (CUBE, {"query": BernoulliQuery(0.5), **EACH}),
    "the mean is played": (CUBE, {"query": BernoulliQuery(0.5), "unqueried_play": "mean", **EACH}),
    "with a price": (CUBE, {"query": PricedQuery(0.05), **EACH}),
    "with a budget": (CUBE, {"query": PricedQuery(budget=3), **EACH}),
    "mixed": (MIXED, {"query": ConfidenceQuery(0.8), **EACH}),
    "arms": (ARMS, {"query": ConfidenceQuery(0.8), **EACH}),
    "arms with a price": (ARMS, {"query": PricedQuery(0.05), **EACH}),
    "a lattice": (LATTICE, {"query": ConfidenceQuery(0.8), **EACH}),
    "LogEI": (CUBE, {"query": ConfidenceQuery(0.8), "acquisition": bc.LogEI(), **EACH}),
    "with variances": (CUBE, {"query": AlwaysQuery(), "variance": 0.01, **EACH}),
    "single precision": (CUBE, {"query": ConfidenceQuery(0.8), "dtype": torch.float32, **EACH}),
}


def reward(config):
    return -sum((float(value) - 0.3 * i) ** 2 for i, value in enumerate(config.values()))


def played(space, device, variance=0.0, **options):
    """Return the decisions of a run and how often each waited."""
    tuner, decisions, waits = bc.OnlineTuner(space, ROUNDS, device=device, **options), [], []
    for _ in range(ROUNDS):
        with counting(device) as count:
            decision = tuner.ask()
            if decision.query:
                spread = variance * (decision.round % 3)
                tuner.tell(decision, reward(decision.config), variance=spread)
            waits.append(count())
        decisions.append(decision)
    return decisions, waits


@pytest.fixture
def device(tkwargs):
    if tkwargs["device"].type not in ("far", "cuda"):
        pytest.skip("a CPU is not waited for: counted with --device far or cuda")
    return str(tkwargs["device"])


BY_DEFAULT = (
    "by confidence",
    "with a price",
    "mixed",
    "arms",
    "single precision",
    "with variances",
)


@pytest.mark.parametrize("name", quick(CASES, *BY_DEFAULT))
def test_a_decision_waits_a_few_times_and_decides_as_on_the_cpu(device, name):
    space, options = CASES[name]
    decisions, waits = played(space, device, **options)
    assert max(waits) <= MOST
    variance = options.get("variance", 0.0)
    named = {name: value for name, value in options.items() if name != "variance"}
    here = bc.OnlineTuner(space, ROUNDS, **named)
    for decision in decisions:
        expected = here.ask()
        assert decision.query == expected.query
        near, there = space.encode(decision.config), space.encode(expected.config)
        torch.testing.assert_close(near, there, atol=1e-4, rtol=0)
        if decision.query:
            spread = variance * (decision.round % 3)
            here.tell(expected, reward(decision.config), variance=spread)


def test_a_state_moves_to_another_device_with_its_random_numbers(device):
    there = bc.OnlineTuner(ARMS, 6, device=device, seed=3)
    here = bc.OnlineTuner(ARMS, 6, seed=3)
    for _ in range(3):
        there.ask()
    here.load_state_dict(there.state_dict())
    assert [here.ask().config for _ in range(3)] == [there.ask().config for _ in range(3)]
