"""Proposals as earlier studies: which of them count, and which comes first."""

import json
import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError, InvalidConfigError, InvalidShapeError
from botorch_costly.tuners.subsets import Sampling
from tests.test_task_records import CONFIG, LINE, SPACE as MIXED

SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True), "m": bc.Real(0.0, 1.0)})
WHOLE, PART = {"lr": 1e-3, "m": 0.25}, {"lr": 2e-3}
ROUGH = Sampling(draws=2, first_steps=8, steps=8, points=5, candidates=20, first=3)
SEARCHES = {
    "transfer": lambda tasks, **options: bc.TransferOptimizer(SPACE, tasks, **options),
    "curves": lambda tasks, **options: bc.CurveOptimizer(SPACE, 9, tasks=tasks, **options),
    "subsets": lambda tasks, **options: bc.SubsetOptimizer(
        SPACE, tasks=tasks, sampling=ROUGH, **options
    ),
}
every_search = pytest.mark.parametrize("search", SEARCHES)


@every_search
@pytest.mark.parametrize("proposals", [[WHOLE], [WHOLE, PART], [PART, WHOLE], [{"x": 3}, WHOLE]])
def test_the_first_proposal_that_names_all_parameters_comes_first(search, proposals):
    asked = SEARCHES[search]([bc.Task.advice(proposals)]).ask().config
    assert dict(asked) == pytest.approx(WHOLE)


@every_search
def test_what_fills_a_proposal_in_was_not_proposed(search):
    asked = SEARCHES[search]([bc.Task.advice([PART])], fill={"m": 0.25}).ask().config
    assert dict(asked) != pytest.approx({**PART, "m": 0.25})


@every_search
def test_proposals_that_name_nothing_of_the_space_are_refused(search):
    with pytest.raises(InvalidConfigError):
        SEARCHES[search]([bc.Task.advice([{"batch": 32}])])


def test_a_proposal_that_names_nothing_of_the_space_takes_nothing_from_others():
    both = bc.Task.advice([WHOLE, {"batch": 32}]).in_space(SPACE)
    alone = bc.Task.advice([WHOLE]).in_space(SPACE)
    assert torch.equal(both.values, alone.values)
    assert float(both.values.std()) > 0.1


def test_what_is_no_proposal_is_refused():
    with pytest.raises(InvalidArgumentError, match="configs"):
        bc.Task.advice(3)
    with pytest.raises(InvalidShapeError):
        bc.Task.advice(["abc"])
    with pytest.raises(InvalidArgumentError, match="progress"):
        bc.Task([WHOLE], [0.0], progress=[0.5], is_advice=True)


def test_advice_is_best_where_it_is_proposed_and_the_worse_the_farther_away():
    encoded = bc.Task.advice([CONFIG]).in_space(MIXED)
    assert encoded.values[0] == encoded.values.max() == 0
    assert len(encoded.points) == len(encoded.values) == 33
    offsets = encoded.points[1:] - encoded.points[0]
    weights = torch.ones(MIXED.dim, dtype=torch.float64)
    weights[[*range(4, 9)]] = 0.5  # one-hot columns of the two choices that have several options
    expected = [
        -math.sqrt(sum(w * d * d for w, d in zip(weights, row, strict=True))) for row in offsets
    ]
    torch.testing.assert_close(encoded.values[1:], encoded.values.new_tensor(expected))


def test_only_parameters_that_a_proposal_names_count():
    encoded = bc.Task.advice([{"drop": 0.3}]).in_space(MIXED)
    column = encoded.points[:, 1]
    torch.testing.assert_close(encoded.values, -(column - column[0]).abs())


def test_the_nearest_of_several_proposals_counts():
    encoded = bc.Task.advice([{"x": 0.1}, {"x": 0.9}]).in_space(LINE)
    x = encoded.points[:, 0]
    expected = -torch.minimum((x - 0.1).abs(), (x - 0.9).abs())
    torch.testing.assert_close(encoded.values, expected)


def test_advice_has_no_direction_and_survives_its_dictionary():
    advice, study = bc.Task.advice([{"x": 0.1}], name="me"), bc.Task([{"x": 0.1}], [2.0])
    values = torch.tensor([1.0, 2.0])
    assert torch.equal(advice.signed(values, -1.0), values)
    assert torch.equal(study.signed(values, -1.0), -values)
    again = bc.Task.from_dict(json.loads(json.dumps(advice.to_dict())))
    assert again == advice
    assert again != bc.Task([{"x": 0.1}], [0.0], name="me")
    assert "is_advice" not in study.to_dict()
    assert repr(advice) == "Task('me', 1 proposals of 'x')"


def test_advice_without_names_is_refused():
    with pytest.raises(InvalidShapeError):
        bc.Task.advice([])
    with pytest.raises(InvalidArgumentError):
        bc.Task.advice([[0.1, 0.2]])
