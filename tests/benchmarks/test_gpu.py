"""The list of measurements that need a GPU: its page, its order, its limits, and going on."""

import json
import re
import shlex
import sys
import time
from argparse import Namespace
from pathlib import Path

import pytest

from benchmarks.__main__ import REGISTRY, main
from benchmarks.gpu import offline, run
from benchmarks.gpu.measurements import MEASUREMENTS, Measurement
from benchmarks.harness.record import rows_of

ROOT = Path(__file__).parents[2]
PAGE = run.PAGE.read_text(encoding="utf-8")
every = pytest.mark.parametrize("measurement", MEASUREMENTS, ids=lambda m: m.name)


# -- the list --------------------------------------------------------------------------------------


def test_the_page_has_the_list():
    assert run.with_table(PAGE) == PAGE
    assert PAGE.count("| `python -m ") == len(MEASUREMENTS)


def test_a_list_that_has_changed_is_written_over_the_old_one():
    shorter = PAGE.replace(run.table(), "nothing")
    assert shorter != PAGE
    assert run.with_table(shorter) == PAGE


def test_names_and_commands_are_unique():
    for field in ("name", "command"):
        assert len({getattr(m, field) for m in MEASUREMENTS}) == len(MEASUREMENTS)


@every
def test_commands_name_what_exists(measurement):
    for command in filter(None, (measurement.command, measurement.tiny)):
        words = shlex.split(command)
        assert words[0] in ("benchmarks", "pytest", "torch.distributed.run")
        if words[0] == "benchmarks":
            assert words[1] in REGISTRY
        for word in words:
            assert not word.startswith("tests/") or (ROOT / word).exists(), word
        assert not re.search(r"cuda", measurement.tiny)


def test_short_measurements_come_before_trainings_of_hours():
    minutes = [m.minutes for m in MEASUREMENTS]
    assert sum(minutes[:4]) <= 15  # on a machine that is lent for a quarter of an hour
    first_long = next(i for i, limit in enumerate(minutes) if limit > 15)
    assert sum(minutes[:first_long]) <= 60


def test_results_and_the_device_are_named(tmp_path):
    bench = Measurement("a", "", "benchmarks speed --device cuda", 1, "", "benchmarks speed")
    real, tiny = (run.arguments_of(bench, tmp_path, tiny=tiny) for tiny in (False, True))
    assert real[1:] == ["-m", "benchmarks", "speed", "--device", "cuda", "--results", str(tmp_path)]
    assert tiny[1:6] == ["-m", "tests.far", "-m", "benchmarks", "speed"]
    tests = bench._replace(command="pytest -m 'not slow' tests/query")
    words = run.arguments_of(tests, tmp_path, tiny=False)
    assert words[1:] == ["-m", "pytest", "-m", "not slow", "tests/query"]


# -- running it ------------------------------------------------------------------------------------


def python(code):
    return [sys.executable, "-c", code]


def test_a_command_is_done_or_failed_and_what_it_printed_is_kept(tmp_path):
    output = tmp_path / "output.txt"
    assert run.run(python("print('seen')"), 60, output) == ("done", 0)
    assert output.read_text() == "seen\n"
    assert run.run(python("raise SystemExit(3)"), 60, output) == ("failed", 3)


def test_a_command_ends_at_its_limit_with_its_children(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "_GRACE", 0.5)
    file = tmp_path / "alive"
    child = f"import time\nwhile True: open({str(file)!r}, 'a').write('.'); time.sleep(0.05)"
    code = f"""
import signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
subprocess.Popen([sys.executable, "-c", {child!r}]); time.sleep(600)
"""
    assert run.run(python(code), 5, tmp_path / "output.txt") == ("out of time", None)
    time.sleep(0.3)
    size = file.stat().st_size
    time.sleep(0.3)
    assert file.stat().st_size == size > 0


class Machine:
    """Runs that take some minutes each on a clock of their own."""

    def __init__(self, monkeypatch, ends):
        self.now, self.ran, self.ends = 0.0, [], ends
        monkeypatch.setattr(run.time, "monotonic", lambda: self.now)
        monkeypatch.setattr(run, "run", self.run)

    def run(self, command, seconds, output):
        name = output.stem
        minutes, state = self.ends[name]
        self.ran.append(name)
        output.write_text("said")
        if 60 * minutes > seconds:
            self.now += seconds
            return "out of time", None
        self.now += 60 * minutes
        return state, 0 if state == "done" else 1


LIST = [
    Measurement(name, "", f"benchmarks {name}", 5, "", f"benchmarks {name} tiny") for name in "abcd"
]


def hour(tmp_path, minutes, tiny=False):
    return run.hour(LIST, Namespace(minutes=minutes, results=tmp_path, tiny=tiny))


def test_it_goes_on_after_failures_and_limits_and_repeats_them_last(tmp_path, monkeypatch):
    ends = {"a": (1, "failed"), "b": (9, "done"), "c": (1, "done"), "d": (1, "done")}
    machine = Machine(monkeypatch, ends)
    noted = hour(tmp_path, 7.5)
    assert [(row["name"], row["state"]) for row in noted] == [
        ("a", "failed"), ("b", "out of time"), ("c", "done"), ("d", "out of time")
    ]  # fmt: skip
    assert machine.now == 7.5 * 60
    machine.ends = dict.fromkeys("abcd", (1, "done"))
    assert [row["name"] for row in hour(tmp_path, 60)] == ["b", "d", "a"]
    assert hour(tmp_path, 60) == []
    lines = (tmp_path / "gpu.jsonl").read_text().splitlines()
    assert [json.loads(line)["name"] for line in lines] == [*"abcd", "b", "d", "a"]
    assert (tmp_path / "output" / "a.txt").read_text() == "said"


def test_tiny_runs_do_not_count_as_measured(tmp_path, monkeypatch):
    Machine(monkeypatch, dict.fromkeys("abcd", (1, "done")))
    assert len(hour(tmp_path, 60, tiny=True)) == 4
    assert len(hour(tmp_path, 60)) == 4


def test_nothing_is_begun_in_the_last_seconds(tmp_path, monkeypatch, capsys):
    machine = Machine(monkeypatch, dict.fromkeys("abcd", (1, "done")))
    hour(tmp_path, 2.1)
    assert machine.ran == ["a", "b"]
    assert "the next call goes on" in capsys.readouterr().out


# -- a measurement of its own ----------------------------------------------------------------------


def test_offline_optimizers_are_asked_in_both_places(tmp_path, capsys):
    options = ["--optimizers", "TransferOptimizer", "--evaluations", "4", "--asks", "2"]
    assert main(["offline", *options, "--results", str(tmp_path)]) == 0
    (row,) = rows_of("offline", tmp_path)
    assert row["same"] == 2
    assert min(row["seconds"], row["cpu_seconds"]) > 0
    assert "the same asked in 2 of 2" in capsys.readouterr().out


def test_other_asks_are_noticed():
    config = {"lr": 0.1, "decay": 0.5, "depth": 3}
    assert offline._is_near(config, dict(config))
    assert not offline._is_near(config, {**config, "decay": 0.50001})
