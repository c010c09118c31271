"""Both rules among three arms: the curves, what is paid, and what is said of it."""

import pytest

from benchmarks.harness.record import read
from benchmarks.priced import arms
from botorch_costly import AlwaysQuery, ConfidenceQuery, PricedQuery


def test_the_curves_are_those_of_the_head():
    sine, bump, steps = arms.curves(400).T.tolist()
    assert (sine[0], sine[50], sine[150]) == pytest.approx((0.5, 0.8, 0.2))
    assert (bump[200], bump[160]) == pytest.approx((0.9, 0.2 + 0.7 * 0.60653066))
    assert [steps[t] for t in (0, 99, 100, 299, 300)] == [0.3, 0.3, 0.8, 0.45, 0.65]


@pytest.mark.slow
def test_who_always_queries_soon_knows_the_best_arm():
    full = arms.play(AlwaysQuery(), 200, seed=0)
    assert full["queries"] == 200
    rare = arms.play(PricedQuery(price=100.0), 200, seed=0)
    assert rare["queries"] == 1  # the first
    assert full["regret"] < 0.05 < rare["regret"]


def test_a_run_depends_on_its_seed_alone():
    one, same, other = (arms.play(ConfidenceQuery(0.9), 60, seed) for seed in (3, 3, 4))
    assert one == same
    assert one["regret"] != other["regret"]


def test_every_run_of_every_policy_is_stored_and_compared(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(arms, "KAPPAS", (0.9,))
    monkeypatch.setattr(arms, "PRICES", (0.3,))
    arms.main(["--trials", "2", "--horizon", "12", "--seed", "7", "--results", str(tmp_path)])
    lines = read("priced-arms", tmp_path)
    rows = [line["row"] for line in lines]
    assert lines[0]["seeds"] == [7, 8]
    expected = [(name, seed) for name in ("confidence @0.90", "priced 0.3") for seed in (7, 8)]
    assert [(row["policy"], row["seed"]) for row in rows] == expected
    queries = sum(row["queries"] for row in rows[:2]) / 2
    shown = capsys.readouterr().out
    (line,) = (x for x in shown.splitlines() if x.startswith("  confidence @0.90"))
    assert float(line.split()[-1]) == queries
    assert "price 0.3: " in shown
