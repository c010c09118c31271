"""The demo survives SIGKILL, and its table says what happened."""

import signal
import subprocess
import sys
import time

import pytest
import torch

from benchmarks.demo import demo
from benchmarks.demo.demo import COLOURS, draw
from benchmarks.demo.methods import METHODS, SAID, SHOWN
from benchmarks.suite.policies import FixedPolicy, RandomPolicy, TunedPolicy
from benchmarks.suite.problems import digits_augmentation
from benchmarks.suite.runner import Record, run_online
from botorch_costly import ConfidenceQuery, Design, GuardedReward, OnlineTuner, Search
from tests.cases import quick

PROBLEM = digits_augmentation()
COMMAND = [sys.executable, "-m", "benchmarks", "demo", "--one-run", "--rounds", "30", "--out"]


def rounds_in(checkpoint):
    return len(Record.from_json(torch.load(checkpoint, weights_only=True)["record"]).decisions)


@pytest.mark.slow
def test_the_demo_killed_at_a_random_round_makes_the_same_decisions(tmp_path):
    """SIGKILL, not an exception: nothing gets to clean up."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    subprocess.run([*COMMAND, whole], check=True, capture_output=True)
    kill_at = int(torch.randint(3, 20, (), generator=torch.Generator().manual_seed(time.time_ns())))
    victim = subprocess.Popen([*COMMAND, cut], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    checkpoint = cut / "checkpoint.pt"
    while not checkpoint.exists() or rounds_in(checkpoint) < kill_at:
        assert victim.poll() is None, "the run ended before it could be killed"
        time.sleep(0.02)
    victim.send_signal(signal.SIGKILL)
    assert victim.wait() == -signal.SIGKILL
    assert rounds_in(checkpoint) < 30
    resumed = subprocess.run([*COMMAND, cut], check=True, capture_output=True, text=True)
    assert "Resuming an interrupted run" in resumed.stdout
    expected, found = ((folder / "record.json").read_text() for folder in (whole, cut))
    expected, found = Record.from_json(expected), Record.from_json(found)
    assert found.decisions == expected.decisions, f"killed in round {kill_at}"
    assert found.test_accuracy == expected.test_accuracy
    assert found.queries == expected.queries


def test_queries_are_counted_and_only_queries_are_told():
    space = PROBLEM.space
    tuner = OnlineTuner(
        space,
        30,
        query=ConfidenceQuery(0.6),
        design=Design(rounds=4),
        search=Search(num_restarts=4),
    )
    record = run_online(PROBLEM, TunedPolicy(tuner), seed=0, rounds=30)
    assert record.queries == sum(d.query for d in record.decisions) == tuner.queries
    assert [o.round for o in tuner.observations] == [d.round for d in record.decisions if d.query]
    assert tuner.observations[0].reward is None  # the first loss has nothing to be compared with
    assert [r for r, _ in record.test_accuracy] == [5, 10, 15, 20, 25, 30]


@pytest.mark.parametrize("kind", quick(["fixed", "random"], "random"))
def test_policies_without_queries_resume_too(kind, tmp_path):
    def policy():
        space = PROBLEM.space
        return FixedPolicy(PROBLEM.default) if kind == "fixed" else RandomPolicy(space, 3)

    whole = run_online(PROBLEM, policy(), seed=1, rounds=8)
    run_online(PROBLEM, policy(), seed=1, checkpoint=tmp_path / "c.pt", rounds=5)
    resumed = run_online(PROBLEM, policy(), seed=1, checkpoint=tmp_path / "c.pt", rounds=8)
    assert resumed.decisions == whole.decisions
    assert resumed.test_accuracy == whole.test_accuracy
    assert whole.queries == 0


def test_the_table_shows_the_worst_seed_and_the_paired_difference():
    ends = {"OnlineTuner": 93, "full feedback": 95, "coin": 90, "fixed 0.5": 60}
    queries = {"OnlineTuner": 50, "full feedback": 200, "coin": 100}
    rows = []
    for method, end in ends.items():
        for seed in range(3):
            accuracy = (end - 10 * seed + (method == "OnlineTuner") * seed) / 100
            row = {"method": method, "seed": seed, "test_accuracy": accuracy, "rounds": 200}
            rows.append({**row, "queries": queries.get(method, 0), "seconds": 1.0})
    table = demo.text(rows)
    assert table.splitlines()[1].split() == [
        "OnlineTuner",
        "93.0",
        "84.0",
        "75.0",
        "84.0",
        "75.0",
        "50",
        "1.0",
    ]
    (said,) = (line for line in table.splitlines() if line.startswith("OnlineTuner less"))
    assert "-1.0 points on average (95 % -2.0 to +0.0, 3 seeds) at 25% of its queries" in said
    assert "coin less full feedback: -5.0 points" in table
    assert "fixed 0.5 less" not in table


def test_the_first_row_is_what_a_user_gets():
    first, *others = METHODS
    assert first == SHOWN
    policy = METHODS[SHOWN](0)
    plain = OnlineTuner(PROBLEM.space, PROBLEM.horizon, start=PROBLEM.default, seed=0)
    policy.start(PROBLEM.setup(0))
    assert isinstance(policy.reward, GuardedReward)
    assert policy.tuner.state_dict().keys() == plain.state_dict().keys()
    for _ in range(6):
        asked, expected = policy.tuner.ask(), plain.ask()
        assert asked == expected
        if asked.query:
            policy.tuner.tell(asked, 0.1)
            plain.tell(expected, 0.1)
    assert {"as published", "full feedback", "coin", "fixed 0.5", "all off", "good fixed"} <= set(
        others
    )
    assert set(SAID) == set(METHODS)
    assert set(COLOURS) <= set(METHODS)


def test_a_picture_of_the_first_run_is_drawn(tmp_path):
    shown = run_online(PROBLEM, METHODS[SHOWN](0), 0, rounds=6)
    draw(shown, {"fixed 0.5": [(5, 0.5), (6, 0.6)]}, 0, tmp_path / "new" / "demo.png")
    assert (tmp_path / "new" / "demo.png").stat().st_size > 10_000


def test_a_fresh_start_removes_its_own_checkpoint_alone(tmp_path, monkeypatch):
    for name in ("checkpoint.pt", "thesis.tex"):
        (tmp_path / name).touch()
    monkeypatch.setattr(demo, "_shown_run", lambda out, rounds, seed: None)
    monkeypatch.setattr(torch, "set_num_threads", lambda number: None)
    demo.main(["--out", str(tmp_path), "--fresh", "--one-run"])
    assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]
