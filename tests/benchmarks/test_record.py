"""Stored lines say where they come from, and an interrupted run leaves the old ones."""

import json
import subprocess

import pytest
import torch

from benchmarks import record
from benchmarks.__main__ import REGISTRY, listing, main


def rows_of(directory, name="toy"):
    return [line["row"] for line in record.read(name, directory)]


def test_rows_come_back(tmp_path):
    rows = [{"policy": "A", "regret": 0.1}, {"policy": "B ± β", "regret": 1 / 3}]
    record.write_results("toy", rows, seeds=[0, 7], directory=tmp_path / "new")
    assert rows_of(tmp_path / "new") == rows


def test_every_line_says_where_it_comes_from(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["benchmarks", "toy", "--name", "two words"])
    record.write_results("toy", [{"a": 1}, {"a": 2}], seeds=[3, 4], directory=tmp_path)
    for line in record.read("toy", tmp_path):
        assert line["benchmark"] == "toy"
        assert line["seeds"] == [3, 4]
        assert line["command"] == "python -m benchmarks toy --name 'two words'"
        assert set(line["versions"]) == {"python", "torch", "botorch", "gpytorch", "botorch_costly"}
        assert line["versions"]["torch"] == torch.__version__
        assert line["hardware"]["threads"] == torch.get_num_threads()
        assert line["hardware"]["gpu"] is None
        assert line["hardware"]["cpu"]
        assert line["time"].endswith("+00:00")
        assert line["commit"]


def test_a_new_run_replaces_the_old(tmp_path):
    record.write_results("toy", [{"a": 1}, {"a": 2}], [0], directory=tmp_path)
    record.write_results("toy", [{"a": 3}], [0], directory=tmp_path)
    assert rows_of(tmp_path) == [{"a": 3}]


@pytest.mark.parametrize("failure", [RuntimeError, KeyboardInterrupt])
def test_an_interrupted_run_leaves_the_old(tmp_path, failure):
    record.write_results("toy", [{"a": 1}], [0], directory=tmp_path)

    def interrupted():
        with record.recording("toy", [0], directory=tmp_path) as write:
            write({"a": 2})
            raise failure

    with pytest.raises(failure):
        interrupted()
    assert rows_of(tmp_path) == [{"a": 1}]
    assert [path.name for path in tmp_path.iterdir()] == ["toy.jsonl"]


def test_nothing_is_visible_before_the_end(tmp_path):
    with record.recording("toy", [0], directory=tmp_path) as write:
        write({"a": 1})
        assert record.read("toy", tmp_path) == []
    assert rows_of(tmp_path) == [{"a": 1}]


def test_numbers_that_are_none_are_refused(tmp_path):
    with pytest.raises(ValueError, match="JSON compliant"):
        record.write_results("toy", [{"a": float("nan")}], [0], directory=tmp_path)
    assert record.read("toy", tmp_path) == []


def test_lines_are_json(tmp_path):
    record.write_results("toy", [{"a": [1, None, True]}], [0], directory=tmp_path)
    (line,) = (tmp_path / "toy.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["row"] == {"a": [1, None, True]}


def git(directory, *arguments):
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=directory, check=True, capture_output=True)


def test_changed_sources_are_named_but_not_changed_results(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "ROOT", tmp_path)
    assert record.commit() == "unknown"
    results = tmp_path / "benchmarks" / "results"
    results.mkdir(parents=True)
    (tmp_path / "source.py").write_text("1")
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "one")
    clean = record.commit()
    assert len(clean) == 40
    (results / "toy.jsonl").write_text("{}")
    (tmp_path / "benchmarks" / "README.md").write_text("tables")
    assert record.commit() == clean
    (tmp_path / "source.py").write_text("2")
    assert record.commit() == f"{clean}+dirty"


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


def test_benchmarks_run_small(tmp_path, capsys):
    size = ["--trials", "2", "--horizon", "12", "--points", "40", "--threads", "1"]
    kept = ["--results", str(tmp_path)]
    for name in ("table-a2", "figure-1", "figure-a3"):
        extras = ["--extras"] if name == "table-a2" else []
        assert main([name, *size, *kept, *extras]) == 0
        assert rows_of(tmp_path, name)
    assert main(["streaming", "--repeats", "2", "--rounds", "30", "--points", "50", *kept]) == 0
    assert {row["case"] for row in rows_of(tmp_path, "streaming")} == {
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
