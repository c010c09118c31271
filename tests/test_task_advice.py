"""Proposals as earlier studies: which of them count, and which comes first."""

import pytest
import torch

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError, InvalidConfigError, InvalidShapeError
from botorch_costly.tuners.subsets import Sampling

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
