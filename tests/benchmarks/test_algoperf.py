"""Times to a target on several workloads, played with the others as earlier studies."""

import json
import math

import numpy as np
import pytest
import torch

from benchmarks.harness.record import rows_of
from benchmarks.meta import algoperf, time_to_target
from benchmarks.meta.algoperf import Run, earlier_bests, measure, text
from benchmarks.meta.rivals import Setting
from botorch_costly.models import TaskEnsemble

WORKLOADS = ("images", "pictures", "speech")
ALGORITHMS, TRIALS, STUDIES = ("adam", "sgd"), ("trial_1", "trial_2", "trial_3"), 2


def table_of(cells):
    """The arrays of a file: each cell is (workload, algorithm, trial, seconds to the target or None)."""
    readings = 6
    rows = [cell for cell in cells for _ in range(STUDIES)]
    at = [100.0 if seconds is None else seconds for *_, seconds in rows]
    curves = [[0.0] * (readings - 1) + [0.0 if seconds is None else 0.9] for *_, seconds in rows]
    return {
        "offsets": readings * np.arange(len(rows) + 1),
        "workload": np.array([row[0] for row in rows]),
        "metric": np.array(["accuracy"] * len(rows)),
        "version": np.array(["v05"] * len(rows)),
        "ruleset": np.array(["external_tuning"] * len(rows)),
        "submission": np.array([row[1] for row in rows]),
        "trial": np.array([row[2] for row in rows]),
        "hyperparameters": np.array(
            [
                json.dumps({"learning_rate": 0.1 ** int(row[2][-1]), "warmup_factor": 0.05})
                if row[1] == "adam"
                else json.dumps({"learning_rate": 1.0, "beta1": 0.9})
                for row in rows
            ]
        ),
        "target_workload": np.array(WORKLOADS),
        "target_value": np.array([0.8] * len(WORKLOADS)),
        "train_seconds": np.concatenate([np.linspace(end / readings, end, readings) for end in at]),
        "validation_metric": np.concatenate(curves),
    }


@pytest.fixture
def data(monkeypatch, tmp_path):
    grid = [(algorithm, trial) for algorithm in ALGORITHMS for trial in TRIALS]
    best = {"images": 1, "pictures": 1, "speech": 4}
    cells = [
        (w, *grid[k], None if k == 5 else 10.0 + 8 * abs(k - best[w]))
        for w in WORKLOADS
        for k in range(len(grid))
    ]
    np.savez(tmp_path / "algoperf_logs.npz", **table_of(cells))
    monkeypatch.setenv("BOTORCH_COSTLY_DATA", str(tmp_path))
    monkeypatch.setattr(time_to_target, "_FEWEST", 3)
    time_to_target.times.cache_clear()
    yield tmp_path
    time_to_target.times.cache_clear()


def test_values_are_logarithms_of_seconds_and_twice_the_budget_where_the_target_is_never_reached(
    data,
):
    logs = time_to_target.times().logs["images"]
    assert len(logs) == 6
    adam, never = ("adam", "trial_2"), ("sgd", "trial_3")
    np.testing.assert_allclose(logs[adam], [math.log(10.0)] * STUDIES)
    np.testing.assert_allclose(logs[never], [math.log(2 * 100.0)] * STUDIES)


@pytest.mark.parametrize("encoding", time_to_target.ENCODINGS)
def test_settings_are_distinct_points_of_the_unit_cube_wherever_their_numbers_differ(
    data, encoding
):
    family = time_to_target.family(encoding, 0)
    assert family.names == WORKLOADS
    assert family.targets == (0, 1, 2)
    points = family.whole[0].points
    assert bool(((points >= 0) & (points <= 1)).all())
    expected = 6 if encoding == "names" else 4  # the settings of sgd differ in no number
    assert len(points.unique(dim=0)) == expected


def test_the_portfolio_takes_the_settings_with_the_least_mean_ratio():
    points = torch.eye(4, dtype=torch.float64)
    logs = torch.tensor([[0.0, 1.0, 2.0, 3.0], [3.0, 1.0, 0.0, 2.0]], dtype=torch.float64)
    # Both tasks did not train the second setting of the list: it counts as their worst.
    kept = [0, 2, 3]
    tasks = TaskEnsemble([points[kept]] * 2, list(-logs[:, kept]))
    setting = Setting(tasks, points, torch.arange(4), torch.Generator().manual_seed(0))
    order = earlier_bests(setting)(None).argsort(descending=True).tolist()
    mean = logs[:, kept].exp().mean(0)
    first = kept[int(mean.argmin())]
    assert order[0] == first == 2
    assert order[1] == 0  # the best of the task on which the first one is bad


def test_earlier_bests_play_what_the_other_workloads_did_best(data):
    row = measure(Run("names", "earlier bests", 0))
    assert row["at 1"] > [1.0, 1.0, 1.0]  # a compromise of two others, none of which is the target
    assert row["at 3"][:2] == [1.0, 1.0]  # images and pictures agree
    assert row["at 3"][2] > 1
    assert max(row["at 10"]) == 1.0  # all of them


def test_rows_are_stored_and_told(data, capsys):
    results = data / "results"
    arguments = ["--results", str(results), "--processes", "1", "--seeds", "1"]
    methods = ["--methods", "random", "GP-UCB", "TransferOptimizer"]
    algoperf.main([*arguments, "--encodings", "names", *methods])
    rows = rows_of(algoperf.NAME, results)
    assert {row["method"] for row in rows} == {"random", "GP-UCB", "TransferOptimizer"}
    for row in rows:
        least = [row[f"at {k}"] for k in algoperf.AT]
        assert all(min(column) >= 1 for column in least)
        assert all(a >= b for a, b in zip(least[0], least[1], strict=True))
    told = capsys.readouterr().out
    assert "rank correlation of workloads" in told
    assert "configurations by names" in told


def test_workloads_that_need_more_time_than_without_studies_count_as_harmed():
    def row(method, values):
        at = {f"at {k}": values for k in algoperf.AT}
        return {"encoding": "names", "method": method, "seed": 0, **at, "seconds": 0.0}

    rows = [row("GP-UCB", [1.0, 2.0]), row("TransferOptimizer", [1.04, 2.2])]
    line = next(one for one in text(rows).splitlines() if one.startswith("  TransferOptimizer"))
    assert line.split()[-2:] == ["1", "0.10"]
