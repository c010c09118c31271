"""The demo of the command: its lines, and the run that it saves."""

import os
import re

import pytest
import torch

from botorch_costly.command_line import main
from botorch_costly.demo import BAD, GOOD, SPACE, Training, demo, examples_of
from botorch_costly.reports import saved_runs
from botorch_costly.tuners import FixedTuner

LINE = re.compile(
    r"^round (\d+)/(\d+) \[[#.]{24}\] queries (\d+)/(\d+)( reward \S+)? metric \S+  lr="
)


def lines_of(**options):
    lines = []
    demo(lines.append, **options)
    return lines


def accuracies(lines):
    return [float(share) / 100 for share in re.findall(r"^ *([\d.]+)%  ", "\n".join(lines), re.M)]


def test_each_query_has_a_line_and_none_is_beyond_the_budget():
    shown = [LINE.match(line) for line in lines_of(rounds=24)]
    rows = [tuple(map(int, match.groups()[:4])) for match in shown if match]
    assert [row[2] for row in rows] == list(range(1, len(rows) + 1))
    assert {row[1] for row in rows} == {24}
    assert {row[3] for row in rows} == {6}
    # The last round is queried so that the guard sees it, whether or not the budget is spent.
    assert rows[-1][0] == 24
    assert 1 < rows[-1][2] <= 7


def test_equal_seeds_say_the_same_and_leave_the_global_generator_alone():
    before = torch.get_rng_state()
    first = lines_of(rounds=8, seed=3)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(1)
    assert lines_of(rounds=8, seed=3) == first
    assert accuracies(lines_of(rounds=8, seed=4)) != accuracies(first)


def test_the_settings_are_of_the_space_and_the_start_is_the_bad_one():
    assert SPACE.encode(BAD).shape == SPACE.encode(GOOD).shape == (3,)
    lines = [line for line in lines_of(rounds=12) if LINE.match(line)]
    assert lines[0].endswith("lr=0.005, dropout=0.7, noise=1.2")


def test_the_last_round_is_queried_whatever_the_tuner_says():
    shown = []
    training = Training(examples_of(0), 0)
    tuner = FixedTuner(SPACE, GOOD, horizon=3)
    training.run(tuner, 3, lambda decision, observation: shown.append(decision.round))
    assert shown == [2]


@pytest.mark.slow
def test_a_bad_setting_is_left():
    for seed in (5, 6):
        lines = lines_of(seed=seed)
        bad, tuned, good = accuracies(lines)
        assert bad + 0.2 < tuned <= good
        for when in ("Halfway", "At the end"):
            assert any(line.strip().startswith(f"{when}: Tuning has paid") for line in lines)


def test_the_run_can_be_kept_and_reported(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["demo", "--rounds", "8", "--save", "run.pt"]) == 0
    out = capsys.readouterr().out
    assert out.endswith("Try: botorch-costly report run.pt\n")
    assert "\r" not in out
    assert "\x1b" not in out
    (run,) = saved_runs("run.pt")
    assert (run.rounds, run.horizon, run.budget) == (8, 8, 2)
    assert main(["report", "run.pt"]) == 0
    verdict, text = capsys.readouterr().out.split("\n", 1)
    assert verdict == "verdict: Too early to say: 1 reward, and 10 are the fewest."
    assert text.startswith("run: tuner (OnlineTuner)\nrounds: 8 of 8\n")


def test_a_kept_run_is_written_over_by_force_alone(tmp_path, capsys):
    target = tmp_path / "run.pt"
    target.write_bytes(b"mine")
    assert main(["demo", "--rounds", "8", "--save", str(target)]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert "--force" in error
    assert target.read_bytes() == b"mine"
    assert main(["demo", "--rounds", "8", "--save", str(target), "--force"]) == 0
    assert saved_runs(target)
    assert [path.name for path in tmp_path.iterdir()] == ["run.pt"]


def test_a_reader_that_stops_early_ends_it(monkeypatch, capsys):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        monkeypatch.setattr("sys.stdout", closed)
        assert main(["demo", "--rounds", "100000"]) == 0  # which would take an hour
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--rounds", "3"], "rounds: Expected an integer >= 4; Received 3."),
        (["--seed", "-1"], "seed: Expected an integer in 0..2**63 - 1; Received -1."),
        (["--save", "missing/run.pt"], "a folder that exists"),
    ],
)
def test_errors_say_what_was_expected(arguments, named, capsys):
    assert main(["demo", *arguments]) == 2
    assert named in capsys.readouterr().err
