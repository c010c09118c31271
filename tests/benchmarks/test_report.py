"""Verdicts: the printed table bears itself out, and planted misses are found and named."""

import itertools

import pytest

from benchmarks import report
from benchmarks.paper import FORGETTING_RATES, PAPER_SIZE, TABLE_A2, Cell
from benchmarks.record import write_results
from benchmarks.verdicts import judge, regret_at, table_of

CURVE = [Cell(0.5, 0.1, 100, 9), Cell(0.3, 0.1, 300, 9), Cell(0.4, 0.1, 200, 9)]


def printed_as_ours():
    """The paper's table, as if it had been measured."""
    table = {name: dict(cells) for name, cells in TABLE_A2.items()}
    coins = [name for name in table if "Ber(" in name]
    return {**table, **{f"{name} as printed": dict(table[name]) for name in coins}}


def misses(table):
    return [verdict for verdict in judge(table) if not verdict.holds]


def moved(table, policy, forgetting, regret=0.0, queries=0.0):
    cell = table[policy][forgetting]
    new = cell._replace(regret=cell.regret + regret, queries=cell.queries + queries)
    table[policy][forgetting] = new
    return table


def rows_of(table):
    trials, horizon, points = PAPER_SIZE
    size = {"trials": trials, "horizon": horizon, "points": points, "seconds": 1.0}
    return [
        {"forgetting": forgetting, "policy": name, **cell._asdict(), **size}
        for name, cells in table.items()
        for forgetting, cell in cells.items()
    ]


def test_the_printed_table_is_complete():
    assert len(TABLE_A2) == 19
    assert all(tuple(cells) == FORGETTING_RATES for cells in TABLE_A2.values())
    assert TABLE_A2["CE-GP-UCB @0.90"][0.05] == Cell(0.400, 0.036, 291, 30)
    assert TABLE_A2["R-GP-UCB"][0.003] == Cell(0.352, 0.187, 499, 0)
    assert TABLE_A2["CE-GP-UCB @*"][0.01] == Cell(0.168, 0.033, 442, 41)


def test_the_printed_table_bears_itself_out():
    verdicts = judge(printed_as_ours())
    assert all(verdict.holds for verdict in verdicts)
    assert len(verdicts) == 5 + 9 * 5 + 2 * 8 * 5


@pytest.mark.parametrize("sign", [-1, 1])
def test_full_feedback_off_by_more_than_the_margin_is_a_miss(sign):
    assert not misses(moved(printed_as_ours(), "TV-GP-UCB", 0.03, sign * 0.02))
    (miss,) = misses(moved(printed_as_ours(), "TV-GP-UCB", 0.03, sign * 0.021))
    assert (miss.policy, miss.forgetting) == ("TV-GP-UCB", 0.03)


@pytest.mark.parametrize("name", ["TV-GP-UCB Ber(0.4)", "TV-GP-UCB Ber(0.4) as printed"])
def test_coins_off_by_more_than_the_margin_are_a_miss(name):
    assert not misses(moved(printed_as_ours(), name, 0.01, 0.04))
    (miss,) = misses(moved(printed_as_ours(), name, 0.01, -0.041))
    assert (miss.policy, miss.forgetting) == (name, 0.01)


def test_a_curve_above_the_printed_one_is_a_miss_and_below_is_none():
    name = "CE-GP-UCB @0.80"
    (miss,) = misses(moved(printed_as_ours(), name, 0.05, 0.031))
    assert (miss.policy, miss.forgetting) == (name, 0.05)
    assert not misses(moved(printed_as_ours(), name, 0.05, -0.3))


def test_thresholds_that_query_more_for_less_regret_are_on_the_curve():
    """Each of our thresholds does what the next printed one does: the same curve, read shifted."""
    table = printed_as_ours()
    names = [name for name in table if name.startswith("CE-GP-UCB @")]
    for name, following in itertools.pairwise(names):
        table[name] = dict(TABLE_A2[following])
    late = [v for v in judge(table) if v.policy in names]
    # Row by row this would be far off: at 0.05 the first rows differ by 0.147.
    assert all(v.holds for v in late if v.policy != names[0])
    assert all("outside our range" in v.note for v in late if v.policy == names[0])


def test_what_was_not_measured_is_a_miss():
    table = printed_as_ours()
    del table["TV-GP-UCB"][0.03]
    (miss,) = misses(table)
    assert miss.ours is None
    assert "not measured" in str(miss)
    assert len(misses({})) == len(judge({}))


def test_curves_are_read_between_neighbours():
    assert regret_at(CURVE, 200) == (pytest.approx(0.4), "at 200 queries")
    assert regret_at(CURVE, 250)[0] == pytest.approx(0.35)
    assert regret_at(CURVE, 110)[0] == pytest.approx(0.49)


@pytest.mark.parametrize(("queries", "regret", "end"), [(50, 0.5, 100), (400, 0.3, 300)])
def test_beyond_a_curve_the_nearer_end_is_taken_and_said(queries, regret, end):
    value, note = regret_at(CURVE, queries)
    assert value == regret
    assert note == f"at {queries} queries, outside our range: our end at {end}"


def test_reading_a_convex_curve_never_rises_with_queries():
    values = [regret_at(CURVE, queries)[0] for queries in range(50, 400, 7)]
    assert values == sorted(values, reverse=True)


def test_misses_are_counted_and_named():
    text = report.text_verdicts(judge(moved(printed_as_ours(), "TV-GP-UCB", 0.03, 0.1)))
    assert "full feedback within 0.02: 4 of 5 hold" in text
    assert (
        "MISS: TV-GP-UCB, forgetting 0.03: ours 0.405, printed 0.305, margin 0.02"
        in text.splitlines()[1]
    )
    assert text.count("MISS") == 1


def test_tables_show_ours_beside_the_papers():
    table = table_of(rows_of(moved(printed_as_ours(), "R-GP-UCB", 0.05, 0.1)))
    (line,) = (
        line
        for line in report.text_table(table).split("forgetting 0.05")[1].splitlines()
        if line.startswith("R-GP-UCB")
    )
    expected = "R-GP-UCB 0.681 ± 0.093 499 ± 0 0.581 ± 0.093 499 ± 0 +0.100"
    assert " ".join(line.split()) == expected
    markdown = report.markdown_table(table)
    assert "| R-GP-UCB | ours | 0.352±0.187 / 499±0 |" in markdown
    assert len({line.count("|") for line in markdown.splitlines()}) == 1


def test_the_size_of_small_runs_is_said():
    rows = rows_of(printed_as_ours())
    assert report.size(rows) == "50 trials of 500 rounds on 1000 points."
    assert "NOT the paper's size" in report.size([{**rows[0], "trials": 2}])


def test_stored_results_become_sections(tmp_path):
    assert report.sections(tmp_path) == {}
    write_results("table-a2", rows_of(printed_as_ours()), [0], directory=tmp_path)
    (content,) = report.sections(tmp_path).values()
    assert "| TV-GP-UCB | ours | 0.094±0.035 / 499±0 |" in content
    assert "- full feedback within 0.02: 5 of 5 hold" in content


def test_a_section_is_replaced_and_the_rest_kept():
    text = "before\n<!-- a:begin -->\nold\n<!-- a:end -->\nafter\n"
    once = report.replace_section(text, "a", "new")
    assert once == "before\n<!-- a:begin -->\nnew\n<!-- a:end -->\nafter\n"
    assert report.replace_section(once, "a", "new") == once
    with pytest.raises(ValueError, match="b:begin"):
        report.replace_section(text, "b", "new")


def test_the_readme_has_every_section():
    text = report.README.read_text(encoding="utf-8")
    for name in ("table-a2", "figure-1", "streaming", "demo", "demo-heldout"):
        assert report.replace_section(text, name, "x") != text


def test_every_measurement_that_a_table_was_made_of_is_named():
    line = {
        "time": "2026-11-21T23:59:59+00:00",
        "commit": "a" * 40,
        "command": "python -m benchmarks x",
        "seeds": [200, 201, 202],
        "versions": {"torch": "2.13.0"},
        "hardware": {"cpu": "EPYC", "cores": 2, "threads": 1, "gpu": None},
    }
    later = {**line, "commit": "b" * 40, "seeds": [3, 5]}
    said = report.origin([line, line, later])
    assert said.count("python -m benchmarks x") == 2
    assert "seed 200 to 202" in said
    assert "seed 3, 5" in said
