"""Stored lines say where they come from, and an interrupted run leaves the old ones."""

import json
import subprocess

import pytest
import torch

from benchmarks.__main__ import REGISTRY, listing, main
from benchmarks.harness import provenance, record


def lines_of(directory, name="toy"):
    text = (directory / f"{name}.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_rows_come_back(tmp_path):
    rows = [{"policy": "A", "regret": 0.1}, {"policy": "B ± β", "regret": 1 / 3}]
    record.write_results("toy", rows, seeds=[0, 7], directory=tmp_path / "new")
    assert record.rows_of("toy", tmp_path / "new") == rows


def test_a_run_says_once_where_its_rows_come_from(tmp_path, monkeypatch):
    place = ["--results", str(tmp_path), f"--results={tmp_path}"]
    monkeypatch.setattr("sys.argv", ["benchmarks", "toy", *place, "--name", "two words"])
    record.write_results("toy", [{"a": 1}, {"a": 2}], seeds=[3, 4], directory=tmp_path)
    header, *rows = lines_of(tmp_path)
    assert rows == [{"a": 1}, {"a": 2}]
    (run,) = header.values()
    assert run["benchmark"] == "toy"
    assert run["seeds"] == [3, 4]
    assert run["command"] == "python -m benchmarks toy --name 'two words'"
    assert set(run["versions"]) == {"python", "torch", "botorch", "gpytorch", "botorch_costly"}
    release = torch.__version__.partition("+")[0]  # a build may name itself after it, or not
    assert run["versions"]["torch"].partition("+")[0] == release
    assert run["hardware"]["threads"] == torch.get_num_threads()
    assert run["hardware"]["gpu"] is None
    assert run["hardware"]["cpu"]
    assert run["time"].endswith("+00:00")
    assert run["commit"]
    assert record.read("toy", tmp_path) == [{**run, "row": row} for row in rows]


def test_rows_that_are_kept_stay_under_their_own_header(tmp_path):
    record.write_results("toy", [{"a": 1}, {"a": 2}, {"a": 3}], [0], directory=tmp_path)
    before = record.read("toy", tmp_path)
    new = [{"a": 4}, {"a": 5}]
    record.write_results("toy", new, [7], directory=tmp_path, keep=lambda row: row["a"] != 2)
    after = record.read("toy", tmp_path)
    assert [line["row"]["a"] for line in after] == [1, 3, 4, 5]
    assert after[:2] == [before[0], before[2]]
    assert [line["seeds"] for line in after] == [[0], [0], [7], [7]]
    assert [set(line) for line in lines_of(tmp_path)] == [
        {"run"}, {"a"}, {"a"}, {"run"}, {"a"}, {"a"},
    ]  # fmt: skip


def old_line(row, **changed):
    """A line as it was stored before runs had headers."""
    line = {
        "benchmark": "toy",
        "commit": "c" * 40,
        "command": "python -m benchmarks toy",
        "seeds": [0],
        "versions": {"torch": "2.0"},
        "hardware": {"cpu": "EPYC", "threads": 1, "gpu": None},
        "time": "2026-01-01T00:00:00+00:00",
        "row": row,
    }
    return {**line, **changed}


def test_old_files_are_read_under_the_names_of_today(tmp_path):
    first = old_line({"looks": 3, "early": {"look_cpu_ms": 0.5}, "case": "round with a look"})
    other = old_line({"reach": 2.0}, seeds=[1])
    text = "".join(json.dumps(line) + "\n" for line in (first, other))
    (tmp_path / "toy.jsonl").write_text(text)
    found = record.read("toy", tmp_path)
    new = {"queries": 3, "early": {"query_cpu_ms": 0.5}, "case": "round with a query"}
    assert [line["row"] for line in found] == [new, {"effective_horizon": 2.0}]
    assert [line["seeds"] for line in found] == [[0], [1]]
    assert {**found[0], "row": None} == {**first, "row": None}


def test_old_lines_that_are_kept_share_a_header_and_their_times_are_a_span(tmp_path):
    times = [f"2026-01-01T00:00:0{i}+00:00" for i in range(3)]
    old = [old_line({"looks": i}, time=time) for i, time in enumerate(times)]
    old.append(old_line({"looks": 3}, commit="d" * 40))
    text = "".join(json.dumps(line) + "\n" for line in old)
    (tmp_path / "toy.jsonl").write_text(text)
    record.write_results("toy", [{"queries": 9}], [5], directory=tmp_path, keep=lambda row: True)
    kept, *rows = lines_of(tmp_path)
    assert rows[:3] == [{"queries": 0}, {"queries": 1}, {"queries": 2}]
    assert (kept["run"]["time"], kept["run"]["until"]) == (times[0], times[2])
    assert rows[3]["run"]["commit"] == "d" * 40
    assert "until" not in rows[3]["run"]
    once = record.read("toy", tmp_path)
    record.write_results("toy", [], [5], directory=tmp_path, keep=lambda row: True)
    assert record.read("toy", tmp_path) == once


def test_a_new_run_replaces_the_old(tmp_path):
    record.write_results("toy", [{"a": 1}, {"a": 2}], [0], directory=tmp_path)
    record.write_results("toy", [{"a": 3}], [0], directory=tmp_path)
    assert record.rows_of("toy", tmp_path) == [{"a": 3}]


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt])
def test_an_interrupted_run_leaves_the_old(tmp_path, failure):
    record.write_results("toy", [{"a": 1}], [0], directory=tmp_path)

    def interrupted():
        with record.recording("toy", [0], directory=tmp_path) as write:
            write({"a": 2})
            raise failure

    with pytest.raises(failure):
        interrupted()
    assert record.rows_of("toy", tmp_path) == [{"a": 1}]
    assert [path.name for path in tmp_path.iterdir()] == ["toy.jsonl"]


def test_nothing_is_visible_before_the_end(tmp_path):
    with record.recording("toy", [0], directory=tmp_path) as write:
        write({"a": 1})
        assert record.read("toy", tmp_path) == []
    assert record.rows_of("toy", tmp_path) == [{"a": 1}]


def test_numbers_that_are_none_are_refused(tmp_path):
    with pytest.raises(ValueError, match="JSON compliant"):
        record.write_results("toy", [{"a": float("nan")}], [0], directory=tmp_path)
    assert record.read("toy", tmp_path) == []


def git(directory, *arguments):
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=directory, check=True, capture_output=True)


def test_changed_sources_are_named_but_not_changed_results(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "ROOT", tmp_path)
    assert provenance.commit() == "unknown"
    results = tmp_path / "benchmarks" / "results"
    results.mkdir(parents=True)
    (tmp_path / "source.py").write_text("1")
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "one")
    clean = provenance.commit()
    assert len(clean) == 40
    (results / "toy.jsonl").write_text("{}")
    (tmp_path / "benchmarks" / "README.md").write_text("tables")
    assert provenance.commit() == clean
    (tmp_path / "source.py").write_text("2")
    assert provenance.commit() == f"{clean}+dirty"


def test_the_list_names_every_benchmark(capsys):
    assert main([]) == 0
    printed = capsys.readouterr().out
    assert printed.strip() == listing()
    for name, (_, description) in REGISTRY.items():
        assert name in printed
        assert description in printed


def test_an_unknown_benchmark_is_refused(capsys):
    assert main(["table-a3"]) == 2
    assert "table-a2" in capsys.readouterr().err


@pytest.mark.slow
def test_benchmarks_run_small(tmp_path, capsys):
    size = ["--trials", "2", "--horizon", "12", "--points", "40", "--threads", "1"]
    kept = ["--results", str(tmp_path)]
    for name in ("table-a2", "figure-1", "figure-a3"):
        extras = ["--extras"] if name == "table-a2" else []
        assert main([name, *size, *kept, *extras]) == 0
        assert record.rows_of(name, tmp_path)
    assert main(["streaming", "--repeats", "2", "--rounds", "30", "--points", "50", *kept]) == 0
    assert {row["case"] for row in record.rows_of("streaming", tmp_path)} == {
        "append",
        "round without a query",
        "round with a query",
    }
    assert {path.name for path in tmp_path.glob("*.png")} == {"figure-1.png", "figure-a3.png"}
    capsys.readouterr()
    assert main(["report", *kept]) == 0
    printed = capsys.readouterr().out
    assert "NOT the paper's size" in printed
    assert "MISS" in printed
    assert "times faster" in printed


def test_no_stored_command_names_a_place_of_one_machine():
    for path in record.RESULTS.glob("*.jsonl"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert "/tmp" not in line.partition('"commit"')[0], path.name
