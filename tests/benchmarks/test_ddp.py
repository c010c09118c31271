"""What the ranks of a run wrote is compared decision by decision."""

from benchmarks.distributed import benchmark
from benchmarks.distributed.ranks import play


def test_a_run_on_one_rank_is_compared_and_told():
    said = play(rounds=6, seed=0)
    other = {**said, "decisions": [*said["decisions"][:5], {}]}
    row = {"ranks": 2, "rounds": 6, "seed": 0, **benchmark.compared([said, other])}
    assert row["identical"] == 5
    assert row["queries"] == len(said["mean"])
    assert row["decision_ms"] >= row["tuner_ms"] > 0
    assert "5/6" in benchmark.text([row])
