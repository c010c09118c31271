"""Queries of one run and of several, read off the artists."""

import pytest

from botorch_costly import plotting
from botorch_costly.errors import InvalidArgumentError
from botorch_costly.records import Decision
from tests.plotting.drawing import labels

to_hex = pytest.importorskip("matplotlib.colors").to_hex


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


def test_of_a_run_nine_groups_have_a_colour_each_and_the_rarest_are_drawn_alike():
    counts = {(query, why): 12 - why - query for query in (True, False) for why in range(7)}
    rows = [group for group, count in counts.items() for _ in range(count)]
    run = [Decision(i, {"lr": 1}, query=q, reason=f"{why}") for i, (q, why) in enumerate(rows)]
    ax = plotting.plot_queries(run)
    colors = [to_hex(c.get_color()) for c in ax.collections]
    assert len(colors) == len(set(colors)) == 11
    assert [label for label in labels(ax) if "other" in label] == [
        "query: other reasons (18)",
        "skip: other reasons (13)",
    ]
    assert sorted(at for c in ax.collections for at in c.get_positions()) == list(range(len(run)))


def test_long_runs_have_thin_ticks():
    def widths(rounds):
        run = [Decision(i, {"lr": 0.1}, query=True, reason="") for i in range(rounds)]
        pictures = (plotting.plot_query_raster({"run": run}), plotting.plot_queries(run))
        return [ax.collections[0].get_linewidth() for ax in pictures]

    assert widths(10) == [1.2, 1.2]
    assert widths(2000) == [0.5, 0.5]
