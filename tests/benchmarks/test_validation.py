"""Recorded trainings, played again with fewer readings."""

import math

import numpy as np
import pytest

from benchmarks.harness.record import rows_of
from benchmarks.validation import benchmark
from benchmarks.validation.benchmark import BEST_INTERVAL, NAME, Task, measure, text
from benchmarks.validation.policies import ABLATIONS, OURS, POLICIES, SHARE, WITHOUT_TARGET
from benchmarks.validation.problem import LENGTH, Log, score
from benchmarks.validation.stopping import LIMITS, by_belief, chances, patience, stops_of


def falling(n=48, target=0.3, exponent=-0.5, workload="falling"):
    """A curve that falls as a power of time; a reading lasts half as long as training between two."""
    at = np.arange(1.0, n + 1)
    values = at**exponent
    return Log(workload, target, values, values + 0.1, 2.0 * at, np.ones(n))


def flat(n=60):
    """A curve that has fallen by its fifth reading, and stays."""
    values = np.maximum(1.0 - 0.2 * np.arange(n), 0.2) + 1e-3 * np.sin(np.arange(n))
    return Log("flat", 0.0, values, values, 2.0 * np.arange(1.0, n + 1), np.ones(n))


def test_a_log_goes_on_beyond_its_end_at_its_interval_and_with_its_last_values():
    log = falling(n=20, target=0.2)
    assert log.seconds(19) == 40
    assert log.seconds(25) == 52
    assert log.value(25) == log.value(19)
    assert log.price([0, 30]) == 2
    assert log.limit("open") == 20  # which does not reach its target
    assert falling(target=0.2, n=30).limit("open") == LENGTH * 30


def test_scores_of_readings_that_are_known():
    log = falling(n=48, target=0.3)
    assert log.crossing == 11
    planned = score(log, [15], "planned")  # and the last one
    assert planned.missed == 0
    assert planned.share == 2 / 48
    assert planned.late == (32 - 24) / 96
    assert planned.clock == (32 + 1) / (24 + 12)
    assert planned.oracle == 25 / 36
    opened = score(log, [15, 20], "open")  # the run ends when the target is seen
    assert opened.share == 1 / 16
    assert opened.missed == pytest.approx((16**-0.5 - 48**-0.5) / (1 - 48**-0.5))


def test_a_target_that_is_never_seen_costs_the_whole_of_an_open_log():
    log = falling(n=48, target=0.3)
    log.values[-1] = 1.0
    late = score(log, [47], "planned").late
    assert late == 1.0
    assert score(log, [0], "open").late > 2
    assert math.isnan(score(falling(target=0.0), [3], "planned").late)


@pytest.mark.parametrize("name", [*POLICIES, *ABLATIONS])
@pytest.mark.parametrize("protocol", ["planned", "open"])
def test_policies_read_candidates_in_their_order(name, protocol):
    log = falling(n=40)
    readings = {**POLICIES, **ABLATIONS}[name](log, protocol)
    assert readings == sorted(set(readings))
    assert all(0 <= candidate < log.limit(protocol) for candidate in readings)


@pytest.mark.parametrize("name", [OURS, WITHOUT_TARGET])
def test_our_readings_stay_within_the_share_and_see_the_planned_end(name):
    for n in (24, 48, 100):
        log = falling(n=n, target=0.0)
        readings = POLICIES[name](log, "planned")
        assert readings[-1] == n - 1
        assert len(readings) <= SHARE * n + 1


def test_our_readings_end_with_the_target_of_an_open_log():
    log = falling(n=100, target=0.15)
    readings = POLICIES[OURS](log, "open")
    assert log.value(readings[-1]) <= log.target < log.value(readings[-2])
    assert readings[-1] - log.crossing <= 2 / SHARE


def test_a_target_that_comes_near_is_read_sooner_than_by_regular_readings():
    late = {OURS: 0, WITHOUT_TARGET: 0}
    for target in (0.14, 0.15, 0.16, 0.17, 0.18):
        log = falling(n=100, target=target)
        for name in late:
            late[name] += POLICIES[name](log, "open")[-1] - log.crossing
    assert late[OURS] < late[WITHOUT_TARGET]


def test_ablations_change_a_constant_for_a_log_only():
    from botorch_costly.validation import timing

    stock, log = timing._STOCK, falling(n=60, target=0.0)
    before = POLICIES[WITHOUT_TARGET](log, "planned")
    ABLATIONS["no stock"](log, "planned")
    assert stock == timing._STOCK
    assert POLICIES[WITHOUT_TARGET](log, "planned") == before


def test_patience_stops_after_so_many_readings_and_a_later_improvement_makes_it_false():
    log = flat()
    stop = patience(log, range(60), 5)
    assert stop is not None
    assert not stop.is_false
    assert stop.saved == pytest.approx(1 - 10 / 60)  # the fifth reading after the last improvement
    log.values[50] = 0.0
    assert patience(log, range(60), 5).is_false
    assert patience(log, range(60), 80) is None


def test_a_larger_limit_stops_no_later_and_a_falling_curve_goes_on():
    at = np.arange(80)
    values = 0.2 + np.exp(-at / 8) + 0.006 * np.maximum(at - 30, 0)  # it overfits
    log = Log("overfitting", 0.0, values, values, 2.0 * (at + 1), np.ones(80))
    stops = by_belief(log, range(80), LIMITS)
    saved = [stop.saved for stop in stops]
    assert saved == sorted(saved)
    assert saved[0] > 0.2
    assert not any(stop.is_false for stop in stops)
    line = Log("line", 0.0, 1 - 0.01 * at, np.zeros(80), 1.0 + at, np.ones(80))
    assert by_belief(line, range(80), [0.02]) == [None]
    assert all(chance > 0.02 for _, chance, _, _ in chances(line, range(80)))


def test_rows_hold_both_kinds_and_are_told_in_words():
    logs = [falling(), falling(n=60, target=0.0, workload="other"), flat()]
    rows = []
    for policy in ("every 8", OURS, BEST_INTERVAL):
        rows += measure(Task("readings", "choosing", "open", policy, 1), lambda names: logs)
    rows += measure(Task("stopping", "choosing", "planned", "every 4", 1), lambda names: logs)
    assert [row["runs"] for row in rows] == [3] * len(rows)
    assert {row["reached"] for row in rows if row["kind"] == "readings"} == {1}
    told = text(rows)
    assert "choosing, open: 3 runs, of which 1 reach the target" in told
    assert "false_stop 0.02" in told
    assert len(stops_of(logs[0], "every 4")) == len(rows) - 3


def test_without_the_logs_the_benchmark_says_so_and_stores_nothing(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("BOTORCH_COSTLY_DATA", str(tmp_path))
    benchmark.logs_of.cache_clear()
    benchmark.main(["--results", str(tmp_path / "results")])
    assert "algoperf_logs.npz" in capsys.readouterr().out
    assert not (tmp_path / "results").exists()


def test_logs_in_a_file_are_played_and_stored(monkeypatch, tmp_path, capsys):
    sizes = np.array([20, 18, 4])
    ends = np.cumsum(sizes)
    values = np.concatenate([0.2 + np.arange(1.0, n + 1) ** -0.5 for n in sizes])
    np.savez(
        tmp_path / "algoperf_logs.npz",
        offsets=np.concatenate([[0], ends]),
        workload=np.array(["criteo1tb", "fastmri", "criteo1tb"]),
        metric=np.array(["loss", "ssim", "loss"]),
        target_workload=np.array(["criteo1tb", "fastmri"]),
        target_value=np.array([0.5, 1.0]),
        train_seconds=np.concatenate([10.0 * np.arange(1, n + 1) for n in sizes]),
        eval_seconds=np.concatenate([np.arange(1.0, n + 1) for n in sizes]),
        train_loss=values,
        validation_metric=values,
    )
    monkeypatch.setenv("BOTORCH_COSTLY_DATA", str(tmp_path))
    benchmark.logs_of.cache_clear()
    arguments = ["--results", str(tmp_path / "results"), "--processes", "1", "--kinds", "readings"]
    benchmark.main([*arguments, "--policies", "every 8", "last"])
    benchmark.main([*arguments, "--policies", "every 8"])
    benchmark.logs_of.cache_clear()
    rows = rows_of(NAME, tmp_path / "results")
    assert {row["runs"] for row in rows} == {1}  # the third log is too short
    assert len({tuple(row[name] for name in Task._fields) for row in rows}) == len(rows)
    assert "every 8" in capsys.readouterr().out
