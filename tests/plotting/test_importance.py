"""Shares of the variance, read off the artists."""

import pytest

from botorch_costly import plotting
from botorch_costly.errors import InvalidArgumentError
from botorch_costly.tuners import Importance
from tests.plotting.drawing import labels

pytest.importorskip("matplotlib")


def test_importance_is_stacked_up_to_the_whole():
    alone = ((0.1, 0.5), (0.2, 0.6), (0.0, 0.0))
    importance = Importance(
        ("lr", "dropout"), (0, 4, 8), alone, ((0.5, 0.9), (0.4, 0.8), (0.0, 0.0))
    )
    ax = plotting.plot_importance(importance)
    assert labels(ax) == ["several together", "lr", "dropout"]
    tops = {c.get_label(): c.get_paths()[0].vertices for c in ax.collections}
    at_first = {name: max(y for x, y in top if x == 0) for name, top in tops.items()}
    assert at_first == pytest.approx({"dropout": 0.5, "lr": 0.6, "several together": 1.0})
    assert max(y for x, y in tops["several together"] if x == 8) == 0  # no observation yet
    with pytest.raises(InvalidArgumentError, match="at least two rounds"):
        plotting.plot_importance(Importance(("lr",), (0,), ((1.0,),), ((1.0,),)))


def test_of_many_hyperparameters_the_smallest_are_one_area():
    names = tuple(f"p{i}" for i in range(10))
    row = tuple(0.01 * (i + 1) for i in range(10))
    ax = plotting.plot_importance(Importance(names, (0, 1), (row, row), (row, row)))
    assert labels(ax) == ["several together", "3 others", *(f"p{i}" for i in range(3, 10))]
    others = next(c for c in ax.collections if c.get_label() == "3 others")
    heights = [y for x, y in others.get_paths()[0].vertices if x == 0]
    assert max(heights) - min(heights) == pytest.approx(0.06)
