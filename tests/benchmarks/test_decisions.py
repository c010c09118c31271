"""The hash of decisions hears what is decided, and nothing else."""

import hashlib
import json
from dataclasses import replace

import pytest

from benchmarks import decisions
from benchmarks.decisions import Play, WatchedProblem, fingerprint, in_order, line_of, tune
from benchmarks.online_suite.policies import TunedPolicy
from benchmarks.online_suite.problems import digits_augmentation
from benchmarks.online_suite.runner import run_online
from botorch_costly import BernoulliQuery, Decision, Design, Hold, OnlineTuner

SPACE = decisions.SPACES["mixed"]
CONFIG = {"rate": 0.01, "layers": 3, "policy": "light", "share": 0.5}
MADE = [Decision(t, CONFIG, t % 2 == 0, "rivals") for t in range(4)]


class Fixed:
    """Makes the decisions it was given, as a tuner would."""

    space = SPACE

    def __init__(self, made):
        self.left = iter(made)

    def ask(self):
        return next(self.left)

    def tell(self, decision, reward):
        assert decision.query
        assert reward == 1.0


def hash_of(made, monkeypatch, group="tuner"):
    monkeypatch.setattr(decisions, "ROUNDS", len(made))
    return fingerprint(group, tune("a run", Fixed(made), lambda t, config: 1.0))


def test_reasons_and_confidences_do_not_count(monkeypatch):
    other = [replace(d, reason="chance", confidence=0.5, interval=0) for d in MADE]
    assert hash_of(other, monkeypatch) == hash_of(MADE, monkeypatch)


def test_the_order_of_a_configuration_is_that_of_the_space(monkeypatch):
    other = [replace(d, config=dict(reversed(CONFIG.items()))) for d in MADE]
    assert hash_of(other, monkeypatch) == hash_of(MADE, monkeypatch)


@pytest.mark.parametrize(
    "change",
    [
        {"config": {**CONFIG, "rate": 0.010000000000000002}},
        {"config": {**CONFIG, "layers": 4}},
        {"config": {**CONFIG, "policy": "none"}},
        {"query": True},
    ],
)
def test_one_value_or_one_query_counts(change, monkeypatch):
    other = [*MADE[:3], replace(MADE[3], **change)]
    count, found = hash_of(other, monkeypatch)
    assert (count, len(found)) == (4, decisions.DIGITS)
    assert found != hash_of(MADE, monkeypatch)[1]


def test_group_and_run_count(monkeypatch):
    assert hash_of(MADE, monkeypatch, "suite") != hash_of(MADE, monkeypatch)
    assert fingerprint("a", [Play("b", 0, [1], True)]) != fingerprint(
        "a", [Play("c", 0, [1], True)]
    )


def test_values_keep_all_their_digits_and_their_kind():
    line = line_of("tuner", Play("a run", 7, [0.1, 3, "3", True, None], False))
    assert json.loads(line) == ["tuner", "a run", 7, ["0.1", "3", "'3'", "True", "None"], False]


def test_what_is_done_to_a_network_is_what_was_decided():
    problem = digits_augmentation()
    watched = WatchedProblem(problem)
    tuner = OnlineTuner(
        problem.space, 8, BernoulliQuery(0.5), seed=1, design=Design(rounds=1), hold=Hold(share=0.0)
    )
    record = run_online(watched, TunedPolicy(tuner, guarded=True), seed=0, rounds=8)
    (run,) = watched.runs
    assert run.configs == [dict(d.config) for d in record.decisions]
    assert run.queries == {d.round for d in record.decisions if d.query}
    assert 0 < len(run.queries) < 8


def test_lines_of_chosen_groups_are_written(monkeypatch, tmp_path, capsys):
    def toy():
        return iter([Play("a run", t, [t / 3], t > 1) for t in range(3)])

    monkeypatch.setattr(decisions, "GROUPS", {"one": toy, "two": toy, "three": toy})
    decisions.main(["--groups", "one", "three", "--list", str(tmp_path / "all.jsonl")])
    printed = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [(name, count) for name, count, *_ in printed] == [("one", "3"), ("three", "3")]
    lines = (tmp_path / "all.jsonl").read_text().splitlines(keepends=True)
    assert [json.loads(line)[0] for line in lines] == ["one"] * 3 + ["three"] * 3
    found = hashlib.sha256("".join(lines[:3]).encode()).hexdigest()
    assert printed[0][-1] == found[: decisions.DIGITS]


def test_the_groups_are_listed(capsys):
    with pytest.raises(SystemExit):
        decisions.main(["--help"])
    printed = capsys.readouterr().out
    for name in ("demo", "table-a2", "priced", "suite", "tuner"):
        assert name in decisions.GROUPS
        assert name in printed


@pytest.mark.parametrize("kind", decisions.KINDS)
def test_a_tuner_decides_the_same_again(kind, monkeypatch):
    monkeypatch.setattr(decisions, "ROUNDS", 12)
    space = decisions.SPACES["arms"]

    def plays():
        tuner = decisions.KINDS[kind](space, 12)
        return list(tune("a run", tuner, decisions.hill(space, 0)))

    first = plays()
    assert fingerprint("tuner", first) == fingerprint("tuner", plays())
    assert in_order(space, {"clip": True, "policy": "a"}) == ["a", True]
    assert len(first) == 12
