"""Recorded evaluations at several fidelities."""

import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError, InvalidConfigError, InvalidShapeError
from botorch_costly.problems import SubsetProblem

SPACE = bc.SearchSpace({"x": bc.Real(0.0, 1.0)})
SHARES = bc.SearchSpace({"fraction": bc.Real(0.1, 1.0, log=True)})
PAIRS = [({"x": x}, {"fraction": s}) for x in (0.2, 0.7) for s in (0.1, 1.0)]


def made(pairs=PAIRS, values=(0.5, 0.1, 0.4, 0.3), costs=(1.0, 8.0, 1.0, 12.0)):
    return SubsetProblem(SPACE, SHARES, pairs, values, costs)


def test_costs_are_in_those_of_the_target_and_regret_is_there():
    problem = made()
    assert problem.targets == [1, 3]
    torch.testing.assert_close(
        problem.costs, torch.tensor([0.1, 0.8, 0.1, 1.2], dtype=torch.float64)
    )
    assert problem.best == 0.3
    assert problem.regret(1) == pytest.approx(0.2)
    assert problem.regret(3) == 0
    assert len(problem) == 4
    assert problem.told.equal(problem.values)


def test_what_is_told_may_be_another_number_than_what_counts():
    reported = (9.0, 8.0, 7.0, 6.0)
    problem = SubsetProblem(SPACE, SHARES, PAIRS, (0.5, 0.1, 0.4, 0.3), (1.0,) * 4, reported)
    assert problem.told.tolist() == list(reported)
    assert problem.best == 0.3
    with pytest.raises(InvalidShapeError, match="told"):
        SubsetProblem(SPACE, SHARES, PAIRS, (0.5, 0.1, 0.4, 0.3), (1.0,) * 4, reported[:2])
    with pytest.raises(InvalidArgumentError, match="told"):
        SubsetProblem(SPACE, SHARES, PAIRS, (0.5, 0.1, 0.4, 0.3), (1.0,) * 4, (math.nan,) * 4)


@pytest.mark.parametrize(
    ("error", "options"),
    [
        (InvalidShapeError, {"values": (1.0,)}),
        (InvalidShapeError, {"costs": (1.0,) * 5}),
        (InvalidArgumentError, {"values": (1.0, float("nan"), 1.0, 1.0)}),
        (InvalidArgumentError, {"costs": (1.0, 0.0, 1.0, 1.0)}),
        (InvalidArgumentError, {"pairs": PAIRS[::2], "values": (1.0, 2.0), "costs": (1.0, 2.0)}),
        (InvalidConfigError, {"pairs": [({"x": 2.0}, {"fraction": 1.0})] * 4}),
    ],
)
def test_what_makes_no_sense_is_refused(error, options):
    with pytest.raises(error):
        made(**options)
