"""A configuration that is known to be good begins a run, whichever optimizer it is."""

from collections.abc import Callable
from typing import Any

import pytest

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError, InvalidConfigError, StateMismatchError
from botorch_costly.plain import agree
from tests.laws.optimizer_runs import through_a_file
from tests.state_files.optimizers import play

_SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True), "epochs": bc.Integer(2, 9)})
_ARMS = bc.SearchSpace({"lr": bc.Choice([0.1, 0.01, 0.001]), "epochs": bc.Choice([2, 5, 9])})
START, OTHER = {"lr": 0.01, "epochs": 5}, {"lr": 0.01, "epochs": 9}
_LISTED = [{"lr": rate, "epochs": epochs} for rate in (0.1, 0.02, 0.001) for epochs in (2, 5, 9)]
_TASK = bc.Task(_LISTED, [0.1 * number for number in range(9)])
_ROUGH = bc.Sampling(draws=2, first_steps=8, steps=8, points=5, candidates=20, first=12)


def _subsets(**options: Any) -> bc.SubsetOptimizer:
    return bc.SubsetOptimizer(_SPACE, sampling=_ROUGH, horizon=20, seed=2, **options)


MAKERS: dict[str, Callable[..., Any]] = {
    "online": lambda **given: bc.OnlineTuner(_SPACE, 20, seed=2, **given),
    "bandit": lambda **given: bc.BanditTuner(_ARMS, 20, seed=2, **given),
    "random": lambda **given: bc.RandomTuner(_SPACE, 20, seed=2, **given),
    "twins": lambda **given: bc.TwinTuner(_SPACE, 20, seed=2, **given),
    "population": lambda **given: bc.PopulationTuner(_SPACE, 20, members=3, seed=2, **given),
    "curves": lambda **given: bc.CurveOptimizer(_SPACE, 27, horizon=20, seed=2, **given),
    "curves of a named length": lambda **given: bc.CurveOptimizer(
        _SPACE, "epochs", horizon=20, seed=2, **given
    ),
    "curves from a list": lambda **given: bc.CurveOptimizer(
        _SPACE, 27, candidates=_LISTED, horizon=20, seed=2, **given
    ),
    "curves by scores": lambda **given: bc.CurveOptimizer.as_published(
        _SPACE, 27, horizon=20, seed=2, **given
    ),
    "subsets": _subsets,
    "subsets with a task": lambda **given: _subsets(tasks=[_TASK], **given),
    "transfer": lambda **given: bc.TransferOptimizer(_SPACE, [_TASK], horizon=20, seed=2, **given),
    "transfer with a portfolio": lambda **given: bc.TransferOptimizer(
        _SPACE, [_TASK], warm_start=2, horizon=20, seed=2, **given
    ),
    "transfer from a list": lambda **given: bc.TransferOptimizer(
        _SPACE, [_TASK], candidates=_LISTED, horizon=20, seed=2, **given
    ),
}


def _first_config(decision: Any) -> dict[str, Any]:
    return dict(decision.config if hasattr(decision, "config") else decision.configs[0])


@pytest.mark.filterwarnings("ignore")  # the values are no curves
@pytest.mark.parametrize("name", MAKERS)
def test_a_run_begins_with_its_start(name):
    optimizer, again = (MAKERS[name](start=START) for _ in range(2))
    first = optimizer.ask()
    assert agree(_first_config(first), START)  # twins and populations decode it
    assert first.query or name == "online"  # an interval of two rounds is queried at its end
    assert again.ask() == first
    again = MAKERS[name](start=START)
    play(again, 3)
    optimizer = MAKERS[name](start=START)
    optimizer.load_state_dict(through_a_file(again.state_dict()))
    assert optimizer.ask() == again.ask()
    if name not in ("twins", "population", "online"):  # which go on near it
        configs = [_first_config(decision) for decision in again.decisions]
        assert any(config != START for config in configs[1:])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MAKERS)
def test_a_start_that_was_cancelled_comes_again(name):
    optimizer = MAKERS[name](start=START)
    first = optimizer.ask()
    if name in ("twins", "population"):
        with pytest.raises(InvalidArgumentError):
            optimizer.cancel(first)
        return
    optimizer.cancel(first)
    again = MAKERS[name](start=START)
    again.load_state_dict(through_a_file(optimizer.state_dict()))
    second = again.ask()
    assert _first_config(second) == START
    assert optimizer.ask() == second
    optimizer.cancel(second)
    fidelities = [{"fraction": 0.5}] if name.startswith("subsets") else []
    optimizer.cancel(optimizer.enqueue(_LISTED[-1], *fidelities))
    third = optimizer.ask()
    assert _first_config(third) == START
    assert third.query or name == "online"
    play(optimizer, 3)
    if name != "online":
        assert any(_first_config(decision) != START for decision in optimizer.decisions[1:])


def test_a_start_is_not_repeated_where_a_later_round_is_cancelled():
    optimizer = MAKERS["transfer"](start=START)
    optimizer.ask()
    optimizer.cancel(optimizer.ask())
    assert optimizer.ask().config != START


def test_a_round_of_the_start_on_its_own_comes_again_in_an_interval_of_its_own():
    """With a single round of the start, the opening would go on without it."""
    for horizon in (20, None):
        tuner = bc.OnlineTuner.as_published(_SPACE, horizon, start=START)
        tuner.cancel(tuner.ask())
        assert tuner.ask().config == START
        assert tuner.ask().config != START


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MAKERS)
def test_another_start_is_another_run(name):
    optimizer, other = MAKERS[name](start=START), MAKERS[name](start=OTHER)
    play(optimizer, 2)
    with pytest.raises(StateMismatchError, match="start"):
        other.load_state_dict(optimizer.state_dict())
    assert len(other.decisions) == 0


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(
    "start", [{"lr": 0.01}, {"lr": 5.0, "epochs": 5}, {"lr": 0.01, "epoch": 5}]
)
def test_a_start_outside_the_space_is_refused(name, start):
    with pytest.raises(InvalidConfigError):
        MAKERS[name](start=start)


def test_the_start_of_a_training_has_the_shortest_segment_of_its_length():
    optimizer = MAKERS["curves of a named length"](start=START)
    segment = optimizer.ask()
    assert (segment.since, segment.until) == (0, 1)
    longer = bc.CurveOptimizer(_SPACE, "epochs", shortest=3, start=START).ask()
    assert longer.until == 3


def test_the_start_of_a_search_by_subsets_is_at_a_low_fidelity():
    assert _subsets(start=START).ask().fidelities == _subsets().ask().fidelities


def test_a_round_of_the_users_comes_before_the_start():
    optimizer = MAKERS["transfer"](start=START)
    optimizer.enqueue(OTHER)
    assert optimizer.ask().reason != "the start"
