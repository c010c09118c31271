"""What is stored of runs without spare compute, what is skipped, and what the tables say of it."""

import argparse
import math
from typing import ClassVar

import pytest

from benchmarks.harness.record import rows_of
from benchmarks.suite.compute_bound import benchmark, foresight
from benchmarks.suite.compute_bound.problems import PROBLEMS
from tests.benchmarks.test_compute_bound import TEXT


def row(seed, loss, method="constant"):
    result = {
        "accuracy": 0.5,
        "horizon": 40,
        "rounds": 60,
        "handed_over": 50,
        "given_back": 10,
        "queries": 4,
    }
    seconds = dict.fromkeys(("training", "querying", "copying", "deciding"), 1.0)
    return {"seed": seed, "method": method, "loss": loss, **result, **seconds}


class TestTables:
    def test_differences_are_paired_and_of_logarithms_where_losses_are_squares(self):
        ours = {s: row(s, 0.5 * (s + 1)) for s in range(3)}
        theirs = {s: row(s, 1.0 * (s + 1)) for s in range(1, 4)}
        assert benchmark.difference(ours, theirs, in_nats=True).value == pytest.approx(-1.25)
        found = benchmark.difference(ours, theirs, in_nats=False)
        assert found.value == pytest.approx(math.log(0.5))
        assert found.low == pytest.approx(found.high)

    def test_seeds_that_diverged_are_counted_and_left_out(self):
        ours = {0: row(0, 1.0), 1: row(1, None), 2: row(2, 2.0)}
        theirs = {s: row(s, 1.0) for s in range(3)}
        assert benchmark.difference(ours, theirs, in_nats=True).value == pytest.approx(0.5)
        said = benchmark.table("here", {"ours": ours}, {"constant": theirs}, {}, in_nats=True)
        assert said.splitlines()[1].split()[:4] == ["ours", "3", "1", "1.5000"]
        assert "lost" in said.splitlines()[1]
        assert said.splitlines()[1].split()[-5] == "1.50"  # runs of full length

    def test_the_way_back(self):
        bad = {0: row(0, 3.0), 1: row(1, 3.0), 2: row(2, 1.0), 3: row(3, 3.0)}
        good = {s: row(s, 2.0) for s in range(4)}
        ours = {0: row(0, 2.5), 1: row(1, 1.9), 2: row(2, 1.0), 3: row(3, None)}
        assert benchmark.way_back(ours, bad, good, in_nats=True) == pytest.approx([0.5, 1.1, 0.0])


class TestBenchmark:
    @pytest.fixture
    def options(self, monkeypatch, tmp_path):
        monkeypatch.setitem(PROBLEMS, "letters", lambda: TEXT)
        played = []
        play = benchmark.play

        def counted(task):
            played.append(task)
            return play(task)

        monkeypatch.setattr(benchmark, "play", counted)
        options = argparse.Namespace(
            problems=["letters"],
            starts=["sensible", "slow"],
            methods=["constant", "wsd", "trivial augment"],
            rounds_scale=1,
            seeds=2,
            first_seed=4,
            processes=1,
            store="short",
            results=tmp_path,
            again=False,
            proof=False,
        )
        return options, played

    def test_what_is_stored_is_skipped_unless_asked_for_again(self, options):
        options, played = options
        wanted = benchmark.tasks(options)
        assert len(wanted) == 2 * 2 * 2  # no augmentation of text
        benchmark.measure(options, wanted[:3])
        first = rows_of("short", options.results)
        benchmark.measure(options, wanted)
        assert played == wanted
        rows = rows_of("short", options.results)
        assert rows[:3] == first
        assert [benchmark.key_of(row) for row in rows] == wanted
        options.again = True
        benchmark.measure(options, wanted[:1])
        assert len(played) == 9
        assert len(rows_of("short", options.results)) == 8

    def test_an_interrupted_measurement_keeps_its_rows(self, options, monkeypatch):
        options, played = options
        wanted = benchmark.tasks(options)
        play = benchmark.play

        def interrupted(task):
            if len(played) == 2:
                raise KeyboardInterrupt
            return play(task)

        monkeypatch.setattr(benchmark, "play", interrupted)
        with pytest.raises(KeyboardInterrupt):
            benchmark.measure(options, wanted)
        assert [benchmark.key_of(row) for row in rows_of("short", options.results)] == wanted[:2]

    def test_scales_are_stored_side_by_side(self, options):
        options, _ = options
        options.starts, options.methods, options.seeds = ["sensible"], ["constant"], 1
        benchmark.measure(options, benchmark.tasks(options))
        options.rounds_scale = 3
        benchmark.measure(options, benchmark.tasks(options))
        assert [r["rounds"] for r in rows_of("short", options.results)] == [10, 30]

    def test_the_table_compares_with_the_sensible_start(self, options):
        options, _ = options
        wanted = benchmark.tasks(options)
        benchmark.measure(options, wanted)
        said = benchmark.printed(rows_of("short", options.results), wanted)
        titles = [line for line in said.splitlines() if line.startswith("letters")]
        assert [title.split("seeds")[0].strip() for title in titles] == [
            "letters, sensible",
            "letters, slow",
        ]
        assert "least" not in titles[0]
        assert "least" in titles[1]
        own = next(line for line in said.splitlines() if line.strip().startswith("constant"))
        assert "+0.0000 (+0.0000 to +0.0000)" in own
        slow = said.splitlines()[-2]
        assert "0%" in slow

    def test_the_proof_is_of_the_constant_default(self, options, capsys, monkeypatch):
        options, _ = options
        monkeypatch.setattr(benchmark, "sweep_parser", lambda *_, **__: Parsed(options))
        options.proof = True
        benchmark.main([])
        rows = rows_of("short-proof", options.results)
        assert [(r["start"], r["method"]) for r in rows] == [("sensible", "constant")] * 2
        run = TEXT.setup(4)
        for _ in range(8):
            run.train_round(TEXT.default)
        assert rows[0]["loss at 80%"] == run.test().loss
        assert "80 %" in capsys.readouterr().out

    def test_a_method_without_its_package_is_left_out(self, monkeypatch, capsys):
        monkeypatch.setattr(benchmark, "find_spec", lambda _: None)
        assert benchmark.installed(["constant", "prodigy"]) == ["constant"]
        assert "prodigyopt" in capsys.readouterr().out


class Parsed:
    def __init__(self, options):
        self.options = options

    def add_argument(self, *_, **__):
        """Options are given."""

    def parse_args(self, arguments):
        return self.options


class TestForesight:
    ROWS: ClassVar = [
        {"problem": p, "share": 0.1, "seed": s, "raw 2": known, "constant": end}
        for p, s, known, end in [
            ("a", 0, 1.0, 2.0),
            ("a", 0, 2.0, 3.0),
            ("a", 0, 1.5, 1.99),
            ("a", 1, 0.5, None),  # diverged, and told so by nothing
            ("a", 1, 0.7, 1.0),
            ("b", 0, 0.1, 9.0),
        ]
    ]

    def test_pairs_of_one_state_are_compared(self):
        assert foresight.pairs_in_order(self.ROWS, "constant", 0.0) == {"raw 2": 2 / 4}

    def test_pairs_that_end_level_are_left_out(self):
        assert foresight.pairs_in_order(self.ROWS, "constant", 0.02) == {"raw 2": 2 / 3}
