"""Input that ``CurveOptimizer`` refuses leaves it as it was."""

import copy
import math

import pytest

import botorch_costly as bc
from botorch_costly import errors
from tests.tuners.curves.playing import LENGTH, SPACE, curve_of, made, run_of
from tests.tuners.online.states import same


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"until": 0}, "until: Expected more than 0, at most 32"),
        ({"until": 33}, "until: Expected more than 0, at most 32"),
        ({"until": 4, "training": 0}, "until: Expected more than 4"),
        ({"training": 1}, "training: Expected the number of a training of .* that may go on"),
        ({"training": 0, "config": {"lr": 0.1, "width": 5}}, "training: Expected the number"),
    ],
)
def test_what_cannot_be_adopted_is_refused_and_nothing_is_lost(options, said):
    optimizer = made()
    first = optimizer.enqueue({"lr": 0.01, "width": 5}, 4)
    optimizer.tell(first, curve_of(first))
    before = optimizer.state_dict()
    with pytest.raises(errors.InvalidArgumentError, match=said):
        optimizer.enqueue(**{"config": first.config, **options})
    assert same(optimizer.state_dict(), before)


def test_only_candidates_with_lengths_can_be_adopted():
    candidates = [{"lr": 0.01, "width": 5}, {"lr": 0.1, "width": 5}]
    optimizer = bc.CurveOptimizer(SPACE, candidates=candidates, lengths=[4, 8])
    assert optimizer.enqueue(candidates[1]).until == 8
    with pytest.raises(
        errors.InvalidConfigError, match="one of the candidates, which have lengths"
    ):
        optimizer.enqueue({"lr": 0.05, "width": 5})


REFUSED = {
    "empty": ([], {"cost": 1.0}, errors.InvalidShapeError),
    "longer": ([0.1] * (LENGTH + 1), {"cost": 1.0}, errors.InvalidShapeError),
    "a number": (0.1, {"cost": 1.0}, errors.InvalidShapeError),
    "a word": ("0.1", {"cost": 1.0}, errors.InvalidShapeError),
    "words": (["much"], {"cost": 1.0}, errors.InvalidArgumentError),
    "a matrix": ([[0.1]], {"cost": 1.0}, errors.InvalidArgumentError),
    "a free one": ([0.1], {"cost": 0.0}, errors.InvalidArgumentError),
    "a paid one": ([0.1], {"cost": -1.0}, errors.InvalidArgumentError),
    "no cost": ([0.1], {"cost": math.nan}, errors.InvalidArgumentError),
    "cost at times": ([0.1], {}, errors.InvalidArgumentError),
    "perhaps broken": ([0.1], {"cost": 1.0, "broken": "no"}, errors.InvalidArgumentError),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_is_no_curve_is_refused_and_nothing_is_lost(what):
    optimizer = copy.deepcopy(run_of(0, 5)[0])
    segment = optimizer.ask()
    before, history = copy.deepcopy(optimizer.state_dict()), optimizer.history
    curve, options, error = REFUSED[what]
    with pytest.raises(error, match=r"Expected .*; Received "):
        optimizer.tell(segment, curve, **options)
    if "broken" not in options:
        with pytest.raises(error, match=r"Expected .*; Received "):
            optimizer.should_stop(segment, curve, **options)
    assert same(optimizer.state_dict(), before)
    assert optimizer.history == history
    optimizer.tell(segment, curve_of(segment), cost=1.0)


def test_a_curve_is_that_of_the_segment_alone():
    optimizer = bc.CurveOptimizer(SPACE, LENGTH, candidates=[{"lr": 0.01, "width": 5}])
    since = 0
    while since < LENGTH:
        segment = optimizer.ask()
        assert segment.since == since
        before = ", and none before" if since else ""
        since = segment.until
        several = f"one for each iteration from {segment.since + 1} to {since}{before}; Received"
        each = (
            several
            if segment.iterations > 1
            else f"1 value, of iteration {since}{before}; Received"
        )
        with pytest.raises(errors.InvalidShapeError, match=f"{each} '{LENGTH + 1} values'"):
            optimizer.tell(segment, [0.1] * (LENGTH + 1))
        with pytest.raises(errors.InvalidShapeError, match=f"{each} 0.4"):
            optimizer.tell(segment, 0.4)
        optimizer.tell(segment, curve_of(segment))


CONSTRUCTION = {
    "no length": {"iterations": None},
    "two lengths": {"iterations": 4, "lengths": [1]},
    "length 0": {"iterations": 0},
    "a stranger": {"iterations": "depth"},
    "a real": {"iterations": "lr"},
    "too long a look": {"iterations": 4, "shortest": 4},
    "no look": {"iterations": 4, "shortest": 0},
    "lengths of none": {"iterations": None, "lengths": [3]},
    "no candidates": {"iterations": 4, "candidates": []},
    "strange candidates": {"iterations": 4, "candidates": [{"lr": 1.0}]},
    "a word": {"iterations": 4, "resumes": "no"},
    "a number": {"iterations": 4, "maximize": 1},
    "no search": {"iterations": 4, "search": 3},
    "a seed": {"iterations": 4, "seed": -1},
}


@pytest.mark.parametrize("what", CONSTRUCTION)
def test_arguments_out_of_range_are_named(what):
    with pytest.raises(errors.CostlyError, match=r"Expected .*; Received "):
        bc.CurveOptimizer(SPACE, **CONSTRUCTION[what])
