"""Time of ``TransferOptimizer``: what is replayed is what was chosen, and DIRECT plays by its rules."""

import math

import pytest
import torch

from benchmarks.harness.record import rows_of
from benchmarks.speed import transfer
from benchmarks.speed.transfer import RULES, SPACE, Cell
from botorch_costly import TransferOptimizer
from botorch_costly.ask_tell import Domain
from botorch_costly.optim.smooth import by_autograd
from botorch_costly.tuners.transfer.belief import TargetData
from botorch_costly.tuners.transfer.choice import TransferStrategy
from botorch_costly.tuners.transfer.weighting import Acquisition
from tests.cases import quick

TINY = Cell("3x8", "RM-GP-UCB", 0)
HERE = torch.tensor([0.5, 0.5, 0.5], dtype=torch.float64)


def hill(X):
    """The largest value is 1, at (.3, .3, .3)."""
    return 1 - (X - 0.3).square().sum(-1)


def acquisition(lacking=None):
    return Acquisition(hill, lambda columns: by_autograd(hill), lambda: HERE, hill, "", lacking)


def chosen(told, point=HERE):
    return transfer.Chosen({}, TargetData(told, hill(told)), point)


def test_every_third_task_says_the_opposite():
    points = torch.rand(5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    signs = []
    for task in transfer.earlier_tasks(Cell("6x40", "RM-GP-UCB", 0)):
        encoded = task.in_space(SPACE)
        target = transfer.value_at(encoded.points)
        signs.append(float(torch.corrcoef(torch.stack([target, encoded.values]))[0, 1]) > 0)
    assert signs == [True, True, False] * 2
    assert transfer.value_at(points).shape == (5,)


@pytest.mark.parametrize("rule", quick(RULES, "evidence", "RM-GP-TS"))
def test_the_acquisition_function_that_is_looked_at_is_the_one_that_chose(rule):
    optimizer = TransferOptimizer(SPACE, transfer.earlier_tasks(TINY), robust=RULES[rule], seed=3)
    played = transfer._played(optimizer, optimizer.ask(), 4)
    generator = torch.Generator()
    again = TransferStrategy(Domain(SPACE), optimizer.tasks, RULES[rule], generator)
    for one in played.chosen:
        again.load_state_dict(one.state)
        belief = again.weighting.learn(one.told)
        point, _ = again.choose(belief, torch.zeros(0, 3, dtype=torch.float64))
        torch.testing.assert_close(SPACE.round(point), one.point)


def test_direct_finds_the_top_of_a_hill():
    told = torch.zeros(1, 3, dtype=torch.float64)
    assert transfer.best_by_direct(acquisition(), chosen(told), -1.0, 2_000) == pytest.approx(1.0)


def test_direct_is_kept_from_what_is_not_asked_for():
    def lacking(X):
        return 0.4 - X[:, 0]

    told = torch.zeros(1, 3, dtype=torch.float64)
    best = transfer.best_by_direct(acquisition(lacking), chosen(told), -1.0, 2_000)
    assert 0.95 < best <= 0.99  # where x is .4, at most
    # A choice that is ruled out itself was made where all is, and those that lack no more count.
    point = torch.tensor([0.35, 0.5, 0.5], dtype=torch.float64)
    best = transfer.best_by_direct(acquisition(lacking), chosen(told, point), -1.0, 2_000)
    assert 0.99 < best <= 0.9976


def test_what_is_beside_a_value_is_not_asked_for_by_direct():
    def peak(X):  # where DIRECT begins
        return 1 - (X - HERE).abs().amax(-1)

    there = Acquisition(peak, lambda columns: by_autograd(peak), lambda: HERE, peak, "")
    free = chosen(torch.zeros(1, 3, dtype=torch.float64))
    assert transfer.best_by_direct(there, free, -1.0, 20) == 1.0
    assert transfer.best_by_direct(there, chosen(HERE.unsqueeze(0)), -1.0, 20) < 0.999


def test_a_choice_that_is_worse_is_said_to_be(capsys):
    row = {"size": "3x50", "seed": 0, "prepared": 1.0, "megabytes": 3, "direct_seconds": [1.0, 1.0]}
    rows = [
        {**row, "rule": "RM-GP-UCB", "clock": [0.03], "processor": [0.03], "lost": [0.0, 1e-7]},
        {**row, "rule": "RM-GP-TS", "clock": [0.01], "processor": [0.01], "lost": [-0.1, 0.2]},
    ]
    text = transfer.text(rows)
    assert "2 of 2" in text
    assert "1 of 2   2.0e-01" in text
    assert "less than 20 ms at 3x50: RM-GP-UCB missed, RM-GP-TS met" in text
    assert "no choice worse than DIRECT's: missed" in text
    assert "(Figure 2b): at 3x50" in text
    assert "no choice worse than DIRECT's: met" in transfer.text(rows[:1])


@pytest.mark.slow
def test_rows_are_measured_where_they_are_missing(tmp_path, capsys):
    few = [
        "--sizes",
        "2x6",
        "--rules",
        "evidence",
        "--evaluations",
        "2",
        "--results",
        str(tmp_path),
    ]
    transfer.main([*few, "--compared", "1", "--budget", "50"])
    (row,) = rows_of(transfer.NAME, tmp_path)
    assert len(row["clock"]) == len(row["processor"]) == 2
    assert len(row["lost"]) == len(row["direct_seconds"]) == 1
    assert row["megabytes"] >= 0
    assert all(math.isfinite(one) for one in row["lost"])
    first = capsys.readouterr().out
    assert "2x6" in first
    transfer.main(few)
    assert rows_of(transfer.NAME, tmp_path) == [row]


def test_a_long_run_begins_with_evaluations_that_are_not_timed():
    cell = Cell("2x5+1x8@30", "RM-GP-UCB", 0)
    assert (cell.sizes, cell.before) == ([5, 5, 8], 30)
    row = transfer.measure(cell, evaluations=2, compared=0, budget=10)
    assert len(row["clock"]) == 2
