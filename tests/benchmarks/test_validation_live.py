"""Policies of reading and stopping on recorded runs, and runs that readings leave alone."""

import random

import numpy as np
import pytest
import torch
from torch.optim.lr_scheduler import ReduceLROnPlateau

from benchmarks.__main__ import main
from benchmarks.harness.record import rows_of
from benchmarks.validation.live import benchmark
from benchmarks.validation.live.clock import trained
from benchmarks.validation.live.policies import checkpoints, replayed
from benchmarks.validation.live.programs import CHOICE, CONFIRMATION, PROGRAMS
from benchmarks.validation.live.record import Record, recorded
from benchmarks.validation.live.report import clock_text, text
from benchmarks.validation.live.run import Run
from benchmarks.validation.live.stops import patience, second_plateau, stops

POINTS, EXAMPLES = 80, 400


def record_of(curve):
    """Return a record whose examples differ from each other, and follow a curve of the points."""
    draws = torch.Generator().manual_seed(0)
    offsets = torch.rand(EXAMPLES, generator=draws)
    noise = 0.05 * torch.randn(POINTS, EXAMPLES, generator=draws)
    values = torch.tensor([curve(point) for point in range(POINTS)])
    return Record(values[:, None] + offsets + noise, values.tolist(), 1.0, 0.0, 1e-4, 4, "")


FALLING = record_of(lambda point: 2 / (1 + point) ** 0.5)
TURNING = record_of(lambda point: 1 + abs(point - 31) / 20)


def test_halves_are_of_other_kinds():
    assert len(CHOICE) == len(CONFIRMATION) == 5
    assert not {program.kind for program in CHOICE} & {program.kind for program in CONFIRMATION}


def test_patience_counts_epochs_without_an_improvement():
    values = [5.0, 4.0, 4.1, 3.9, 4.0, 4.0, 4.0]
    assert patience(values, 3, 0.0) == 6
    assert patience(values, 2, 0.0) == 5
    assert patience(values, 2, 0.2) == 3  # an improvement by .1 is none
    assert patience(values, 4, 0.0) is None


def test_the_second_plateau_is_that_of_pytorch():
    values = (1 + torch.rand(60, generator=torch.Generator().manual_seed(1))).tolist()
    weight = torch.zeros((), requires_grad=True)
    optimizer = torch.optim.SGD([weight], lr=1.0)
    plateau = ReduceLROnPlateau(optimizer, patience=4)
    rates = []
    for value in values:
        plateau.step(value)
        rates.append(optimizer.param_groups[0]["lr"])
    expected = next(epoch for epoch, rate in enumerate(rates) if rate < 0.05)
    assert second_plateau(values, 4, 0.0) == expected


def test_reading_rarely_pays_less_and_is_judged_by_the_whole_set():
    results = checkpoints(TURNING, 0)
    every, eighth = results["every epoch"], results["every 8 epochs"]
    assert every["same"]
    assert every["regret"] == 0.0
    assert every["examples"] == 1.0
    assert eighth["examples"] == 0.15
    ours = results["Validation 3 %"]
    assert ours["within"]
    assert ours["share"] <= 0.03
    late = results["every 16 epochs"]  # reads points 63 and 79, long after the turn
    assert not late["within"]
    assert late["regret"] > 0.5


def test_a_replay_counts_verdicts_and_stops_only_at_given_rates():
    replay = replayed(TURNING, 0, [0.05], overhead=0.1, min_delta=0.01)
    assert replay.verdicts.wrong == 0
    assert replay.verdicts.decided > 3
    assert set(replay.stops) <= {0.05}
    assert replayed(TURNING, 0, overhead=0.1).stops == {}


def test_stops_are_false_if_a_later_point_is_better():
    falling, turning = stops(FALLING, 0, 0.001), stops(TURNING, 0, 0.01)
    assert not falling["patience 28"]["false"]
    assert turning["patience 3"] == {
        "stopped": True, "false": False, "saved": 0.45, "saved_clock": 0.45,
    }  # fmt: skip
    bumpy = record_of(lambda point: 2 - point / 80 + 0.5 * (4 <= point < 40))
    assert stops(bumpy, 0, 0.01)["patience 1"]["false"]


def test_readings_leave_a_run_alone_and_draws_do_not():
    def digest(reads, draws=False):
        run = Run(PROGRAMS["ratings"], 3)
        for _ in range(6):
            run.step()
            if reads:
                run.losses([1, 2])
            if draws:
                torch.rand(())
        return run.digest()

    assert digest(False) == digest(True) != digest(False, draws=True)
    assert Run(PROGRAMS["ratings"], 4).digest() != Run(PROGRAMS["ratings"], 5).digest()


@pytest.mark.parametrize("draw", [random.random, np.random.rand])
def test_a_digest_shows_draws_from_all_global_generators(draw):
    run = Run(PROGRAMS["regression"], 0)
    before = run.digest()
    draw()
    assert run.digest() != before


def test_validation_in_the_loop_leaves_the_run_as_it_is(tmp_path):
    result = trained("ratings", 0, epochs=1)
    assert result["digest"] == recorded("ratings", 0, tmp_path, epochs=1).digest
    assert result["examples"] > 0


def test_smoke(tmp_path, capsys):
    options = ["--smoke", "--programs", "ratings", "--seeds", "1", "--processes", "1"]
    main([benchmark.NAME, *options, "--results", str(tmp_path)])
    main([benchmark.NAME, "--live", *options, "--results", str(tmp_path)])
    assert "checkpoint within noise" in capsys.readouterr().out
    (row,) = rows_of(f"{benchmark.NAME}-smoke", tmp_path)
    assert row["points"] == 12
    (clock,) = rows_of(f"{benchmark.LIVE}-smoke", tmp_path)
    assert clock["identical"]


def row_of(**changes):
    """Return a stored row; changes are those of our stop."""
    row = {
        "program": "made up", "seed": 0, "half": "choice", "points": POINTS, "train_s": 1.0,
        "policies": checkpoints(TURNING, 0), "stops": stops(TURNING, 0, 0.01),
    }  # fmt: skip
    row["stops"]["Validation 3 %, false stop 0.02"] |= changes
    return row


def test_planted_misses_are_named():
    assert "holds   false stops" in text([row_of()])
    assert "MISSED  false stops" in text([row_of(false=True)])
    assert "MISSED  saved by stops" in text([row_of(saved=0.0)])


def test_the_clock_of_decisions_counts():
    row = {
        "program": "made up", "seed": 0, "half": "choice", "seconds": 2.0, "reading": 0.02,
        "deciding": 0.02, "median_ms": 0.1, "mean_ms": 0.3, "examples": 9, "identical": True,
    }  # fmt: skip
    line = clock_text([row]).splitlines()[1].split()
    assert line[2:] == [
        "1",
        "2.00",
        "2.00",
        "2.00",
        "4.00",
        "4.00",
        "0.00",
        "0.10",
        "0.30",
        "100.00",
    ]
