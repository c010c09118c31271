"""All optimizers suggest values on the steps of a space alone, and go on from a state of such a run."""

import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly.tuners.online.trust_region import StepLimits
from botorch_costly.tuners.twins.candidates import weakened
from tests.cases import quick
from tests.laws.optimizer_runs import step, through_a_file
from tests.registry import optimizers

STEPPED = bc.SearchSpace({"lr": bc.Real(0.0, 0.1, step=0.01), "depth": bc.Integer(2, 8, step=2)})
WIDER = bc.SearchSpace(
    {**dict(STEPPED.parameters), "x": bc.Real(-1.0, 1.0, step=0.25), "y": bc.Real(0.0, 1.0)}
)
START = {"lr": 0.05, "depth": 4, "x": 0.25, "y": 0.5}
# Between the steps, as the values of an earlier study may be.
STUDY = bc.Task([{**START, "lr": 0.033, "x": 0.1}, {**START, "lr": 0.09, "x": 0.6}], [0.1, 0.2])
ROUNDS = 10


def configs_of(suggestion):
    return list(getattr(suggestion, "configs", None) or [suggestion.config])


def on_steps(space, config):
    """Whether each value is one of those of its parameter, to the last digit."""
    parameters = dict(space.parameters)
    listed = {
        n: v for n, v in config.items() if n in parameters and parameters[n].values is not None
    }
    return all(value in parameters[name].values for name, value in listed.items())


# The others choose among arms, or in a list that has other values.
OTHERS = ("Bandit", "Fixed", "CurveOptimizer as published")
OVER_NUMBERS = {
    name: case
    for name, case in optimizers.OPTIMIZERS.items()
    if not name.startswith(OTHERS) and not name.endswith("of candidates")
}


@pytest.mark.parametrize(
    "name", quick(OVER_NUMBERS, *(name for name in OVER_NUMBERS if name in optimizers.BY_DEFAULT))
)
def test_all_suggestions_are_on_the_steps(name, monkeypatch):
    monkeypatch.setattr(optimizers, "_SPACE", STEPPED)
    case = OVER_NUMBERS[name]
    optimizer, seen = case.make(1), []
    for _ in range(ROUNDS):
        suggestion = step(case, optimizer)
        seen += configs_of(suggestion)
    assert all(on_steps(STEPPED, config) for config in seen if set(config) >= set(STEPPED.names))
    again = case.make(1)
    again.load_state_dict(through_a_file(optimizer.state_dict()))
    assert configs_of(again.ask()) == configs_of(optimizer.ask())


@pytest.mark.parametrize(
    "make",
    [
        lambda: bc.OnlineTuner(WIDER, 30, seed=3, start=START, search=bc.Search(num_restarts=4)),
        lambda: bc.TransferOptimizer(WIDER, [STUDY], horizon=30),
    ],
    ids=["online", "transfer"],
)
def test_beside_a_number_without_steps(make):
    optimizer = make()
    for number in range(12):
        suggestion = optimizer.ask()
        assert on_steps(WIDER, suggestion.config)
        WIDER.check(suggestion.config)
        if suggestion.query:
            optimizer.tell(suggestion, math.sin(number))


def test_a_user_round_between_two_steps_is_refused():
    tuner = bc.OnlineTuner(STEPPED, 20)
    with pytest.raises(bc.errors.InvalidConfigError, match=r"a step of 0.01"):
        tuner.enqueue({"lr": 0.015, "depth": 2})


def test_fidelities_have_no_steps():
    with pytest.raises(bc.errors.InvalidSpaceError, match="without step"):
        bc.SubsetOptimizer(
            STEPPED, fidelities=bc.SearchSpace({"share": bc.Real(0.1, 1.0, step=0.1)})
        )


def test_the_ends_of_a_trust_region_are_steps_within_it():
    space = bc.SearchSpace(
        {"momentum": bc.Real(0.0, 0.9, step=0.1), "x": bc.Real(0.0, 1.0, step=0.1)}
    )
    limits = StepLimits(space, ("momentum",), 1.5)
    assert limits.limits({"momentum": 0.6, "x": 0.5}, 0) == {"momentum": (0.4, 0.7)}
    assert limits.limits({"momentum": 0.9, "x": 0.5}, 0) == {"momentum": (0.9, 0.9)}
    box = limits.box({"momentum": 0.6, "x": 0.5}, 0)
    assert torch.equal(space.round(box)[:, :1], box[:, :1])  # the other one is free


def test_strengths_of_twins_are_weakened_to_steps():
    space = bc.SearchSpace(
        {"dropout": bc.Real(0.0, 0.9, step=0.1), "layers": bc.Integer(0, 9, step=3)}
    )
    points = torch.stack(weakened(space, space.encode({"dropout": 0.9, "layers": 9}), set()))
    assert torch.equal(space.round(points), points)
    assert space.decode(points[-1]) == {"dropout": 0.0, "layers": 0}
    moderate = space.decode(points[0])
    assert 0.0 < moderate["dropout"] < 0.9
