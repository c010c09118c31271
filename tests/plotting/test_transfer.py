"""A search with earlier tasks, read off the artists."""

import pytest

from botorch_costly import plotting
from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.records import Observation
from botorch_costly.transfer_records import TransferDecision
from tests.plotting.drawing import labels

pytest.importorskip("matplotlib")


def believing(i, weights, share=0.5):
    return TransferDecision(i, {"lr": 0.1}, query=True, reason="", share=share, weights=weights)


TOLD = [
    Observation(0, {"lr": 0.1}, 0.4),
    Observation(1, {"lr": 0.1}, 0.2),
    Observation(2, {"lr": 0.1}, failed=True),
    Observation(3, {"lr": 0.1}, 0.6),
]


@pytest.mark.parametrize(
    ("maximize", "best", "worst"), [(True, [0.4, 0.4, 0.6], 0.2), (False, [0.4, 0.2, 0.2], 0.6)]
)
def test_transfer_shows_values_share_and_weights(maximize, best, worst):
    decisions = [believing(i, (0.5 - 0.1 * i, -0.1 * i), 1 - 0.2 * i) for i in range(4)]
    values, share, weights = plotting.plot_transfer(
        decisions, TOLD, ["iris", "wine"], maximize=maximize
    )
    points, steps, failed = values.lines
    assert points.get_xydata().tolist() == [[0, 0.4], [1, 0.2], [3, 0.6]]
    assert steps.get_xydata().tolist() == [[0, best[0]], [1, best[1]], [3, best[2]]]
    assert failed.get_xydata().tolist() == [[2, worst]]
    assert share.lines[0].get_ydata().tolist() == [1 - 0.2 * i for i in range(4)]
    assert labels(weights) == ["iris", "wine"]
    assert weights.lines[2].get_ydata().tolist() == [-0.1 * i for i in range(4)]
    assert weights.get_xlabel()


def test_of_many_tasks_those_with_the_largest_weights_are_named():
    large = (0, 1, 2, 4, 6, 7, 8)
    weights = [-0.5 if i in large else 0.1 for i in range(10)]
    decisions = [believing(0, weights), believing(1, weights)]
    ax = plotting.plot_transfer(decisions, TOLD[:2])[2]
    assert labels(ax) == ["3 others", *(f"task {i}" for i in large)]
    named = [line for line in ax.lines if line.get_label().startswith("task")]
    assert {tuple(line.get_ydata()) for line in named} == {(-0.5, -0.5)}


def test_transfer_is_drawn_where_it_is_told_to_be_and_from_where_it_is_known():
    axes = plotting.plot_transfer([believing(0, (0.5,))], TOLD[:1])
    decisions = [believing(0, (), None), believing(1, (0.5,))]
    (share,) = plotting.plot_transfer(decisions, TOLD[:2], axes=axes)[1].lines[1:]
    assert share.get_xdata().tolist() == [1]


@pytest.mark.parametrize(
    ("decisions", "options", "error"),
    [
        ([], {}, InvalidArgumentError),
        ([believing(0, (), None)], {}, InvalidArgumentError),
        ([believing(0, (0.5,))], {"names": ["a", "b"]}, InvalidShapeError),
        ([believing(0, (0.5,))], {"axes": []}, InvalidShapeError),
    ],
)
def test_transfer_that_cannot_be_drawn_is_refused(decisions, options, error):
    with pytest.raises(error, match="Expected"):
        plotting.plot_transfer(decisions, TOLD[:1], **options)
