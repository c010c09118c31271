"""Strengths of regularization: a ladder that is walked down at first, and up if that pays later."""

import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly.tuners.twins.candidates import weakened
from botorch_costly.tuners.twins.strengths import Strengths
from botorch_costly.tuners.twins.trials import Side

GIVEN = torch.tensor([0.5, 0.9, 0.8]).double()  # a learning rate and two strengths
MODERATE = torch.tensor([0.5, 0.3, 0.28]).double()
WEAK = torch.tensor([0.5, 0.1, 0.1]).double()
OFF = torch.tensor([0.5, 0.0, 0.0]).double()
FIRST_OFF, SECOND_OFF = torch.tensor([0.5, 0.0, 0.1]), torch.tensor([0.5, 0.1, 0.0])


def compare(strengths, present, levels):
    """Play all comparisons that are due; return what was compared, and what is in use."""
    compared = []
    while strengths.is_due:
        other = strengths.other(present)
        compared.append(other)
        sides = [Side(point, levels(point), None) for point in (other, present)]
        is_taken = strengths.is_better(*sides)
        strengths.decide(*sides, is_taken=is_taken)
        present = other if is_taken else present
    return compared, present


def nearest(best):
    """Levels that fall with the distance from the best configuration, more for what should stay on."""
    weight = 1 + 3 * (best > 0)
    return lambda point: -float((weight * (point - best).abs()).sum())


@pytest.mark.parametrize(
    ("best", "expected"),
    [
        (GIVEN, [WEAK, MODERATE]),
        (MODERATE, [WEAK, OFF, FIRST_OFF, SECOND_OFF]),
        (OFF, [WEAK, OFF]),
        (FIRST_OFF, [WEAK, OFF, FIRST_OFF, OFF]),
        (SECOND_OFF, [WEAK, OFF, FIRST_OFF, SECOND_OFF]),
    ],
    ids=["given", "moderate", "off", "first off", "second off"],
)
def test_the_ladder_is_walked_down(best, expected):
    strengths = Strengths(GIVEN, [MODERATE, WEAK, OFF])
    compared, present = compare(strengths, GIVEN, nearest(best.double()))
    assert len(compared) == len(expected)
    assert all(torch.equal(a, b.double()) for a, b in zip(compared, expected, strict=True))
    if best is not MODERATE:  # it is nearer to weak than given is, and not tried before
        assert torch.equal(present, best.double())


def test_level_strengths_end_off_and_are_compared_again():
    strengths = Strengths(GIVEN, [MODERATE, WEAK, OFF])
    _, present = compare(strengths, GIVEN, lambda point: 0.0)
    assert torch.equal(present, OFF)
    seen = []
    for _ in range(4):
        strengths.renew()
        compared, present = compare(strengths, present, lambda point: float(point[1]))
        seen += compared
    assert all(torch.equal(a, b) for a, b in zip(seen, [WEAK, MODERATE, GIVEN], strict=True))
    assert torch.equal(present, GIVEN)


def test_a_stronger_rung_that_is_clearly_worse_is_not_compared_again():
    strengths = Strengths(GIVEN, [MODERATE, WEAK, OFF])
    _, present = compare(strengths, GIVEN, nearest(OFF))
    strengths.renew()
    assert not strengths.is_due
    assert torch.equal(present, OFF)


def test_strengths_that_are_off_alone_stay_off():
    strengths = Strengths(GIVEN, [MODERATE, WEAK, OFF])
    _, present = compare(strengths, GIVEN, nearest(FIRST_OFF.double()))
    strengths.renew()
    expected = torch.tensor([0.5, 0.0, 0.28]).double()
    assert torch.equal(strengths.other(present), expected)


def test_a_comparison_that_is_due_is_not_lost_at_a_mark():
    """Marks pass while a learning rate rises by itself, before anything was tried."""
    strengths = Strengths(GIVEN, [MODERATE, WEAK, OFF])
    strengths.renew()
    assert strengths.is_due
    assert not strengths.strengthens
    assert torch.equal(strengths.other(GIVEN), WEAK)


def test_what_counts_as_strong():
    """Numbers from 0, weight decays with any range; by their values, not by their logarithms."""
    space = bc.SearchSpace(
        {
            "lr": bc.Real(1e-4, 1.0, log=True),
            "weight_decay": bc.Real(1e-6, 0.1, log=True),
            "layers": bc.Integer(0, 20),
            "dropout": bc.Real(0.0, 0.9),
            "width": bc.Real(1.0, 9.0),
            "policy": bc.Choice(["one", "two"]),
        }
    )
    strong = {
        "lr": 0.1,
        "weight_decay": 0.1,
        "layers": 20,
        "dropout": 0.2,
        "width": 9.0,
        "policy": "two",
    }
    rungs = [space.decode(point) for point in weakened(space, space.encode(strong), {0})]
    expected = [(math.sqrt(1e-3), 6), (0.01, 2), (1e-6, 0)]
    for rung, (decay, layers) in zip(rungs, expected, strict=True):
        assert rung["weight_decay"] == pytest.approx(decay)
        assert {**rung, "weight_decay": 0.1} == pytest.approx({**strong, "layers": layers})
    usual = {**strong, "weight_decay": 0.01, "layers": 5}
    assert not weakened(space, space.encode(usual), {0})
