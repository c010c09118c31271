"""A run goes on where powers and exponentials have other last digits than where it began.

Options that a program computes, such as ``10**-3.5``, and those that an optimizer derives differ in their
last digits between processors and versions of a library.
"""

import hashlib
import json
from collections.abc import Callable
from typing import Any

import pytest
import torch

import botorch_costly as bc
from botorch_costly import bandits
from botorch_costly.errors import InvalidConfigError, StateMismatchError
from botorch_costly.plain import agree_as_text
from botorch_costly.query import BernoulliQuery, ConfidenceQuery, PricedQuery
from tests.state_files.optimizers import facts_of, play

ELSEWHERE = 1 + 3e-14
OTHER = 1 + 1e-6


def _space(digits: float) -> bc.SearchSpace:
    return bc.SearchSpace(
        {
            "lr": bc.Real(1e-4 * digits, 1e-1 * digits, log=True),
            "decay": bc.Choice([0.1 * digits, 0.3 * digits]),
            "depth": bc.Integer(1, 4),
        }
    )


def _configs(digits: float) -> list[dict[str, Any]]:
    # The smallest and the largest rate are bounds: those from elsewhere may lie outside by a digit.
    rates, decays = (1e-4, 3e-3, 2e-2, 1e-1), (0.1, 0.3)
    return [
        {"lr": rate * digits, "decay": decay * digits, "depth": depth}
        for depth, rate in enumerate(rates, start=1)
        for decay in decays
    ]


def _task(digits: float) -> bc.Task:
    return bc.Task(_configs(digits), [0.3 * number * digits for number in range(8)])


def _online(digits: float, **options: Any) -> bc.OnlineTuner:
    search = bc.Search(num_restarts=4)
    return bc.OnlineTuner(_space(digits), 20, seed=1, search=search, **options)


def _bandit(digits: float, strategy: Any) -> bc.BanditTuner:
    arms = bc.SearchSpace({"decay": bc.Choice([0.1 * digits, 0.2 * digits, 0.3 * digits])})
    rule = BernoulliQuery(0.7 * digits)
    return bc.BanditTuner(arms, 20, strategy=strategy, query=rule, seed=1)


def _curves(digits: float, **options: Any) -> bc.CurveOptimizer:
    search = bc.Search(num_restarts=4)
    return bc.CurveOptimizer(
        _space(digits), candidates=_configs(digits), horizon=20, seed=1, search=search, **options
    )


def _subsets(digits: float, **options: Any) -> bc.SubsetOptimizer:
    rough = bc.Sampling(draws=2, first_steps=8, steps=8, points=5, candidates=20, first=12)
    fidelities = bc.SearchSpace({"fraction": bc.Real(0.1 * digits, 1.0, log=True)})
    return bc.SubsetOptimizer(
        _space(digits), fidelities, horizon=15, sampling=rough, seed=1, **options
    )


MAKERS: dict[str, Callable[[float], Any]] = {
    "online": lambda digits: _online(digits, query=ConfidenceQuery(0.8 * digits)),
    "online, priced": lambda digits: _online(digits, query=PricedQuery(price=0.1 * digits)),
    "bandit": lambda digits: _bandit(digits, bandits.GPUCB()),
    "bandit, softmax": lambda digits: _bandit(digits, bandits.Softmax(0.2 * digits)),
    "twins": lambda digits: bc.TwinTuner(_space(digits), 40, seed=1, start=_configs(digits)[0]),
    "twins in the middle": lambda digits: bc.TwinTuner(_space(digits), 40, seed=1),
    "population": lambda digits: bc.PopulationTuner(
        _space(digits), 20, members=3, seed=1, start=_configs(digits)[-1]
    ),
    "curves": lambda digits: _curves(digits, iterations=27),
    "curves of each length": lambda digits: _curves(
        digits, lengths=[9, 10, 11, 12, 13, 14, 15, 27]
    ),
    "curves with a task": lambda digits: _curves(digits, iterations=27, tasks=[_task(digits)]),
    "subsets": _subsets,
    "subsets from a list": lambda digits: _subsets(
        digits,
        candidates=[(c, {"fraction": s}) for c in _configs(digits) for s in (0.1 * digits, 1.0)],
    ),
    "transfer": lambda digits: bc.TransferOptimizer(
        _space(digits), [_task(digits)], horizon=20, seed=1
    ),
    "transfer from a list": lambda digits: bc.TransferOptimizer(
        _space(digits), [_task(digits)], horizon=20, candidates=_configs(digits), seed=1
    ),
    "random": lambda digits: bc.RandomTuner(_space(digits), 20, seed=1),
}


@pytest.mark.filterwarnings("ignore")  # the values are no curves
@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(
    "digits",
    [ELSEWHERE, pytest.param(2 - ELSEWHERE, marks=pytest.mark.slow)],
    ids=["larger", "smaller"],
)
def test_a_run_goes_on_where_last_digits_differ(name, digits):
    here, there = MAKERS[name](1.0), MAKERS[name](digits)
    play(here, 5)
    there.load_state_dict(here.state_dict())
    assert facts_of(there) == facts_of(here)
    assert (there.best() is None) == (here.best() is None)
    if here.best() is not None:
        assert dict(there.best()) == pytest.approx(dict(here.best()), rel=1e-6)
    play(there, 3)
    assert len(there.decisions) == 8


# Options of what belongs to a run beside its tuner.
PARTS: dict[str, Callable[[float], Any]] = {
    "gain": lambda digits: bc.GainReward(scale=0.3 * digits),
    "good state": lambda digits: bc.GoodState(torch.nn.Linear(1, 1), margin=0.3 * digits),
    "guard": lambda digits: bc.GuardedReward.of(
        bc.GainReward(), torch.nn.Linear(1, 1), margin=0.3 * digits
    ),
    "validation": lambda digits: bc.Validation(0.03 * digits, target=0.3 * digits),
}


@pytest.mark.parametrize("name", PARTS)
def test_a_part_of_a_run_goes_on_where_last_digits_differ(name):
    state = PARTS[name](1.0).state_dict()
    PARTS[name](ELSEWHERE).load_state_dict(state)
    with pytest.raises(StateMismatchError):
        PARTS[name](OTHER).load_state_dict(state)


@pytest.mark.parametrize("value", [0.3, (0.3, 0.9), 0.1, 1.0])
def test_an_option_with_other_last_digits_is_that_option(value):
    choice = bc.Choice([0.3, (0.3, 0.9), 0.1, 1.0])
    computed = (
        tuple(x * ELSEWHERE for x in value) if isinstance(value, tuple) else value * ELSEWHERE
    )
    assert choice.canonical("decay", computed) == value
    with pytest.raises(InvalidConfigError):
        choice.canonical("decay", 0.3 * OTHER)


@pytest.mark.parametrize("bound", [1e-4, 0.1])
def test_a_value_with_other_last_digits_is_the_bound(bound):
    rate = bc.Real(1e-4, 0.1, log=True)
    assert {rate.canonical("lr", bound * digits) for digits in (ELSEWHERE, 2 - ELSEWHERE)} == {
        bound
    }
    outside = bound * (OTHER if bound == 0.1 else 2 - OTHER)
    with pytest.raises(InvalidConfigError):
        rate.canonical("lr", outside)


def test_a_state_with_the_one_exact_hash_of_before_is_opened():
    """Earlier versions wrote hashes of values with all of their digits."""
    rates = [{"lr": 10 ** (-1 - number / 7), "decay": 0.1, "depth": 2} for number in range(7)]
    options = {"iterations": 9, "candidates": rates, "horizon": 20}
    here, there = (bc.CurveOptimizer(_space(1.0), **options) for _ in range(2))
    play(here, 3)
    state = here.state_dict()
    text = state["header"]["candidates"]
    exact = hashlib.sha256(json.dumps(rates, sort_keys=True).encode()).hexdigest()[:12]
    assert exact in text
    assert "|" in text
    state["header"]["candidates"] = f"'7, {exact}'"
    there.load_state_dict(state)
    assert len(there.decisions) == 3
    state["header"]["candidates"] = f"'7, {exact[::-1]}'"
    with pytest.raises(StateMismatchError, match="candidates"):
        there.load_state_dict(state)


def test_digits_of_a_hash_are_no_number():
    assert not agree_as_text("12, 12345678e321", "12, 98765432e333")
    assert not agree_as_text("2 tables, 12e3456789012345", "2 tables, 12e3456789012346")
    assert not agree_as_text("2 tables, 1e10", "2 tables, 2e10")
    assert not agree_as_text("steps 10", "steps 11")
    assert agree_as_text("(1e-05, -0.3)", "(1.0000000000000001e-05, -0.30000000000000004)")
    assert not agree_as_text("(1e-05, -0.3)", "(1e-05, 0.3)")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MAKERS)
def test_other_options_are_refused(name):
    here, other = MAKERS[name](1.0), MAKERS[name](OTHER)
    play(here, 2)
    with pytest.raises(StateMismatchError, match="option"):
        other.load_state_dict(here.state_dict())
    assert len(other.decisions) == 0
