"""Beliefs and values of queries, read off the artists."""

import pytest
import torch

from botorch_costly import plotting
from botorch_costly.errors import InvalidShapeError
from tests.plotting.drawing import labels

pytest.importorskip("matplotlib")


def test_a_belief_shows_band_mean_truth_and_marks(belief):
    x, mean, std = belief
    queries = plotting.Marks(x[:3], mean[:3], torch.tensor([0, 5, 10]))
    skips = plotting.Marks(x[3:5], mean[3:5], torch.tensor([1, 20]))
    ax = plotting.plot_belief(x, mean, std, truth=mean + 1, queries=queries, skips=skips, width=3)
    assert labels(ax) == [
        "mean ± 3 std", "posterior mean", "truth",
        "skip (darker: more recent)", "query (darker: more recent)",
    ]  # fmt: skip
    band = ax.collections[0].get_paths()[0].vertices
    torch.testing.assert_close(float(band[:, 1].max()), float((mean + 3 * std).max()))
    opacity = ax.collections[3].get_facecolors()[:, 3]  # of the queries
    assert opacity[0] == 1  # now
    assert opacity[0] > opacity[1] > opacity[2]
    oldest = ax.collections[1].get_facecolors()[:, 3].min()
    assert 0 < oldest < opacity[2]


def test_beliefs_of_uneven_length_are_refused(belief):
    x, mean, std = belief
    with pytest.raises(InvalidShapeError, match="11 values each"):
        plotting.plot_belief(x, mean[:-1], std)


def test_the_value_of_a_query_is_drawn_against_its_price(belief):
    x, mean, _ = belief
    for price, says, marker in ((0.5, "query here", "o"), (2.0, "no query", "s")):
        ax = plotting.plot_query_value(x, mean, price)
        curve, line, best = ax.lines
        assert list(curve.get_ydata()) == mean.tolist()
        assert set(line.get_ydata()) == {price}
        assert best.get_xydata().tolist() == [[1.0, 1.0]]
        assert best.get_marker() == marker
        assert labels(ax) == ["value of a query at x", f"price of a query, {price:.3g}", says]
    with pytest.raises(InvalidShapeError, match="value: Expected 11 values"):
        plotting.plot_query_value(x, mean[:-1], 0.5)
