"""States of ``Validation``: a resumed run decides as the one that went on."""

import copy
import io
import itertools
import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly import errors
from tests.cases import quick
from tests.tuners.online.states import leaves, same
from tests.validation.clock import Run, falling

OPTIONS = {"overhead": 0.1, "steps": 499, "target": 0.33, "read_at": [77]}


def _through_a_file(state):
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)


@pytest.mark.parametrize(
    ("stop", "examples"),
    quick(
        itertools.product([0, 1, 50, 233], [None, 300]),
        (1, None),
        (50, None),
        (50, 300),
    ),
)
def test_a_resumed_run_decides_as_the_one_that_went_on(stop, examples):
    run = Run(falling, examples=examples, **OPTIONS).play(stop)
    second = Run(falling, examples=examples, **OPTIONS)
    second.validation.load_state_dict(_through_a_file(run.validation.state_dict()))
    second.generator.set_state(run.generator.get_state())
    second.clock.seconds = run.clock.seconds
    run.read.clear()
    for one in (run, second):  # the seconds between the last step and the save are in no state
        one.validation.start()
    run.play(500, begin=stop)
    second.play(500, begin=stop)
    assert second.read == run.read
    assert second.validation.best == run.validation.best
    assert second.validation.counts == pytest.approx(run.validation.counts)


def test_a_state_is_of_tensors_and_plain_values_and_does_not_change():
    run = Run(falling, examples=300, **OPTIONS).play(200)
    state = run.validation.state_dict()
    before = copy.deepcopy(state)
    for leaf in leaves(state):
        assert isinstance(leaf, torch.Tensor | str | int | float | None)
    run.play(400, begin=200)
    assert same(state, before)


def test_a_reading_in_progress_counts_as_it_stands():
    validation = bc.Validation(overhead=1.0, examples=1000)
    validation.due(0, last=True)
    validation.tell(torch.full((len(validation.examples),), 2.0))
    validation.due(1, last=True)
    first = validation.examples
    validation.tell(torch.full((len(first),), 1.9) + 0.5 * torch.randn(len(first)))
    resumed = bc.Validation(overhead=1.0, examples=1000)
    resumed.load_state_dict(validation.state_dict())
    assert resumed.best == validation.best
    assert resumed.examples == []
    assert not resumed.is_best  # it was saved, or it was not


def test_options_that_describe_the_run_may_change_if_they_are_named():
    run = Run(falling, **OPTIONS).play(100)
    longer = bc.Validation(**(OPTIONS | {"steps": 5000}))
    with pytest.raises(errors.StateMismatchError, match="steps"):
        longer.load_state_dict(run.validation.state_dict())
    assert longer.readings == 0
    longer.load_state_dict(run.validation.state_dict(), changed=["steps"])
    assert longer.readings == run.validation.readings
    with pytest.raises(errors.InvalidArgumentError, match="changed"):
        longer.load_state_dict(run.validation.state_dict(), changed=["examples"])


@pytest.mark.parametrize("state", [None, {}, {"options": {}}, 3, []])
def test_no_state_is_refused(state):
    with pytest.raises(errors.StateMismatchError):
        bc.Validation().load_state_dict(state)


@pytest.fixture(scope="module")
def played():
    """A run in progress, and a state of another one."""
    other = Run(falling, examples=300, **OPTIONS).play(300)
    return Run(falling, examples=300, **OPTIONS).play(150), other.validation.state_dict()


@pytest.mark.parametrize("name", ["tariff", "training", "history", "timing", "step", "examples"])
def test_a_damaged_state_is_refused_and_nothing_changes(name, played):
    run, damaged = played
    before = run.validation.state_dict()
    for value in ("missing", None, [1]):
        state = dict(damaged) | {name: value}
        if value == "missing":
            del state[name]
        with pytest.raises(errors.StateMismatchError):
            run.validation.load_state_dict(state)
        assert same(run.validation.state_dict(), before)


def test_it_is_saved_and_loaded_with_other_parts(tmp_path):
    run = Run(falling, **OPTIONS).play(150)
    network = torch.nn.Linear(2, 1)
    bc.save(tmp_path / "run.pt", validation=run.validation, network=network)
    other = bc.Validation(**OPTIONS)
    bc.load(tmp_path / "run.pt", validation=other, network=torch.nn.Linear(2, 1))
    assert other.best == run.validation.best
    assert math.isfinite(other.best.value)
