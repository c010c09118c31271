"""Proposals before a search: which configurations they are, and the table of regrets."""

import pytest
import torch

from benchmarks.harness.record import rows_of
from benchmarks.meta import advice
from benchmarks.meta.advice import AT, KINDS, Run, measure, proposals, text
from benchmarks.meta.families import Study
from tests.cases import quick


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(advice, "_LISTED", 60)
    monkeypatch.setattr(advice, "AT", (1, 3, 5))


@pytest.mark.parametrize(("kind", "low", "high"), [("good", 95, 100), ("hostile", 0, 5)])
def test_proposals_are_as_good_or_bad_as_they_are_called(kind, low, high):
    values = torch.randperm(100, generator=torch.Generator().manual_seed(0)).double()
    study = Study(values.unsqueeze(-1) / 100, values)
    for seed in range(20):
        ((number,),) = proposals(study, kind, seed)
        assert low <= values[number] < high


def test_five_proposals_come_from_one_adviser_or_from_five():
    values = torch.arange(200.0)
    study = Study(values.unsqueeze(-1) / 200, values)
    (together,) = proposals(study, "hostile, five of one", 3)
    apart = proposals(study, "hostile, of five", 3)
    assert [[number] for number in together] == apart
    assert len(set(together)) == 5
    assert proposals(study, "none", 3) == proposals(study, "none, LogEI", 3) == []


@pytest.mark.parametrize("kind", quick(KINDS, "none", "good"))
def test_each_search_is_played_on_the_same_list(kind, small):
    row = measure(Run("branin", kind, 1))
    assert row == {**measure(Run("branin", kind, 1)), "seconds": row["seconds"]}
    assert 0 <= row["at 5"] <= row["at 3"] <= row["at 1"] <= 1
    if kind == "good":
        listed = advice.PROBLEMS["branin"](1).study
        ((number,),) = proposals(listed, kind, 1)
        assert row["at 1"] == pytest.approx(float(listed.regrets()[number]), abs=1e-5)


@pytest.mark.parametrize(("name", "dim"), [("branin", 2), ("rosenbrock", 4), ("hartmann", 6)])
def test_functions_differ_from_seed_to_seed(name, dim, small):
    first, second = (advice.PROBLEMS[name](seed).study for seed in range(2))
    assert first.points.shape == (60, dim)
    assert not torch.equal(first.values, second.values)
    assert bool(first.values.isfinite().all())


def test_the_optima_of_the_functions_are_where_they_are_known_to_be():
    at = torch.tensor([[0.54277, 0.15167], [0.12389, 0.81833]], dtype=torch.float64)
    torch.testing.assert_close(
        (-advice._branin(at)).exp(), torch.full((2,), 0.397887).double(), atol=2e-4, rtol=0
    )
    best = [[0.20169, 0.150011, 0.476874, 0.275332, 0.311652, 0.6573]]
    assert float(advice._hartmann(torch.tensor(best).double())) == pytest.approx(3.32237, abs=1e-4)
    assert float(advice._rosenbrock(torch.full((1, 4), 0.75).double())) == 0


def test_rows_are_stored_and_told(small, tmp_path, capsys):
    arguments = ["--results", str(tmp_path), "--processes", "1", "--seeds", "2"]
    advice.main([*arguments, "--problems", "branin", "--advice", "none", "good"])
    assert len(rows_of(advice.NAME, tmp_path)) == 4
    assert "good" in capsys.readouterr().out


def test_the_table_says_by_how_much_more_regret_there_is_than_without_advice():
    def row(kind, seed, regret):
        at = {f"at {k}": regret for k in AT}
        return {"problem": "p", "advice": kind, "seed": seed, **at, "seconds": 0.0}

    rows = [row("none", 0, 0.1), row("none", 1, 0.3), row("good", 0, 0.2), row("good", 1, 0.4)]
    line = next(line for line in text(rows).splitlines() if line.startswith("  good"))
    assert "0.100 (0.100 to 0.100)" in line
