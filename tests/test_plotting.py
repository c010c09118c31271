"""What the pictures show, read off their artists."""

import math
import subprocess
import sys

import pytest
import torch

from botorch_costly import plotting
from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.plotting.bands import rectangles
from botorch_costly.records import Decision, Observation
from botorch_costly.transfer_records import TransferDecision
from botorch_costly.transforms import CurveCompression
from botorch_costly.tuners import BestValues, Importance, Slice, Told
from botorch_costly.tuners.curves.trainings import Training

to_hex = pytest.importorskip("matplotlib.colors").to_hex


def decision(i):
    query = i % 3 == 0
    reason = f"a rival may be better (confidence 0.{i})" if query else "no rival is likely"
    config = {"lr": 10.0 ** -(i + 1), "policy": "strong" if i % 2 else "light", "flip": i > 2}
    return Decision(i, config, query=query, reason=reason)


@pytest.fixture
def decisions():
    return [decision(i) for i in range(6)]


@pytest.fixture
def belief():
    x = torch.linspace(0, 1, 11)
    return x, x.square(), 0.1 + x


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


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
    found = {
        "rounds": (0, 2, 4),
        "values": (1e-6, 1e-4, 1e-2),
        "behind": ((0.0, 0.0, 0.0), (2.5, 0.0, 1.5), (0.5, 3.0, 0.0)),
        "log": True,
    }
    return BestValues(name=name, **{**found, **changes})


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
    told = [Observation(0, {"lr": 0.1}, 0.7), Observation(3, {"lr": 0.1}, failed=True)]
    told.append(Observation(4, {"lr": 0.1}))  # a query without a reward yet
    ax = plotting.plot_schedule(decisions, ["lr"], told)[-1]
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


def test_queries_are_grouped_by_reason(decisions):
    ax = plotting.plot_queries(decisions)
    assert labels(ax) == ["query: a rival may be better (2)", "skip: no rival is likely (4)"]
    queries, skips = ax.collections
    assert queries.get_positions() == [0, 3]
    assert skips.get_positions() == [1, 2, 4, 5]
    assert queries.get_lineoffset() > skips.get_lineoffset()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["skip (4)", "query (2)"]
    with pytest.raises(InvalidArgumentError, match="at least one decision"):
        plotting.plot_queries([])


def test_a_raster_has_a_row_a_run_and_a_colour_a_reason(decisions):
    rival, always = "a rival may be better", "full feedback"
    other = [Decision(i, {"lr": 0.1}, query=i > 0, reason=always) for i in range(4)]
    none = [Decision(i, {"lr": 0.1}, query=False, reason=rival) for i in range(3)]
    ax = plotting.plot_query_raster({"first": decisions, "second": other, "none": none})
    ticks = [(c.get_lineoffset(), c.get_positions()) for c in ax.collections]
    assert ticks == [(0, [0, 3]), (1, [1, 2, 3])]
    assert labels(ax) == [f"{always} (3)", f"{rival} (2)"]
    drawn = [to_hex(c.get_color()) for c in ax.collections]
    assert drawn[::-1] == [to_hex(line.get_color()) for line in ax.lines]  # as the legend says
    assert [text.get_text() for text in ax.get_yticklabels()] == ["first", "second", "none"]
    assert ax.get_ylim()[0] > ax.get_ylim()[1]  # the first run on top
    assert [text.get_text().strip() for text in ax.texts] == ["2/6", "3/4", "0/3"]
    extents = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in ax.patches]
    assert extents == [(-0.5, 5.5), (-0.5, 3.5), (-0.5, 2.5)]


def test_a_run_without_a_query_is_a_row_without_a_legend():
    skips = [Decision(i, {"lr": 0.1}, query=False, reason="held") for i in range(5)]
    ax = plotting.plot_query_raster({"never": skips})
    assert (len(ax.collections), ax.get_legend()) == (0, None)
    for runs in ({}, {"empty": []}):
        with pytest.raises(InvalidArgumentError, match="at least one"):
            plotting.plot_query_raster(runs)


def test_of_many_reasons_the_rarest_are_drawn_alike():
    reasons = [f"reason {k}" for k in range(9) for _ in range(9 - k)]
    many = [Decision(i, {"lr": 0.1}, query=True, reason=why) for i, why in enumerate(reasons)]
    ax = plotting.plot_query_raster({"run": many})
    assert labels(ax) == [*(f"reason {k} ({9 - k})" for k in range(7)), "other reasons (3)"]
    rare = {to_hex(c.get_color()) for c in ax.collections[-2:]}
    assert rare == {to_hex(ax.lines[-1].get_color())}
    assert sorted(at for c in ax.collections for at in c.get_positions()) == list(range(45))
    alone = plotting.plot_queries(many)
    assert to_hex(alone.collections[-1].get_color()) in rare


def test_long_runs_have_thin_ticks():
    def widths(rounds):
        run = [Decision(i, {"lr": 0.1}, query=True, reason="") for i in range(rounds)]
        pictures = (plotting.plot_query_raster({"run": run}), plotting.plot_queries(run))
        return [ax.collections[0].get_linewidth() for ax in pictures]

    assert widths(10) == [1.2, 1.2]
    assert widths(2000) == [0.5, 0.5]


def test_quality_is_drawn_over_any_cost_with_its_direction_and_baselines():
    curves = {"A": ([3, 1], [0.9, 0.7], [0.1, 0.2]), "B": ([2.0], [0.5])}
    options = {"quality": "accuracy", "cost": "dollars", "baselines": {"fixed": 0.6}}
    for maximize, said in ((True, " (more is better)"), (False, " (less is better)"), (None, "")):
        ax = plotting.plot_quality_against_cost(curves, maximize=maximize, **options)
        assert ax.get_ylabel() == "accuracy" + said
    assert ax.get_xlabel() == "dollars"
    assert ax.lines[0].get_xydata().tolist() == [[1, 0.7], [3, 0.9]]
    assert labels(ax) == ["A", "B", "fixed"]
    (level,) = [line for line in ax.lines if line.get_label() == "fixed"]
    assert set(level.get_ydata()) == {0.6}
    bars = ax.containers[0][2][0].get_segments()
    ends = [float(end) for (_, low), (_, high) in bars for end in (low, high)]
    assert ends == pytest.approx([0.5, 0.9, 0.8, 1.0])


def slice_with(values, name="lr", **changes):
    number = len(values)
    found = {
        "round": 7,
        "held": {name: values[1]},
        "mean": tuple(0.1 * i for i in range(number)),
        "std": (0.2,) * number,
        "told": (Told(values[1], 0.5, 0.9), Told(values[0], 0.4, 0.1), Told(values[0], 9.0, 0.001)),
        "log": False,
    }
    return Slice(name=name, values=values, **{**found, **changes})


def test_a_slice_shows_the_belief_and_the_rewards_near_it():
    values = tuple(10.0 ** (i / 5) for i in range(20))
    ax = plotting.plot_slice(slice_with(values, log=True), width=3)
    band, told = ax.collections[:2]
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((-0.6, 1.9 + 0.6))
    assert ax.lines[0].get_ydata().tolist() == pytest.approx([0.1 * i for i in range(20)])
    expected = [[values[1], 0.5], [values[0], 0.4]]  # not what says nothing
    assert told.get_offsets().tolist() == [pytest.approx(point) for point in expected]
    assert told.get_facecolors()[:, 3].tolist() == pytest.approx([0.9, 0.1])
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
    (told,) = [c for c in ax.collections if len(c.get_offsets()) == 1 and c.get_zorder() < 2]
    assert told.get_offsets().tolist() == [[places[1], 0.5]]


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


def test_pictures_can_be_saved(decisions, belief, tmp_path):
    x, mean, _ = belief
    none = plotting.Marks([], [], [])
    for i, ax in enumerate(
        [
            plotting.plot_schedule(decisions, observations=[])[0],
            plotting.plot_queries(decisions),
            plotting.plot_belief(*belief, queries=plotting.Marks(x, mean, [0] * 11), skips=none),
        ]
    ):
        ax.figure.savefig(tmp_path / f"{i}.png")
        assert (tmp_path / f"{i}.png").stat().st_size > 1000


def test_matplotlib_is_imported_only_to_draw():
    code = "import sys, botorch_costly.plotting; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_missing_extra_is_named(decisions, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"botorch_costly\[plot\]"):
        plotting.plot_queries(decisions)


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
        "best at hand",
    ]
    best = ax.lines[-1]
    assert best.get_xydata().tolist() == [[1, 0.1], [3, 0.9]]  # the gap is left out
    (left,) = [line for line in ax.lines if line.get_label() == "left where it was (2)"]
    assert left.get_xydata().tolist() == [[2, 0.3], [1, 0.2]]
    assert ax.get_xlabel()
    assert ax.get_ylabel()


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
    told, steps, failed = values.lines
    assert told.get_xydata().tolist() == [[0, 0.4], [1, 0.2], [3, 0.6]]
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


def test_importance_is_stacked_up_to_the_whole():
    alone = ((0.1, 0.5), (0.2, 0.6), (0.0, 0.0))
    found = Importance(("lr", "dropout"), (0, 4, 8), alone, ((0.5, 0.9), (0.4, 0.8), (0.0, 0.0)))
    ax = plotting.plot_importance(found)
    assert labels(ax) == ["several together", "lr", "dropout"]
    tops = {c.get_label(): c.get_paths()[0].vertices for c in ax.collections}
    at_first = {name: max(y for x, y in top if x == 0) for name, top in tops.items()}
    assert at_first == pytest.approx({"dropout": 0.5, "lr": 0.6, "several together": 1.0})
    assert max(y for x, y in tops["several together"] if x == 8) == 0  # nothing was known
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
