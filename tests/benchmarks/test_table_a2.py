"""The rows of Table A2, what pairing promises, and that work in parts is the whole."""

import pytest
import torch

from benchmarks.harness.record import read, rows_of
from benchmarks.tables import table_a2
from benchmarks.tables.paper import TABLE_A2
from benchmarks.tables.table_a2 import policies, restart_period, restarting
from benchmarks.tables.world import World
from botorch_costly.query import BernoulliQuery, ConfidenceQuery
from botorch_costly.simulation import GridPolicy


def test_the_far_rival_pays():
    world = World.draw(0.05, trials=12, horizon=200, points=60)
    rule = ConfidenceQuery(0.9)
    literal = world.play(GridPolicy("", rule, lone_rival=False))
    repaired = world.play(GridPolicy("", rule))
    assert literal.regret.mean() > repaired.regret.mean() + 0.05
    silent = ~literal.query[:, 100:].any(-1)
    assert silent.any()
    assert repaired.query[:, 100:].any(-1).all()


def test_a_belief_that_stands_still_never_asks_again():
    world = World.draw(0.05, trials=6, horizon=150, points=60)
    still = world.play(GridPolicy("", ConfidenceQuery(0.8), ages=False))
    assert still.query[:, 75:].double().mean() < 0.05


def test_every_policy_meets_the_same_world():
    one, two = (World.draw(0.05, trials=2, horizon=20, points=30, seed=3) for _ in range(2))
    assert one.paths.equal(two.paths)
    assert one.noise.equal(two.noise)
    rare, often = (one.play(GridPolicy("", BernoulliQuery(p))).query for p in (0.3, 0.7))
    assert not (rare & ~often).any()  # the same coins
    other = World.draw(0.05, trials=2, horizon=20, points=30, seed=4)
    assert not one.paths.equal(other.paths)


def test_the_table_has_the_rows_of_the_paper():
    names = [policy.name for policy in policies(0.01, 500)]
    assert [name for name in names if "as printed" not in name] == list(TABLE_A2)
    assert len(set(names)) == len(names)


def test_r_gp_ucb_forgets_by_restarting():
    assert restart_period(0.05, 500) == 88
    assert restart_period(0.003, 500) == 500
    assert restarting(0.05, 500).forgetting == 0.0
    assert restarting(0.05, 500, 0.3).rule == BernoulliQuery(0.3)


def test_parts_of_the_trials_make_the_table(tmp_path, monkeypatch, capsys):
    size = ["--trials", "5", "--horizon", "12", "--points", "20", "--forgetting", "0.05"]
    options = [*size, "--match", "CE-GP-UCB", "--published", "--processes", "1"]
    table_a2.main([*options, "--results", str(tmp_path / "whole")])
    monkeypatch.setattr(table_a2, "AT_ONCE", 2)
    table_a2.main([*options, "--results", str(tmp_path / "parts")])
    whole, parts = (
        [line["row"] for line in read("table-a2", tmp_path / name)] for name in ("whole", "parts")
    )
    assert [row["policy"] for row in whole] == [name for name in TABLE_A2 if "CE" in name]
    for one, other in zip(whole, parts, strict=True):
        for field in ("policy", "trials", "horizon", "points", "processes"):
            assert one[field] == other[field]
        for field in ("regret", "regret_std", "queries", "queries_std"):
            assert one[field] == pytest.approx(other[field], abs=1e-9)
    assert len({row["wall_seconds"] for row in whole}) == 1
    assert "9 cells" in capsys.readouterr().out


def test_the_global_generator_is_left_alone():
    before = torch.random.get_rng_state()
    World.draw(0.05, trials=2, horizon=5, points=10).play(GridPolicy("", BernoulliQuery(0.5)))
    assert torch.random.get_rng_state().equal(before)


def test_a_part_of_the_table_leaves_its_other_cells(tmp_path, capsys):
    size = ["--trials", "2", "--horizon", "6", "--points", "20", "--processes", "1"]
    where = ["--results", str(tmp_path)]

    def cells():
        return {(row["forgetting"], row["policy"]) for row in rows_of("table-a2", tmp_path)}

    table_a2.main([*size, *where, "--forgetting", "0.05", "0.01", "--match", "UCB @0.9"])
    whole = cells()
    assert len(whole) == 2 * 3
    table_a2.main([*size, *where, "--forgetting", "0.05", "--match", "UCB @0.90"])
    assert cells() == whole
    table_a2.main([*size, *where, "--forgetting", "0.05", "--match", "UCB @0.90", "--trials", "3"])
    assert cells() == {(0.05, "CE-GP-UCB @0.90")}  # those of another size make no table with it
