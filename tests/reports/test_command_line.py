"""The command: its output, and the files that it refuses to overwrite."""

import csv
import io
import json
import os
import re
import shlex
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import botorch_costly as bc
from botorch_costly.command_line import main
from botorch_costly.errors import InvalidArgumentError
from botorch_costly.reports import SavedRun, picture_of, raster_of, saved_runs
from tests.reports.running import START, played, saved

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    tuner = played()
    saved(folder, tuner)
    tuner.export_schedule(folder / "schedule.json")
    bc.save(folder / "two.pt", first=tuner, second=played(rounds=2))
    return folder


@pytest.fixture(autouse=True)
def within(folder, monkeypatch):
    monkeypatch.chdir(folder)


def refused(capsys, *arguments):
    """The message of a command that fails."""
    capsys.readouterr()
    assert main(arguments) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert error.startswith("botorch-costly: error: ")
    return error


def test_the_entry_point_is_the_command():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, name = project["scripts"]["botorch-costly"].split(":")
    assert getattr(import_module(module), name) is main


def test_a_run_is_described(capsys):
    assert main(["report", "run.pt"]) == 0
    verdict, text = capsys.readouterr().out.split("\n", 1)
    assert verdict == "verdict: Too early to say: 6 rewards, and 10 are the fewest."
    assert text.startswith("run: tuner (OnlineTuner)\nrounds: 16 of 40\n")


def test_a_reader_that_stops_early_is_no_error(monkeypatch, capsys):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as closed:
        monkeypatch.setattr("sys.stdout", closed)
        assert main(["report", "run.pt"]) == 0
    assert capsys.readouterr().err == ""


def test_each_run_of_a_file_is_described_or_one(capsys):
    assert main(["report", "two.pt"]) == 0
    text = capsys.readouterr().out
    first, second = text.split("\n\n")
    assert "\nrun: first" in first
    assert "\nrun: second" in second
    assert main(["report", "two.pt", "--run", "second"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("run: second")
    assert "['first', 'second']" in refused(capsys, "export", "two.pt", "-o", "two.csv")
    assert "['first', 'second']" in refused(capsys, "report", "two.pt", "--run", "third")


def test_a_schedule_is_described(capsys):
    assert main(["report", "schedule.json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    schedule = bc.Schedule.from_json(Path("schedule.json"))
    assert lines[0] == f"schedule: rounds 0 to 15, {len(schedule.entries) - 1} changes"
    assert len(lines) == 1 + len(schedule.entries)


def test_a_schedule_is_exported_as_the_tuner_does(tmp_path):
    target = tmp_path / "mine.json"
    assert main(["export", "run.pt", "-o", str(target)]) == 0
    assert target.read_bytes() == Path("schedule.json").read_bytes()


@pytest.mark.parametrize("source", ["run.pt", "schedule.json"])
def test_a_table_has_a_row_a_round(source, tmp_path):
    target = tmp_path / "history.csv"
    assert main(["export", source, "-o", str(target)]) == 0
    rows = list(csv.DictReader(io.StringIO(target.read_text(encoding="utf-8"))))
    assert [int(row["round"]) for row in rows] == list(range(16))
    assert float(rows[0]["config/lr"]) == START["lr"]
    assert rows[0]["config/policy"] == START["policy"]
    listed = [row["config/policy"] for row in rows if row["config/policy"].startswith("[")]
    assert {tuple(json.loads(cell)) for cell in listed} == {(1, 2)}
    assert ("reason" in rows[0]) == (source == "run.pt")


def test_a_picture_is_the_same_each_time(tmp_path):
    pytest.importorskip("matplotlib")
    schedule = bc.Schedule.from_json(Path("schedule.json"))
    assert main(["plot", "schedule.json", "-o", str(tmp_path / "run.svg")]) == 0
    drawn = (tmp_path / "run.svg").read_bytes()
    assert b"<svg" in drawn
    assert drawn == picture_of(schedule, "svg")


@pytest.mark.parametrize(
    "arguments", [("plot", "run.pt", "-o", "mine.png"), ("report", "run.pt", "--html", "mine.html")]
)
def test_without_matplotlib_pictures_name_their_extra_and_text_is_there(
    arguments, capsys, monkeypatch
):
    for name in ("matplotlib", "matplotlib.figure"):
        monkeypatch.setitem(sys.modules, name, None)
    assert "pip install 'matplotlib>=3.8'" in refused(capsys, *arguments)
    assert not Path(arguments[-1]).exists()
    assert main(["report", "run.pt"]) == 0


@pytest.mark.slow
def test_of_several_runs_the_queries_are_drawn_or_one_run(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    target, single = tmp_path / "all.svg", tmp_path / "one.svg"
    assert main(["plot", "two.pt", "-o", str(target)]) == 0
    runs = saved_runs("two.pt")
    assert target.read_bytes() == raster_of(runs, "svg")
    assert main(["plot", "two.pt", "-o", str(single), "--run", "second"]) == 0
    assert single.read_bytes() == picture_of(runs[1], "svg") != target.read_bytes()
    with pytest.raises(InvalidArgumentError, match="at least one decision"):
        raster_of([SavedRun.from_state(played(rounds=0).state_dict())])
    with pytest.raises(InvalidArgumentError, match="format"):
        raster_of(runs, "gif")


def test_nothing_is_written_over_without_force(capsys, tmp_path):
    target = tmp_path / "mine.csv"
    target.write_text("mine")
    assert "--force" in refused(capsys, "export", "run.pt", "-o", str(target))
    assert target.read_text() == "mine"
    assert main(["export", "run.pt", "-o", str(target), "--force"]) == 0
    assert target.read_text(encoding="utf-8").startswith("round,")


def test_the_file_that_is_read_is_never_written_over(capsys):
    before = Path("schedule.json").read_bytes()
    message = refused(capsys, "export", "schedule.json", "-o", "./schedule.json", "--force")
    assert "another file" in message
    assert Path("schedule.json").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["report", "missing.pt"], "missing.pt"),
        (["report", "."], "directory"),
        (["report", "text.txt"], "written by save"),
        (["report", "other.json"], "schedule"),
        (["report", "schedule.json", "--run", "first"], "--run"),
        (["export", "run.pt", "-o", "history.txt"], ".json or .csv"),
        (["export", "run.pt", "-o", "missing/history.csv"], "a folder that exists"),
        (["plot", "run.pt", "-o", "run.gif"], ".png or .svg"),
    ],
)
def test_errors_say_what_was_expected(arguments, message, capsys):
    Path("text.txt").write_text("no state")
    Path("other.json").write_text("{}")
    before = sorted(Path().iterdir())
    assert message in refused(capsys, *arguments)
    assert sorted(Path().iterdir()) == before


def test_names_cannot_command_the_terminal(tmp_path, capsys):
    space = bc.SearchSpace({"lr\x1b[2J": bc.Real(0.0, 1.0), "größe": bc.Real(0.0, 1.0)})
    tuner = bc.FixedTuner(space, {"lr\x1b[2J": 0.1, "größe": 0.5}, horizon=3)
    tuner.ask()
    assert main(["report", str(saved(tmp_path, tuner))]) == 0
    text = capsys.readouterr().out
    assert r"lr\x1b[2J=0.1, größe=0.5" in text
    assert "\x1b" not in text


def commands():
    """The shell lines of the page."""
    page = (ROOT / "docs" / "guide" / "command-line.md").read_text(encoding="utf-8")
    blocks = "".join(re.findall(r"^```console\n(.*?)^```$", page, flags=re.M | re.S))
    return [
        shlex.split(line, comments=True) for line in re.findall(r"^\$ (.*)$", blocks, flags=re.M)
    ]


def test_the_commands_of_the_page_run(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    saved(tmp_path)
    assert len(commands()) >= 4
    for program, *arguments in commands():
        assert program == "botorch-costly"
        shorter = ["--rounds", "8"] if arguments[0] == "demo" else []
        assert main([*arguments, *shorter]) == 0
        assert all(Path(name).stat().st_size for name in arguments if "." in name)
    assert Path("run.png").read_bytes().startswith(b"\x89PNG")
