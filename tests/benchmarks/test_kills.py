"""A run that is killed at random moments continues as if it had not been."""

import subprocess
import sys

import pytest
import torch

import botorch_costly as bc
from benchmarks.endurance import kills
from benchmarks.endurance.kills import FILE, Training
from benchmarks.harness.record import rows_of


def killed(folder, *options):
    """Rows of kills, in a process of their own: one with threads cannot be forked."""
    command = [sys.executable, "-m", "benchmarks", "kills", "--results", str(folder), *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-3000:]
    return rows_of("kills", folder), done.stdout


@pytest.mark.slow
def test_some_kills(tmp_path):
    (row,), said = killed(tmp_path, "--seeds", "1", "--kills", "1", "--rounds", "10")
    assert row["identical"] == row["whole"] == row["kills"] == 1
    assert row["loading"] + row["training"] + row["writing"] == 1
    assert said.splitlines()[1].split()[-2:] == ["1", "1"]


@pytest.mark.slow
def test_many_kills(tmp_path):
    rows, _ = killed(tmp_path, "--seeds", "2", "--kills", "25", "--again")
    assert [row["identical"] for row in rows] == [row["whole"] for row in rows] == [25, 25]
    assert sum(row["writing"] for row in rows) > 0


@pytest.mark.parametrize("part", ["tuner", "reward", "network", "optimizer", "progress"])
def test_a_digest_tells_states_apart_that_differ_in_one_part(tmp_path, part):
    training = Training(seed=0, rounds=10)
    training.play()
    bc.save(tmp_path / FILE, **training.parts)
    once = kills.digest_of(tmp_path / FILE)
    states = torch.load(tmp_path / FILE, weights_only=True)
    torch.save(states, tmp_path / FILE)
    assert kills.digest_of(tmp_path / FILE) == once
    training.play()
    states[part] = training.parts[part].state_dict()
    torch.save(states, tmp_path / FILE)
    assert kills.digest_of(tmp_path / FILE) not in ("", once)


def test_rows_count_each_kind_of_kill():
    kinds = [("loading", 0), ("writing", 1), ("writing", 0)]
    flags = {"whole": True, "identical": True, "ahead": False}
    seen = [{"phase": phase, "unfinished": left, **flags} for phase, left in kinds]
    row = kills.summed([*seen, {**seen[0], "identical": False}])
    assert row == {
        "loading": 2, "training": 0, "writing": 2,
        "whole": 4, "identical": 3, "unfinished": 1, "ahead": 0,
    }  # fmt: skip
