"""Learning curves and weights of iterations, read off the artists."""

import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly import plotting
from botorch_costly.errors import InvalidArgumentError
from botorch_costly.transforms import CurveCompression
from botorch_costly.tuners.curves.trainings import Training
from tests.plotting.drawing import labels

pytest.importorskip("matplotlib")


def training(number, curve, **more):
    more = {"iterations": len(curve), "paid": 1.0, **more}
    return Training(number, {"lr": 0.1}, torch.zeros(1), 3, tuple(curve), **more)


TRAININGS = (
    training(0, [0.1, 0.3]),
    training(1, [0.1, math.nan, 0.9]),
    training(2, [0.2], broken=True),
    training(3, [0.4], until=2),
    training(4, []),
    training(5, [0.2]),
)


def test_trainings_are_drawn_by_how_they_ended():
    ax = plotting.plot_trainings(TRAININGS)
    assert labels(ax) == [
        "left where it was (2)",
        "in training (1)",
        "diverged (1)",
        "trained to its end (1)",
        "the best training",
    ]
    best = ax.lines[-1]
    assert best.get_xydata().tolist() == [[1, 0.1], [3, 0.9]]  # the gap is left out
    (left,) = [line for line in ax.lines if line.get_label() == "left where it was (2)"]
    assert left.get_xydata().tolist() == [[2, 0.3], [1, 0.2]]
    assert ax.get_xlabel()
    assert ax.get_ylabel() == "value told\n(more is better)"


def test_losses_are_drawn_as_they_were_told():
    space = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True)})
    search = bc.CurveOptimizer(space, 4, maximize=False, seed=0)
    for final in (0.5, 0.2, 0.4):
        segment = search.ask()
        iterations = range(segment.since + 1, segment.until + 1)
        search.tell(segment, [final + 1 / k for k in iterations], cost=1.0)
    ax = plotting.plot_trainings(search.trainings)
    assert ax.get_ylabel() == "value told\n(less is better)"
    drawn = [y for line in ax.lines for _, y in line.get_xydata().tolist()]
    assert min(drawn) > 0
    told = search.best_training.values
    assert ax.lines[-1].get_xydata()[:, 1].tolist() == list(told)
    assert search.best_training.latest == -told[-1]


def test_trainings_without_a_reward_are_refused():
    with pytest.raises(InvalidArgumentError, match="at least one with a reward"):
        plotting.plot_trainings(TRAININGS[4:5])


def test_weights_are_drawn_over_the_share_of_a_training():
    late = CurveCompression(4, midpoint=6.0, growth=1.0)
    ax = plotting.plot_curve_weights({"late": late, "even": CurveCompression(4, "average")})
    assert labels(ax) == ["late", "even"]
    drawn = ax.lines[0].get_xydata()
    assert drawn[:, 0].tolist() == [0.25, 0.5, 0.75, 1.0]
    assert drawn[-1, 1] == 1
    assert (drawn[1:, 1] > drawn[:-1, 1]).all()
    assert ax.lines[1].get_ydata().tolist() == [1.0] * 4
    with pytest.raises(InvalidArgumentError, match="at least one"):
        plotting.plot_curve_weights({})
