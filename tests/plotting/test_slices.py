"""Slices of a belief, read off the artists."""

import pytest

from botorch_costly import plotting
from botorch_costly.errors import InvalidArgumentError
from botorch_costly.tuners import Slice, Told
from tests.plotting.drawing import labels

pytest.importorskip("matplotlib")


def slice_with(values, name="lr", **changes):
    number = len(values)
    fields = {
        "round": 7,
        "held": {name: values[1]},
        "mean": tuple(0.1 * i for i in range(number)),
        "std": (0.2,) * number,
        "told": (Told(values[1], 0.5, 0.9), Told(values[0], 0.4, 0.1), Told(values[0], 9.0, 0.001)),
        "log": False,
    }
    return Slice(name=name, values=values, **{**fields, **changes})


def test_a_slice_shows_the_belief_and_the_rewards_near_it():
    values = tuple(10.0 ** (i / 5) for i in range(20))
    ax = plotting.plot_slice(slice_with(values, log=True), width=3)
    band, points = ax.collections[:2]
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((-0.6, 1.9 + 0.6))
    assert ax.lines[0].get_ydata().tolist() == pytest.approx([0.1 * i for i in range(20)])
    expected = [[values[1], 0.5], [values[0], 0.4]]  # without the uninformative reward
    assert points.get_offsets().tolist() == [pytest.approx(point) for point in expected]
    assert points.get_facecolors()[:, 3].tolist() == pytest.approx([0.9, 0.1])
    assert ax.get_xscale() == "log"
    assert set(ax.lines[1].get_xdata()) == {values[1]}
    assert labels(ax)[-1] == f"held configuration: {values[1]:.4g}"
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("lr", "reward in round 7")
    with pytest.raises(InvalidArgumentError, match="width"):
        plotting.plot_slice(slice_with(values), width=0)


@pytest.mark.parametrize(
    ("values", "places"),
    [((1, 2, 4), [1, 2, 4]), (("a", (1, 2), None), [0, 1, 2]), ((True, 0.5), [0, 1])],
)
def test_few_values_are_drawn_one_by_one(values, places):
    ax = plotting.plot_slice(slice_with(values, told=(Told(values[1], 0.5, 1.0),)))
    assert ax.containers[0][0].get_xdata().tolist() == places
    assert [text.get_text() for text in ax.get_xticklabels()] == [str(v) for v in values]
    (point,) = [c for c in ax.collections if len(c.get_offsets()) == 1 and c.get_zorder() < 2]
    assert point.get_offsets().tolist() == [[places[1], 0.5]]
