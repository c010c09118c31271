"""The rows of Table A1: equal luck for all, whole blocks, and what is said of them."""

import json

import pytest

from benchmarks.bandits import table_a1
from benchmarks.bandits.policies import CE, priced, rows
from benchmarks.harness.record import rows_of


def test_the_table_has_the_rows_of_the_paper_and_ours():
    assert set(table_a1.PAPER) <= set(rows())
    assert {priced(0.1), priced(1.0), "TV-GP-UCB", "EXP3.R"} <= set(rows())


@pytest.mark.slow
def test_a_run_goes_on_where_it_stopped_and_blocks_make_the_whole(tmp_path, monkeypatch, capsys):
    few = ["--horizon", "6", "--processes", "1", "--match", "UCB1", CE, "priced"]
    monkeypatch.setattr(table_a1, "BLOCK", 2)
    table_a1.main([*few, "--seeds", "2", "--results", str(tmp_path / "parts")])
    before = rows_of("table-a1", tmp_path / "parts")
    table_a1.main([*few, "--seeds", "3", "--results", str(tmp_path / "parts")])
    parts = rows_of("table-a1", tmp_path / "parts")
    assert [row for row in parts if row["first"] == 0] == before
    monkeypatch.setattr(table_a1, "BLOCK", 3)
    capsys.readouterr()
    table_a1.main([*few, "--seeds", "3", "--results", str(tmp_path / "whole")])
    shown = capsys.readouterr().out
    whole = table_a1.cells(rows_of("table-a1", tmp_path / "whole"))
    for problem, cells in table_a1.cells(parts).items():
        for name, cell in cells.items():
            other = whole[problem][name]
            assert cell.variant == other.variant
            assert cell.paid.regret.tolist() == pytest.approx(other.paid.regret.tolist())
            assert cell.running == pytest.approx(other.running)
            assert cell.running[-1] == pytest.approx(float(cell.paid.regret.mean()) / 6)
    assert "sine, 3 trials" in shown
    assert "0.017 / 52" in shown
    assert "L_T(0.1): priced" in shown
    assert (tmp_path / "whole" / "table-a1.png").exists()


def test_of_the_variants_the_best_is_shown():
    def block(variant, regret, first=0):
        paid = {"regret": regret, "queries": [1, 2], "running": [0.5, sum(regret) / 2]}
        return {
            **dict.fromkeys(table_a1.PROBLEMS, paid),
            "row": "UCB1",
            "variant": variant,
            "horizon": 10,
            "first": first,
            "trials": 2,
        }

    stored = [block("b", [0.3, 0.5]), block("a", [0.1, 0.2], 2), block("a", [0.3, 0.4])]
    cell = table_a1.cells(json.loads(json.dumps(stored)))["sine"]["UCB1"]
    assert cell.variant == "a"
    assert cell.paid.regret.tolist() == pytest.approx([3.0, 4.0, 1.0, 2.0])
    assert cell.running == pytest.approx([0.5, 0.25])
