"""What a person sees of a run, on a terminal and in a log file."""

import io

import pytest

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError
from botorch_costly.integrations.loggers import LogEntry, LoggedTuner, ProgressBar
from tests.integrations.loggers.playing import SPACE, cheap, logged, play, play_cheap


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_has_one_line_that_is_written_anew(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    terminal = Terminal()
    with cheap(ProgressBar(terminal)) as tuner:
        play_cheap(tuner, 30)
    *_, last = terminal.getvalue().removesuffix("\n").split("\r")
    assert (
        last.rstrip() == "round 30/30 [########################] queries 11"
    )  # the last round is queried
    assert terminal.getvalue().count("\n") == 1
    assert {len(line) for line in terminal.getvalue().strip("\r\n").split("\r")} == {59}


def test_a_file_has_a_line_for_each_tenth(monkeypatch):
    file = io.StringIO()
    with cheap(ProgressBar(file)) as tuner:
        play_cheap(tuner, 30)
    lines = file.getvalue().splitlines()
    assert len(lines) == 10
    assert lines[4].startswith("round 15/30 [############............] queries 5")
    assert "\r" not in file.getvalue()


def test_queries_are_counted_against_the_budget():
    file = io.StringIO()
    with logged(ProgressBar(file, every=1)) as tuner:
        play(tuner, 6)
    assert f"queries {tuner.queries}/6" in file.getvalue().splitlines()[-1]


def test_a_run_without_a_horizon_has_no_bar():
    file = io.StringIO()
    with LoggedTuner(bc.RandomTuner(SPACE), ProgressBar(file, every=2)) as tuner:
        play_cheap(tuner, 5)
    assert [line.split(" reward")[0] for line in file.getvalue().splitlines()] == [
        "round 2 queries 1", "round 4 queries 2",
    ]  # fmt: skip


def test_a_late_reward_does_not_turn_the_line_back():
    file, bar = io.StringIO(), None
    bar = ProgressBar(file, every=1)
    for round in (0, 1, 0):
        decision = bc.Decision(round, {"lr": 0.1}, query=True, reason="")
        bar.log(LogEntry(decision=decision))
    assert len(file.getvalue().splitlines()) == 2
    with pytest.raises(InvalidArgumentError, match="every"):
        ProgressBar(every=0)


def test_a_metric_that_is_the_reward_stands_once():
    twins, file = bc.TwinTuner(SPACE, 30), io.StringIO()
    with LoggedTuner(twins, ProgressBar(file, every=1)) as tuner:
        for _ in range(3):
            decision = tuner.ask()
            if decision.query:
                tuner.tell(decision, 0.5)
    assert file.getvalue().count("reward 0.5") == twins.queries
    assert "metric" not in file.getvalue()
