"""Schedules: held between entries, replayed round by round, read back from JSON."""

import json
import pickle

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from botorch_costly.errors import InvalidArgumentError, InvalidConfigError, StateMismatchError
from botorch_costly.records import Decision
from botorch_costly.schedule import Schedule
from botorch_costly.space import Choice, Real, SearchSpace

SPACE = SearchSpace({"lr": Real(1e-3, 1.0, log=True), "policy": Choice(["none", "light"])})
A, B = {"lr": 0.1, "policy": "none"}, {"lr": 1 / 3, "policy": "light"}


@pytest.fixture
def schedule():
    return Schedule([(2, A), (3, A), (5, B), (8, B)], SPACE)


def test_configurations_are_held_until_the_next(schedule):
    held = {0: A, 1: A, 2: A, 4: A, 5: B, 7: B, 8: B, 100: B}
    assert {round: dict(schedule[round]) for round in held} == held


def test_replay_gives_every_round(schedule):
    assert list(schedule.rounds) == [2, 3, 4, 5, 6, 7, 8]
    assert list(schedule.replay()) == list(schedule) == [A, A, A, B, B, B, B]
    assert len(schedule) == 7


def test_equal_neighbours_are_stored_once(schedule):
    assert schedule.entries == ((2, A), (5, B))
    assert len(json.loads(schedule.to_json())["entries"]) == 2
    assert repr(schedule) == "Schedule(rounds 2 to 8, 1 changes)"


def test_configurations_that_return_are_stored_again():
    assert len(Schedule([(0, A), (1, B), (2, A)]).entries) == 3


def test_decisions_make_a_schedule():
    decisions = [
        Decision(round, config, query=round % 2 == 0, reason="")
        for round, config in enumerate([A, A, B])
    ]
    schedule = Schedule.from_decisions(decisions, SPACE)
    assert [dict(config) for config in schedule] == [A, A, B]
    assert schedule.space == SPACE


@settings(derandomize=True, deadline=None, max_examples=50)
@given(
    st.dictionaries(st.integers(0, 30), st.sampled_from([A, B]), min_size=1),
    st.sampled_from([SPACE, None]),
)
def test_json_loses_nothing(played, space):
    schedule = Schedule(sorted(played.items(), key=lambda entry: entry[0]), space)
    back = Schedule.from_json(schedule.to_json())
    assert back == schedule
    assert hash(back) == hash(schedule)
    assert [dict(c) for c in back] == [dict(c) for c in schedule]
    assert back.space == space
    assert len(schedule) == max(played) - min(played) + 1


def test_files(schedule, tmp_path):
    path = tmp_path / "schedule.json"
    text = schedule.to_json(path)
    assert Schedule.from_json(path) == Schedule.from_json(str(path)) == Schedule.from_json(text)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(StateMismatchError):
        Schedule.from_json(path)


def test_files_that_are_missing_are_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path in (tmp_path / "absent", str(tmp_path / "absent"), "absent.json", "runs/absent"):
        with pytest.raises(FileNotFoundError, match="absent"):
            Schedule.from_json(path)
    with pytest.raises(StateMismatchError, match="path of a file"):
        Schedule.from_json("absent")  # neither JSON nor like a path
    text = Schedule([(0, {"data": "a/b.json"})]).to_json()
    assert Schedule.from_json(text)[0] == {"data": "a/b.json"}


def test_a_file_is_replaced_as_a_whole(schedule, tmp_path, monkeypatch):
    path = tmp_path / "schedule.json"
    schedule.to_json(path)

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", killed)
    with pytest.raises(KeyboardInterrupt):
        Schedule([(0, A)]).to_json(path)
    assert Schedule.from_json(path) == schedule
    assert list(tmp_path.iterdir()) == [path]


def test_tuples_survive_json():
    space = SearchSpace({"betas": Choice([(0.9, 0.999), (0.8, 0.9)]), "lr": Real(0, 1)})
    for kept in (space, None):
        schedule = Schedule([(0, {"betas": (0.8, 0.9), "lr": 0.5})], kept)
        back = Schedule.from_json(schedule.to_json())
        assert back == schedule
        assert back[0]["betas"] == (0.8, 0.9)


def test_scalars_become_python_numbers(tmp_path):
    entries = [(np.int64(0), {"lr": np.float32(0.5), "policy": "none"}), (2.0, A)]
    for space in (SPACE, None):
        schedule = Schedule(entries, space, last_round=3.0)
        assert schedule[0]["lr"] == 0.5
        assert Schedule.from_json(schedule.to_json()) == schedule
        assert schedule.rounds == range(4)


def test_schedules_pickle(schedule):
    assert pickle.loads(pickle.dumps(schedule)) == schedule
    assert schedule != Schedule(schedule.entries, SPACE)  # ends earlier
    assert schedule != schedule.entries


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"},
        {"version": 2},
        {"entries": []},
        {"entries": 3},
        {"entries": [[0]]},
        {"entries": [[0, A], [0, B]]},
        {"entries": [[0, {"lr": 7.0, "policy": "none"}]]},
        {"entries": [[0, [1]]]},
        {"entries": [[0, 1]]},
        {"entries": [[0, {"lr": {}}]]},
        {"last_round": 4},
        {"last_round": "8"},
        {"space": {"parameters": []}},
        {"space": 3},
    ],
)
def test_malformed_documents_are_named(schedule, change):
    document = {**json.loads(schedule.to_json()), **change}
    with pytest.raises(StateMismatchError, match="schedule: Expected"):
        Schedule.from_json(json.dumps(document))


@pytest.mark.parametrize("text", ["", "not json", "{", "[1, 2", "[1, 2]", "3", "null", "{}"])
def test_malformed_text_is_named(text):
    with pytest.raises(StateMismatchError, match="schedule: Expected"):
        Schedule.from_json(text)


@pytest.mark.parametrize(
    "entries",
    [[], [(1, A), (1, B)], [(2, A), (1, B)], [(-1, A)], [(0.5, A)], [0], [(0, A, B)]],
)
def test_impossible_entries_are_named(entries):
    with pytest.raises(InvalidArgumentError, match=r"Expected .*; Received "):
        Schedule(entries)


def test_impossible_configurations_and_rounds_are_named(schedule):
    with pytest.raises(InvalidConfigError, match="lr"):
        Schedule([(0, {**A, "lr": 2.0})], SPACE)
    with pytest.raises(InvalidConfigError):
        Schedule([(0, {"layers": [1, 2]})])
    with pytest.raises(InvalidArgumentError, match="last_round"):
        Schedule([(3, A)], last_round=2)
    for round in (-1, 1.5, "a"):
        with pytest.raises(InvalidArgumentError, match="round"):
            schedule[round]
