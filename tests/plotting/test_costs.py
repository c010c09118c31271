"""Quality over cost, read off the artists."""

import pytest
import torch

from botorch_costly import plotting
from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from tests.plotting.drawing import labels

pytest.importorskip("matplotlib")


def test_quality_is_drawn_over_any_cost_with_its_direction_and_baselines():
    curves = {"A": ([3, 1], [0.9, 0.7], [0.1, 0.2]), "B": ([2.0], [0.5])}
    options = {"quality": "accuracy", "cost": "dollars", "baselines": {"fixed": 0.6}}
    for maximize, suffix in (
        (True, "\n(more is better)"),
        (False, "\n(less is better)"),
        (None, ""),
    ):
        ax = plotting.plot_quality_against_cost(curves, maximize=maximize, **options)
        assert ax.get_ylabel() == "accuracy" + suffix
    assert ax.get_xlabel() == "dollars"
    assert ax.lines[0].get_xydata().tolist() == [[1, 0.7], [3, 0.9]]
    assert labels(ax) == ["A", "B", "fixed"]
    (level,) = [line for line in ax.lines if line.get_label() == "fixed"]
    assert set(level.get_ydata()) == {0.6}
    bars = ax.containers[0][2][0].get_segments()
    ends = [float(end) for (_, low), (_, high) in bars for end in (low, high)]
    assert ends == pytest.approx([0.5, 0.9, 0.8, 1.0])


def test_a_curve_may_be_the_rows_of_one_array():
    rows = torch.tensor([[1.0, 2.0], [0.5, 0.25]])
    for one in (rows, rows.numpy()):
        ax = plotting.plot_quality_against_cost({"A": one}, quality="loss")
        assert ax.lines[0].get_xydata().tolist() == [[1, 0.5], [2, 0.25]]


def test_curves_are_joined_in_the_order_of_their_cost():
    curves = {"A": ([3, 1, 2], [0.1, 0.3, 0.2], [0.01] * 3), "B": (torch.tensor([5.0]), [0.4])}
    ax = plotting.plot_regret_against_cost(curves)
    assert ax.lines[0].get_xydata().tolist() == [[1, 0.3], [2, 0.2], [3, 0.1]]
    assert labels(ax) == ["A", "B"]
    assert ax.get_xlabel()
    assert ax.get_ylabel()


@pytest.mark.parametrize("columns", [([1, 2], [1.0]), ([], []), ([1],)])
def test_ragged_curves_are_refused(columns):
    with pytest.raises(InvalidShapeError, match="B: Expected"):
        plotting.plot_regret_against_cost({"B": columns})
    with pytest.raises(InvalidArgumentError, match="at least one curve"):
        plotting.plot_regret_against_cost({})
