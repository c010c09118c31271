"""Timing of decisions: both ways decide the same, parts add up, and what is counted is what was asked."""

import json
from functools import cache

import pytest
import torch

from benchmarks.harness.record import read
from benchmarks.speed import batch, decision, profile_decision, speed, threads, waiting
from benchmarks.speed.problems import RATIOS, botorch_model, draw, streaming
from benchmarks.speed.profile_decision import PARTS, WHOLE, Counter, Watch, decide_by_parts
from tests.counting import least_successes

TINY = ["--observations", "12", "--dim", "2", "--repeats", "1", "--problems", "2"]
TINY += ["--rounds", "3", "--batches", "1", "2", "--grid-dims", "1"]
TINY += ["--grid-observations", "8", "16", "--largest-for-botorch", "8"]


def case(n=20, dim=2, seed=3):
    return decision.Case(draw(n, dim, seed), seed)


def run(directory, *parts):
    speed.main([*TINY, "--results", str(directory), "--parts", *parts])
    return [line["row"] for line in read("speed", directory)]


def test_both_models_hold_one_belief():
    problem = draw(30, 2, seed=1)
    assert problem.lengthscale in [ratio * 2**0.5 for ratio in RATIOS]
    belief, model = streaming(problem), botorch_model(problem)
    X = torch.rand(6, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    X[:, -1] = 30.0
    mean, variance = belief.mean_and_variance(X)
    with torch.no_grad():
        posterior = model.posterior(X)
    torch.testing.assert_close(mean, posterior.mean.squeeze(-1))
    torch.testing.assert_close(variance, posterior.variance.squeeze(-1))


def test_no_query_is_dropped_however_old():
    problem = draw(30, 2, seed=1)
    problem.inputs[0, -1] = -10_000.0
    belief = streaming(problem)
    belief.observe(problem.inputs[-1], 0.0)
    assert belief.num_rows == 31


@cache
def pair_of(seed):
    """Both ways on a problem."""
    return decision.turn(case(n=40, seed=seed))


@pytest.mark.slow
def test_nearly_all_decisions_find_as_many_optima():
    pairs = list(map(pair_of, range(10)))
    as_many = sum(len(pair.ours.optima) >= pair.settled for pair in pairs)
    assert as_many >= least_successes(len(pairs), 0.95)  # 95.5 % of 200 problems


@pytest.mark.parametrize("seed", range(4))
def test_both_ways_decide_the_same(seed):
    pair = pair_of(seed)
    assert pair.ahead >= -decision.AS_GOOD
    if len(pair.ours.optima) == len(pair.botorchs.optima):  # another rival changes the verdict
        assert pair.ours.query == pair.botorchs.query
        assert pair.ours.confidence == pytest.approx(pair.botorchs.confidence, abs=1e-5)
    torch.testing.assert_close(pair.ours.plays, pair.botorchs.plays, atol=1e-3, rtol=0)


def test_every_decision_begins_from_the_same_state():
    again = case()
    first, second = again.ours()(), again.ours()()
    assert torch.equal(first.plays, second.plays)
    assert torch.equal(first.optima, second.optima)
    assert first[2:] == second[2:]
    assert again.belief.num_rows == 21


def test_an_end_on_a_slope_is_no_optimum():
    found = case(n=40)
    optima = found.ours()().optima
    aside = (optima + 0.05).where(optima < 0.5, optima - 0.05)
    assert found.settled(torch.cat([optima, aside])) == len(optima)


def test_the_best_end_stands_for_its_cluster():
    ends = torch.tensor([[0.1], [0.12], [0.9]], dtype=torch.float64)
    optima = decision._best_of_each(ends, torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64))
    assert optima.points.flatten().tolist() == [0.9, 0.12]


def test_a_decision_made_part_by_part_is_the_decision():
    whole, watch = case(), Watch("cpu")
    expected = whole.ours()()
    found = decide_by_parts(whole, watch)
    assert torch.equal(found.plays, expected.plays)
    assert torch.equal(found.optima, expected.optima)
    assert (found.query, found.confidence) == (expected.query, expected.confidence)
    assert set(watch.spent) == set(PARTS)
    assert all(watch.spent[part] > 0 for part in PARTS if part != profile_decision.RIVAL)


def test_after_a_profile_the_package_is_as_it_was():
    before = [getattr(owner, name) for owner, name, _ in profile_decision.HOOKS]
    with profile_decision.watching(Watch("cpu")):
        during = [getattr(owner, name) for owner, name, _ in profile_decision.HOOKS]
    assert not set(during) & set(before)
    assert [getattr(owner, name) for owner, name, _ in profile_decision.HOOKS] == before


def test_the_profile_adds_up():
    rows = profile_decision.profile(20, 2, repeats=1, seed=0, device="cpu")
    *parts, whole = rows
    assert [row["step"] for row in rows] == [*PARTS, WHOLE]
    assert sum(row["share"] for row in parts) == pytest.approx(1.0)
    for column in ("operations", "flops", "bytes", "waits", "floor_ms"):
        assert whole[column] == pytest.approx(sum(row[column] for row in parts))
    assert min(row["operations"] for row in parts if row["step"] != "far rival") > 0


def test_counts_are_those_of_the_formulas():
    a, b = torch.rand(3, 4, 5, dtype=torch.float64), torch.rand(3, 5, 6, dtype=torch.float64)
    square = torch.eye(4, dtype=torch.float64)
    with Counter() as counter:
        with torch.inference_mode():
            product = a @ b
        (product + 1).mT.unsqueeze(0)  # views are free
        torch.linalg.cholesky_ex(square)
        bool(product.sum() > 0)
    (tally,) = counter.tallies.values()
    product, shifted, factor, total, compared = 2 * 5 * 72, 72, 4**3 / 3, 72, 1
    assert tally.flops[torch.float64] == product + shifted + factor + total + compared
    assert tally.waits == 1
    assert tally.bytes >= 8 * (60 + 90 + 72)


def test_a_batch_of_decisions_is_that_of_each():
    beliefs, starts = batch.batch_of(3, 30, 2, seed=0, device="cpu"), batch.starts_of(2, 0, "cpu")
    together = batch.decide(beliefs, starts)
    for i in range(3):
        alone = batch.decide(batch.one_of(beliefs, i), starts)
        number = alone.optima.values.shape[-1]
        for ours, theirs in zip(together.optima, alone.optima, strict=True):
            torch.testing.assert_close(ours[i, :number], theirs[0], atol=1e-6, rtol=0)
        assert together.verdict.query[i] == alone.verdict.query[0]


def test_a_batch_decides_as_the_streaming_belief_does():
    problem = draw(30, 2, seed=0, ratio=batch.RATIO)
    choice = batch.decide(batch.batch_of(1, 30, 2, 0, "cpu"), batch.starts_of(2, 0, "cpu"))
    mean, variance = streaming(problem).in_round(choice.optima.points[0], 30.0)
    torch.testing.assert_close(mean + variance.sqrt(), choice.optima.values[0])


def test_no_two_beliefs_of_a_batch_are_the_same():
    whitened = batch.batch_of(200, 6, 1, seed=0, device="cpu").factor.whitened.flatten(1)
    apart = torch.cdist(whitened, whitened) + torch.eye(200)
    assert apart.min() > 1e-3


def test_waiting_rounds_learn_nothing_and_are_ranked():
    row = waiting.waiting(12, 2, rounds=5, seed=0, device="cpu")
    assert 0 < row["median_ms"] <= row["ms_90"] <= row["ms_99"] <= row["most_ms"]
    assert row["small_operation_us"] > 0
    assert waiting.fed_tuner(12, 2, 0, "cpu").queries == 12


@pytest.mark.slow
def test_a_part_replaces_its_own_rows_only(tmp_path, capsys):
    rows = run(tmp_path, "decision", "grid", "batch", "waiting", "profile")
    parts = [row["part"] for row in rows]
    assert set(parts) == {"decision", "grid", "batch", "waiting", "profile"}
    assert all(row["device"] == "cpu" for row in rows)
    quality = rows[0]
    assert quality["as_good"] == 1
    assert 0 <= quality["same_verdict"] <= 1
    assert [row["botorch_ms"] is None for row in rows if row["part"] == "grid"] == [False, True]
    assert (tmp_path / "speed.png").stat().st_size > 10_000
    again = run(tmp_path, "waiting")
    assert sorted(map(json.dumps, again)) != sorted(map(json.dumps, rows))
    rest = [row for row in rows if row["part"] != "waiting"]
    assert again[:-1] == rest
    assert "waiting round after 12 queries" in capsys.readouterr().out


def test_asks_are_timed_with_one_thread_and_with_two(tmp_path, capsys):
    before = torch.get_num_threads()
    size = ["--asked", "TransferOptimizer", "PopulationTuner", "--asked-observations", "8"]
    speed.main([*TINY, *size, "--results", str(tmp_path), "--parts", "threads"])
    rows = [line["row"] for line in read("speed", tmp_path)]
    assert [row["of"] for row in rows] == ["TransferOptimizer", "PopulationTuner"]
    assert all(row[f"ms_{count}"] > 0 for row in rows for count in (1, 2))
    assert torch.get_num_threads() == before
    assert "an ask of TransferOptimizer after    8 observations" in capsys.readouterr().out


@pytest.mark.parametrize("name", list(threads.OPTIMIZERS))
def test_optimizers_are_told_as_many_observations(name):
    optimizer = threads.OPTIMIZERS[name](8, 0)
    told = optimizer.observations
    if name == "CurveOptimizer":
        assert sum(len(outcome.curve) for outcome in told) == 8
    elif name == "PopulationTuner":
        assert sum(len(outcome.metrics) for outcome in told) == 8
    else:
        assert len(told) == 8


def test_a_refit_is_timed_where_it_can_be(monkeypatch):
    monkeypatch.setattr(speed, "find_spec", lambda name: None)
    assert speed.possible(["decision", "refit"]) == ["decision"]
    monkeypatch.setattr(speed, "find_spec", lambda name: object())
    assert speed.possible(["decision", "refit"]) == ["decision", "refit"]


def test_a_curve_leaves_out_what_was_not_timed():
    rows = [
        {"dim": 1, "observations": 20, "botorch_ms": None},
        {"dim": 1, "observations": 10, "botorch_ms": 3.0},
        {"dim": 2, "observations": 10, "botorch_ms": 4.0},
    ]
    assert speed.curve(rows, 1, "botorch_ms") == ([10], [3.0])
