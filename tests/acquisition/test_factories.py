"""Factories of acquisition functions, the package's own and a user's."""

import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly.acquisition import LogBeta, TimeVaryingUCB, as_factory
from botorch_costly.errors import InvalidArgumentError
from tests.cases import slow

SPACE = bc.SearchSpace({"x": bc.Real(0, 1), "y": bc.Real(0, 1)})


def played(acquisition, rounds=14):
    """Play with a query in every round, so that no optimum is followed from one to the next."""
    tuner = bc.OnlineTuner.as_published(
        SPACE,
        rounds,
        query=bc.AlwaysQuery(),
        acquisition=acquisition,
        search=bc.Search(num_restarts=6),
        seed=1,
    )
    decisions = [tuner.ask()]
    while len(decisions) < rounds:
        tuner.tell(
            decisions[-1], math.sin(5 * decisions[-1].config["x"]) - 0.1 * len(decisions) % 3
        )
        decisions.append(tuner.ask())
    return [d.config for d in decisions]


def test_a_callable_of_a_user_decides_as_the_factory_that_does_what_it_does():
    asked = []

    def mine(belief, now):
        asked.append(now)
        return TimeVaryingUCB(belief, 1.0, now)

    assert played(mine) == played(bc.UCB(beta=1.0))
    assert asked == sorted(set(asked))
    assert asked[-1] == 13


@pytest.mark.parametrize("acquisition", [slow(bc.LogEI()), bc.PI(), bc.UCB(9.0), bc.UCB(LogBeta())])
def test_other_acquisition_functions_go_elsewhere(acquisition):
    assert played(acquisition) != played(bc.UCB(beta=1.0))


@pytest.mark.parametrize("what", ["ucb", 1.0, TimeVaryingUCB, bc.UCB, None])
def test_what_makes_no_acquisition_function_is_named(what):
    with pytest.raises(InvalidArgumentError, match=r"acquisition: Expected UCB\(\), LogEI\(\)"):
        as_factory(what)


@pytest.mark.parametrize("beta", [-1.0, math.nan, math.inf, "1"])
@pytest.mark.parametrize("kind", [bc.UCB, bc.LogEI, bc.PI])
def test_a_beta_that_is_none_is_named(kind, beta):
    with pytest.raises(InvalidArgumentError, match="beta: Expected"):
        kind(beta)


def test_equal_factories_are_equal_and_a_state_tells_others_apart():
    assert bc.UCB(2.0) == bc.UCB(2.0) != bc.UCB(1.0)
    state = bc.OnlineTuner(SPACE, acquisition=bc.UCB(2.0)).state_dict()
    with pytest.raises(
        bc.errors.StateMismatchError, match=r"option acquisition.beta: Expected 1\.0"
    ):
        bc.OnlineTuner(SPACE).load_state_dict(state)
    with pytest.raises(bc.errors.StateMismatchError, match="option acquisition: Expected LogEI"):
        bc.OnlineTuner(SPACE, acquisition=bc.LogEI(2.0)).load_state_dict(state)


def test_a_float32_belief_makes_float32_functions():
    tuner = bc.OnlineTuner(SPACE, dtype=torch.float32, design=bc.Design(rounds=1))
    tuner.tell(tuner.ask(), 1.0)
    X = torch.rand(3, 1, 2, generator=torch.Generator().manual_seed(0))
    for factory in (bc.UCB(), bc.LogEI(), bc.PI()):
        assert factory(tuner.belief, 1)(X).dtype == torch.float32


def test_a_callable_that_makes_nothing_is_named():
    belief = bc.OnlineTuner(SPACE).belief
    with pytest.raises(InvalidArgumentError, match="acquisition: Expected a callable that returns"):
        as_factory(lambda belief, now: None)(belief, 3)
