"""Sessions with a changed constant, and of other lengths: what is played, and what the tables say."""

import math

import pytest

from benchmarks.suite.compute_bound import constants, lengths
from benchmarks.suite.compute_bound.account import begin
from benchmarks.suite.compute_bound.problems import PROBLEMS
from botorch_costly.tuners.twins.constants import CONSTANTS
from tests.benchmarks.test_compute_bound import TEXT


@pytest.fixture
def letters(monkeypatch):
    monkeypatch.setitem(PROBLEMS, "letters", lambda: TEXT)
    return "letters"


class TestConstants:
    def test_a_constant_changes_within_the_block_alone(self):
        before = CONSTANTS.search_rounds, CONSTANTS.strong
        with constants.changed("search_rounds", 0.5), constants.changed("strong", 2.0):
            assert before[0] // 2 == CONSTANTS.search_rounds
            assert pytest.approx(2 * before[1]) == CONSTANTS.strong
        with pytest.raises(ZeroDivisionError), constants.changed("strong", 2.0):
            raise ZeroDivisionError
        assert (CONSTANTS.search_rounds, CONSTANTS.strong) == before

    def test_a_run_is_played_with_the_changed_constant(self, letters, monkeypatch):
        heard = []

        def by_session(problem, start, seed):
            heard.append(CONSTANTS.first_rounds)
            return begin(problem, start, seed).result()

        monkeypatch.setattr(constants, "by_session", by_session)
        task = constants.Task(letters, "sensible", constants.UNCHANGED, 1.0, 3)
        rows = [constants.play(task)]
        rows.append(constants.play(task._replace(constant="first_rounds", factor=2.0)))
        assert heard == [CONSTANTS.first_rounds, 2 * CONSTANTS.first_rounds]
        assert [row["constant"] for row in rows] == [constants.UNCHANGED, "first_rounds"]

    def test_the_table(self):
        key = constants.Task("p", "sensible", constants.UNCHANGED, 1.0, 0)
        rows = []
        for seed in (0, 1):
            base = key._replace(seed=seed)
            rows.append({**base._asdict(), "loss": 1.0, "given_back": 4})
            half = base._replace(constant="strong", factor=0.5)
            rows.append({**half._asdict(), "loss": math.e ** (0.2 * seed), "given_back": 7})
            twice = base._replace(constant="strong", factor=2.0)
            rows.append({**twice._asdict(), "loss": 1.0 if seed else None, "given_back": 4})
        lines = [line.split() for line in constants.text(rows).splitlines()]
        assert lines[1] == ["strong", "0.5", "+0.1000", "+0.2000", "1", "of", "2", "+3.0", "yes"]
        assert lines[2] == ["strong", "2", "+0.0000", "+0.0000", "1", "of", "2", "+0.0", "lost"]


class TestLengths:
    def test_a_run_lasts_for_so_many_steps(self, letters):
        row = lengths.play(lengths.Task(letters, 20 * TEXT.steps, "wsd", 0))
        assert row["horizon"] == 20
        assert row["given_back"] == 0
        assert math.isfinite(row["loss"])

    def test_the_table(self):
        rows = []
        for steps, loss, back in ((100, 1.0, 0), (1000, math.e**-0.5, 10)):
            key = {"problem": "p", "steps": steps, "seed": 0, "horizon": steps // 5}
            rows.append({**key, "method": "session", "loss": loss, "given_back": back})
            rows.append({**key, "method": "wsd", "loss": 1.0, "given_back": 0})
        rows.append({**rows[-1], "problem": "q"})  # without a session
        lines = lengths.text(rows).splitlines()
        assert lines[1].split() == ["p", "+0.000", "0.0%", "-0.500", "5.0%"]
        assert lines[2].split() == ["q"]
