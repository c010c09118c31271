"""Schedules and bands of the best values, read off the artists."""

import pytest

import botorch_costly as bc
from botorch_costly import plotting
from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.plotting.bands import rectangles
from botorch_costly.records import Decision, Observation
from botorch_costly.tuners import BestValues

pytest.importorskip("matplotlib")


def test_a_schedule_has_a_panel_for_each_hyperparameter(decisions):
    axes = plotting.plot_schedule(decisions)
    assert [ax.get_ylabel() for ax in axes] == ["lr", "policy", "flip"]
    assert axes[-1].get_xlabel() == "round"
    line, queried = axes[0].lines
    assert line.get_ydata().tolist() == [d.config["lr"] for d in decisions]
    assert queried.get_xdata().tolist() == [0, 3]


def test_choices_are_drawn_as_levels(decisions):
    ax = plotting.plot_schedule(decisions, names=["policy"])[0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["light", "strong"]
    assert ax.lines[0].get_ydata().tolist() == [0, 1, 0, 1, 0, 1]


def test_rewards_get_a_panel_without_missing_ones(decisions):
    observations = [
        Observation(0, {"lr": 0.1}, 0.7),
        Observation(1, {"lr": 0.1}),
        Observation(3, {"lr": 0.1}, -0.2),
    ]
    axes = plotting.plot_schedule(decisions, ["lr"], observations, log=["lr"])
    assert [ax.get_ylabel() for ax in axes] == ["lr", "reward"]
    assert axes[0].get_yscale() == "log"
    assert axes[1].lines[0].get_xydata().tolist() == [[0, 0.7], [3, -0.2]]


def best_of(name="lr", **changes):
    """Of three values, in rounds 0, 2 and 4: all alike, then the last two, then the ends."""
    fields = {
        "rounds": (0, 2, 4),
        "values": (1e-6, 1e-4, 1e-2),
        "behind": ((0.0, 0.0, 0.0), (2.5, 0.0, 1.5), (0.5, 3.0, 0.0)),
        "log": True,
    }
    return BestValues(name=name, **{**fields, **changes})


def test_where_the_best_value_might_be_is_rectangles():
    """Cells end halfway on the scale; values apart are rectangles apart; equal rounds are one."""
    inner = rectangles(best_of(), 1.0, 5)
    assert [(r.left, r.right) for r in inner] == [(0, 2), (2, 4), (4, 5.5), (4, 5.5)]
    ends = [(r.low, r.high) for r in inner]
    expected = [(1e-6, 1e-2), (1e-5, 1e-3), (1e-6, 1e-5), (1e-3, 1e-2)]
    assert all(a == pytest.approx(b) for a, b in zip(ends, expected, strict=True))
    outer = rectangles(best_of(), 2.0, 5)
    assert outer[1][2:] == pytest.approx((1e-5, 1e-2))
    late = best_of(rounds=(0,), behind=((5.0, 5.0, 0.0),))
    assert rectangles(late, 1.0, 0)[0][2:] == pytest.approx((1e-3, 1e-2))
    even = best_of(values=(0.0, 2.0, 6.0), log=False)
    assert [r[2:] for r in rectangles(even, 1.0, 5)] == [(0, 6), (1, 4), (0, 1), (4, 6)]
    options = best_of(values=("a", "b", (1, 2)), log=False, behind=((0.0, 5.0, 5.0),) * 3)
    assert rectangles(options, 1.0, 4) == [(0, 4.5, -0.4, 0.4)]
    flags = best_of(values=(False, True), log=False, behind=((5.0, 0.0),) * 3)
    assert rectangles(flags, 1.0, 4) == [(0, 4.5, 0.6, 1.4)]


def test_a_schedule_shows_what_might_have_been_best(decisions):
    policies = best_of("policy", values=("none", "strong", "light"), log=False)
    lr, policy, flip = plotting.plot_schedule(decisions, log=["lr"], best=[best_of(), policies])
    assert [len(ax.collections) for ax in (lr, policy, flip)] == [2, 2, 0]
    for collection, behind in zip(lr.collections, (2.0, 1.0), strict=True):
        drawn = [(*path.vertices.min(0), *path.vertices.max(0)) for path in collection.get_paths()]
        shaded = rectangles(best_of(), behind, 5)
        assert drawn == [pytest.approx((a.left, a.low, a.right, a.high)) for a in shaded]
    believed, played, _ = lr.lines
    assert believed.get_ydata().tolist() == [1e-6, 1e-4, 1e-2, 1e-2]
    assert played.get_ydata().tolist() == [d.config["lr"] for d in decisions]
    # All options have their place, those that were never played, too.
    assert [text.get_text() for text in policy.get_yticklabels()] == ["none", "strong", "light"]
    assert policy.lines[1].get_ydata().tolist() == [2, 1, 2, 1, 2, 1]
    assert "believed best" in lr.get_title(loc="right")
    assert "believed" not in plotting.plot_schedule(decisions)[0].get_title(loc="right")
    with pytest.raises(InvalidArgumentError, match="best: Expected names among"):
        plotting.plot_schedule(decisions, best=[best_of("momentum")])


def test_failed_queries_are_crosses_below_the_rewards(decisions):
    observations = [Observation(0, {"lr": 0.1}, 0.7), Observation(3, {"lr": 0.1}, failed=True)]
    observations.append(Observation(4, {"lr": 0.1}))  # a query without a reward yet
    ax = plotting.plot_schedule(decisions, ["lr"], observations)[-1]
    rewards, failed = ax.lines
    assert rewards.get_xydata().tolist() == [[0, 0.7]]
    assert failed.get_xdata() == [3]
    assert ax.get_title(loc="right") == "crosses: failed queries (1)"


def test_long_names_are_broken_and_end():
    config = {"augmentation/strength_of_rotation": 0.1, "x" * 100: 0.2}
    axes = plotting.plot_schedule([Decision(0, config, query=True, reason="")])
    first, second = (ax.get_ylabel() for ax in axes)
    assert first == "augmentation/\nstrength_of_\nrotation"
    assert [len(line) for line in second.splitlines()] == [16, 16, 16]
    assert second.endswith("…")


def test_given_axes_are_used(decisions, belief):
    (ax,) = plotting.plot_schedule(decisions, ["lr"])
    assert plotting.plot_schedule(decisions, ["lr"], axes=[ax]) == [ax]
    for drawn in (
        plotting.plot_queries(decisions, ax=ax),
        plotting.plot_regret_against_cost({"a": ([1], [2])}, ax=ax),
        plotting.plot_belief(*belief, ax=ax),
    ):
        assert drawn is ax


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"names": ["momentum"]}, InvalidArgumentError),
        ({"names": []}, InvalidArgumentError),
        ({"log": ["momentum"]}, InvalidArgumentError),
        ({"axes": []}, InvalidShapeError),
    ],
)
def test_schedules_that_cannot_be_drawn_are_refused(decisions, options, error):
    with pytest.raises(error, match="Expected"):
        plotting.plot_schedule(decisions, **options)
    with pytest.raises(InvalidArgumentError, match="at least one decision"):
        plotting.plot_schedule([])


def test_a_schedule_map_has_a_row_for_each_hyperparameter(decisions):
    ax = plotting.plot_schedule_map(decisions, names=["flip", "lr"], limits=(0.0, 0.2))
    (image,) = ax.images
    expected = [[d.config[name] for d in decisions] for name in ("flip", "lr")]
    assert image.get_array().tolist() == expected
    assert image.get_clim() == (0.0, 0.2)
    assert image.get_extent() == [-0.5, 5.5, 1.5, -0.5]  # the first row on top
    assert [label.get_text() for label in ax.get_yticklabels()] == ["flip", "lr"]
    with pytest.raises(InvalidArgumentError, match="momentum"):
        plotting.plot_schedule_map(decisions, names=["momentum"])


def told(*metrics):
    return [Observation(i, {"lr": 0.1}, 0.1, metric=metric) for i, metric in enumerate(metrics)]


def test_metrics_get_a_panel_below_the_rewards(decisions):
    nan = float("nan")
    axes = plotting.plot_schedule(decisions, ["lr"], told(2.0, None, nan, 1.0))
    assert [ax.get_ylabel() for ax in axes] == ["lr", "reward", "metric"]
    assert axes[2].lines[0].get_xydata().tolist() == [[0, 2.0], [3, 1.0]]
    twins = [Observation(0, {"lr": 0.1}, 0.5, metric=0.5)]
    assert len(plotting.plot_schedule(decisions, ["lr"], twins, metric="loss")) == 2


def test_one_diverged_loss_does_not_hide_the_others(decisions):
    *_, ax = plotting.plot_schedule(decisions, ["lr"], told(40.0, 0.5, 4e28, 0.4, 0.3))
    assert ax.get_yscale() == "log"
    assert ax.get_ylim()[1] < 100
    points, beyond = ax.lines
    assert points.get_xdata().tolist() == [0, 1, 3, 4]
    assert (beyond.get_xdata().tolist(), beyond.get_marker()) == ([2], "^")
    assert ax.get_title(loc="right") == "triangles: beyond the axis (1)"


def test_the_axis_shows_the_bounds_and_what_lies_outside_of_the_limits(decisions):
    space = bc.SearchSpace(
        {
            "lr": bc.Real(1e-4, 10.0, log=True),
            "policy": bc.Choice(["light", "strong"]),
            "flip": bc.Choice([True, False]),
        }
    )
    limits = [(0, {"lr": (0.01, 0.2)}), (3, {"lr": (0.01, 0.9)})]
    axes = plotting.plot_schedule(decisions, log=["lr"], space=space, limits=limits)
    low, high = axes[0].get_ylim()
    assert low < 1e-4 < 10.0 < high
    drawn = [line.get_ydata()[0] for line in axes[0].lines if len(set(line.get_ydata())) == 1]
    assert {1e-4, 10.0} <= set(drawn)
    below, above = axes[0].collections
    edges = [path.vertices for area in (below, above) for path in area.get_paths()]
    assert {0.01} == {y for y in edges[0][:, 1].tolist() if y != pytest.approx(low)}
    assert {0.2, 0.9} == {y for y in edges[1][:, 1].tolist() if y != pytest.approx(high)}
    legend = "dots: rounds with a query; grey lines: bounds; dashed: trust region"
    assert axes[0].get_title(loc="right") == legend
    assert [len(ax.collections) for ax in axes[1:]] == [0, 0]


def test_a_bound_of_0_on_a_logarithmic_axis_is_no_error():
    space = bc.SearchSpace({"x": bc.Real(0.0, 1.0)})
    drawn = [
        Decision(number, {"x": 0.1 * (number + 1)}, query=True, reason="why") for number in range(4)
    ]
    (axes,) = plotting.plot_schedule(drawn, log=["x"], space=space)
    low, high = axes.get_ylim()
    assert 0 < low <= 0.1
    assert high >= 1.0


@pytest.mark.parametrize(
    ("bounds", "labels"),
    [
        ((3.0, 31.0), ["5", "10", "20"]),
        ((0.1, 1.0), ["0.1", "0.2", "0.5", "1"]),
        ((2e-6, 4e-5), [rf"$\mathdefault{{{n}\times10^{{-6}}}}$" for n in (2, 5)]),
    ],
)
def test_a_narrow_logarithmic_axis_has_few_plain_labels(bounds, labels):
    decisions = [Decision(i, {"x": v}, query=True, reason="") for i, v in enumerate(bounds)]
    space = bc.SearchSpace({"x": bc.Real(*bounds, log=True)})
    (panel,) = plotting.plot_schedule(decisions, log=["x"], space=space)
    panel.figure.draw_without_rendering()
    low, high = panel.get_ylim()
    ticks = panel.yaxis.get_ticklabels(which="both")
    texts = [t.get_text() for t in ticks if t.get_text() and low <= t.get_position()[1] <= high]
    assert texts[: len(labels)] == labels
    assert len(texts) <= 6
