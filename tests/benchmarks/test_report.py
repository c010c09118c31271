"""Verdicts: the printed table bears itself out, and planted misses are found and named."""

import itertools
import re

import pytest

from benchmarks.harness.record import RESULTS, write_results
from benchmarks.tables import report, table_a2_report
from benchmarks.tables.paper import FORGETTING_RATES, PAPER_SIZE, TABLE_A2, Cell
from benchmarks.tables.table_a2_report import judge, regret_at, table_of

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


def test_cells_of_confidence_rules_are_compared_one_by_one():
    table = printed_as_ours()
    (line,) = table_a2_report.cell_by_cell(table).splitlines()
    assert line.endswith("is a rival: regret 45, queries 45, both 45 of 45")
    # Two standard errors of 50 trials: .0145 of the regret and 11.9 queries.
    near = moved(printed_as_ours(), "CE-GP-UCB @0.90", 0.05, 0.0144, 11.9)
    assert table_a2_report.cell_by_cell(near) == line
    far = moved(printed_as_ours(), "CE-GP-UCB @0.90", 0.05, 0.0155, 11.9)
    far = moved(far, "CE-GP-UCB @0.80", 0.003, -0.01, -12)
    assert "regret 44, queries 44, both 43 of 45" in table_a2_report.cell_by_cell(far)


def test_merged_rows_have_a_line_of_their_own():
    table = printed_as_ours()
    table["CE-GP-UCB @0.90 merged"] = {0.05: TABLE_A2["CE-GP-UCB @0.90"][0.05]}
    plain, merged = table_a2_report.cell_by_cell(table).splitlines()
    assert plain.endswith("of 45")
    assert merged.endswith("rivals are merged: regret 1, queries 1, both 1 of 1")


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
    text = table_a2_report.text_verdicts(judge(moved(printed_as_ours(), "TV-GP-UCB", 0.03, 0.1)))
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
        for line in table_a2_report.text_table(table).split("forgetting 0.05")[1].splitlines()
        if line.startswith("R-GP-UCB")
    )
    expected = "R-GP-UCB 0.681 ± 0.093 499 ± 0 0.581 ± 0.093 499 ± 0 +0.100"
    assert " ".join(line.split()) == expected
    markdown = table_a2_report.markdown_table(table)
    assert "| R-GP-UCB | ours | 0.352±0.187 / 499±0 |" in markdown
    assert len({line.count("|") for line in markdown.splitlines()}) == 1


def test_the_size_of_small_runs_is_said():
    rows = rows_of(printed_as_ours())
    assert table_a2_report.size(rows) == "50 trials of 500 rounds on 1000 points."
    assert "NOT the paper's size" in table_a2_report.size([{**rows[0], "trials": 2}])


def test_a_page_is_written_for_what_is_stored(tmp_path):
    assert report.write_markdown(tmp_path) == []
    write_results("table-a2", rows_of(printed_as_ours()), [0], directory=tmp_path)
    (page,) = report.write_markdown(tmp_path)
    text = page.read_text(encoding="utf-8")
    assert page == tmp_path / "table-a2.md"
    assert text.startswith("# Table A2")
    assert "| TV-GP-UCB | ours | 0.094±0.035 / 499±0 |" in text
    assert "- full feedback within 0.02: 5 of 5 hold" in text
    assert "Not stored" in report.text_of("demo", tmp_path)


NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d{1,3})?(?!\w)")  # and no commit


def differences(one, other):
    """What tells two tables apart beside the last decimal of a number, which rounding may turn."""
    words = [NUMBER.sub("#", text) for text in (one, other)]
    if words[0] != words[1]:
        return words
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    return [(a, b) for a, b in pairs if abs(float(a) - float(b)) > 1.01 * unit(a)]


def unit(number):
    """What the last digit of a printed number is worth, nothing of a whole number."""
    mantissa, _, exponent = number.partition("e")
    decimals = len(mantissa.partition(".")[2])
    return 10.0 ** (int(exponent or 0) - decimals) if decimals or exponent else 0.0


@pytest.mark.parametrize("name", report.REPORTS)
def test_the_stored_tables_are_those_of_the_stored_rows(name):
    stored = (RESULTS / f"{name}.md").read_text(encoding="utf-8")
    assert not differences(stored, report.markdown_of(name))


def test_a_changed_table_is_told_apart():
    assert not differences("regret 0.12 of 3 runs", "regret 0.13 of 3 runs")
    assert differences("regret 0.12 of 3 runs", "regret 0.14 of 3 runs")
    assert differences("regret 0.12 of 3 runs", "regret 0.12 of 4 runs")
    assert differences("wins at 1e-05", "LOSES at 1e-05")
    assert differences("1.0 | 2.0", "1.0")


def test_the_readme_links_every_page_and_has_no_other():
    text = (RESULTS.parent / "README.md").read_text(encoding="utf-8")
    linked = set(re.findall(r"\]\(results/([\w-]+)\.md\)", text))
    assert linked == {path.stem for path in RESULTS.glob("*.md")} == set(report.REPORTS)


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
