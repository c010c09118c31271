"""A table of a run: whole after a kill, continued after a resume, and never in place of another one."""

import csv

import pytest

from botorch_costly.errors import InvalidArgumentError
from botorch_costly.integrations.loggers import CsvLogger
from tests.integrations.loggers.playing import Memory, cheap, logged, play, play_cheap, reward_of


def rows_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_table_has_what_the_entries_say(tmp_path):
    memory, path = Memory(), tmp_path / "new folder" / "run.csv"
    with logged(CsvLogger(path), memory) as tuner:
        play(tuner, 8, seconds=2.0)
    rows = rows_of(path)
    assert len(rows) == 8
    for row, entry in zip(rows, memory.entries, strict=True):
        expected = {k: "" if v is None else str(v) for k, v in entry.row().items()}
        assert row == expected
    assert {row["config/policy"] for row in rows} == {"none", 'a, "b"'}


def test_rows_can_be_read_while_the_run_goes_on(tmp_path):
    tuner = play_cheap(cheap(CsvLogger(tmp_path / "run.csv")), 4)
    assert [row["round"] for row in rows_of(tmp_path / "run.csv")] == ["0", "1", "2"]
    tuner.close()
    play_cheap(tuner, 1)
    tuner.close()
    assert [row["round"] for row in rows_of(tmp_path / "run.csv")] == ["0", "1", "2", "3", "4"]


def columns(path):
    return [{k: v for k, v in row.items() if k != "tuner_ms"} for row in rows_of(path)]


@pytest.mark.parametrize("torn", [False, True])
def test_a_resumed_run_continues_its_table_and_what_it_replaces_is_kept(tmp_path, torn):
    path, whole = tmp_path / "run.csv", tmp_path / "whole.csv"
    with cheap(CsvLogger(whole)) as tuner:
        play_cheap(tuner, 12)
    killed = cheap(CsvLogger(path))
    state = play_cheap(killed, 5).state_dict()
    play_cheap(killed, 3)
    if torn:
        with open(path, "a", encoding="utf-8") as file:
            file.write("7,7,Fal")
    before = path.read_text()
    resumed = cheap(CsvLogger(path))
    resumed.load_state_dict(state)
    play_cheap(resumed, 7)
    resumed.close()
    assert columns(path) == columns(whole)
    assert (tmp_path / "run.csv.1").read_text() == before


def late(tuner, waiting, until):
    """Play on until a round; each third reward comes two rounds late, and each sixth query fails."""
    while not tuner.decisions or tuner.decisions[-1].round < until:
        decision = tuner.ask()
        waiting.append(decision)
        for one in [one for one in waiting if one.round + 2 == decision.round]:
            waiting.remove(one)
            if one.round % 3 == 0:
                tuner.tell(one, float("nan") if one.round % 6 else reward_of(one))


@pytest.mark.parametrize("saved", range(1, 10))
def test_a_reward_that_was_told_late_after_the_state_was_saved_has_one_row(tmp_path, saved):
    path, whole = tmp_path / "run.csv", tmp_path / "whole.csv"
    with cheap(CsvLogger(whole)) as tuner:
        late(tuner, [], 14)
    waiting, killed = [], cheap(CsvLogger(path))
    late(killed, waiting, saved)
    state, waited = killed.state_dict(), list(waiting)
    late(killed, waiting, saved + 4)
    resumed = cheap(CsvLogger(path))
    resumed.load_state_dict(state)
    late(resumed, waited, 14)
    resumed.close()
    assert columns(path) == columns(whole)
    assert len([row for row in columns(path) if row["round"] == "3"]) == 2


@pytest.mark.parametrize("asked", [True, False])
def test_a_run_that_is_killed_between_a_save_and_the_next_round_lacks_no_row(tmp_path, asked):
    path, whole = tmp_path / "run.csv", tmp_path / "whole.csv"
    with cheap(CsvLogger(whole)) as tuner:
        play_cheap(tuner, 8)
    state = None
    for _ in range(8):
        tuner = cheap(CsvLogger(path))
        if state is not None:
            tuner.load_state_dict(state)
        state = play_cheap(tuner, 1).state_dict()
        if asked:
            tuner.ask()
    tuner.load_state_dict(state)
    tuner.close()
    assert columns(path) == columns(whole)


def test_a_row_that_is_none_of_the_table_is_left_out_of_what_goes_on(tmp_path):
    path = tmp_path / "run.csv"
    with cheap(CsvLogger(path)) as first:
        play_cheap(first, 2)
    path.write_text(path.read_text() + "a,note\n")
    second = cheap(CsvLogger(path))
    second.load_state_dict(first.state_dict())
    play_cheap(second, 1).close()
    assert [row["round"] for row in rows_of(path)] == list("012")
    assert (tmp_path / "run.csv.1").read_text().endswith("a,note\n")


def test_a_run_that_is_resumed_where_it_ended_adds_to_its_table(tmp_path):
    path = tmp_path / "run.csv"
    with cheap(CsvLogger(path)) as first:
        play_cheap(first, 4)
    state, before = first.state_dict(), path.read_text()
    second = cheap(CsvLogger(path))
    second.load_state_dict(state)
    play_cheap(second, 2)
    second.close()
    assert path.read_text().startswith(before)
    assert [row["round"] for row in rows_of(path)] == list("012345")
    assert list(tmp_path.iterdir()) == [path]


def test_the_table_of_another_run_is_kept(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text("something,else\n1,2\n")
    for _ in range(2):
        with cheap(CsvLogger(path)) as tuner:
            play_cheap(tuner, 2)
    assert (tmp_path / "run.csv.1").read_text() == "something,else\n1,2\n"
    assert len(rows_of(tmp_path / "run.csv.2")) == len(rows_of(path)) == 2


def test_a_logger_that_hears_nothing_makes_no_file(tmp_path):
    cheap(CsvLogger(tmp_path / "run.csv")).close()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InvalidArgumentError, match="a file"):
        CsvLogger(tmp_path)


# -- two runs in one file: the kind is that two writers of one path lose, or mix up, rows -------------


def of_run(path):
    """Return which rounds a table has, by the rate that each run plays."""
    return [(row["round"], row["config/lr"]) for row in rows_of(path)]


def expected_rows(seed, rounds):
    tuner = cheap(seed=seed)
    play_cheap(tuner, rounds)
    return [(str(one.round), str(one.config["lr"])) for one in tuner.decisions]


@pytest.mark.parametrize("begun", [0, 1, 4])
def test_a_run_whose_place_is_taken_goes_on_in_its_own_file(tmp_path, caplog, begun):
    path = tmp_path / "run.csv"
    first, second = cheap(CsvLogger(path)), cheap(CsvLogger(path), seed=1)
    play_cheap(first, begun)
    for _ in range(6):
        play_cheap(first, 1)
        play_cheap(second, 1)
    first.close()
    second.close()
    tables = [of_run(one) for one in (path, tmp_path / "run.csv.1")]
    wanted = [expected_rows(0, begun + 6), expected_rows(1, 6)]
    assert sorted(tables) == sorted(wanted)
    said = [record.message for record in caplog.records]
    assert len(said) == 1
    assert "another run started at this path" in said[0]


def test_several_runs_at_once_lose_no_row(tmp_path):
    path, seeds = tmp_path / "run[1].csv", range(4)
    runs = [cheap(CsvLogger(path), seed=seed) for seed in seeds]
    for _ in range(5):
        for run in runs:
            play_cheap(run, 1)
    for run in runs:
        run.close()
    tables = [of_run(one) for one in tmp_path.iterdir()]
    assert sorted(tables) == sorted(expected_rows(seed, 5) for seed in seeds)


def test_a_file_that_is_removed_is_begun_anew_with_its_header(tmp_path, caplog):
    path = tmp_path / "run.csv"
    tuner = play_cheap(cheap(CsvLogger(path)), 3)
    path.unlink()
    play_cheap(tuner, 2).close()
    assert [row["round"] for row in rows_of(path)] == ["2", "3", "4"]
    assert "has been removed" in caplog.text


def test_another_writer_of_the_same_file_is_reported(tmp_path, caplog):
    path = tmp_path / "run.csv"
    first = play_cheap(cheap(CsvLogger(path)), 3)
    second = cheap(CsvLogger(path))
    second.load_state_dict(first.state_dict())
    play_cheap(second, 2)
    play_cheap(first, 2)
    assert "another run writes to it as well" in caplog.text
    assert len(rows_of(path)) == 2 + 2 + 2


def test_one_logger_of_two_tuners_is_reported(tmp_path, caplog):
    logger = CsvLogger(tmp_path / "run.csv")
    first, second = cheap(logger), cheap(logger, seed=1)
    play_cheap(first, 2)
    assert caplog.text == ""
    play_cheap(second, 2)
    assert "is sent the rounds of two tuners" in caplog.text
    first.close()
    second.close()
    caplog.clear()
    with cheap(logger) as third:
        play_cheap(third, 2)
    assert caplog.text == ""


def test_a_disk_without_links_is_written_all_the_same(tmp_path, monkeypatch):
    def refused(*args):
        raise PermissionError

    monkeypatch.setattr("os.link", refused)
    for seed in range(2):
        with cheap(CsvLogger(tmp_path / "run.csv"), seed=seed) as tuner:
            play_cheap(tuner, 2)
    assert of_run(tmp_path / "run.csv") == expected_rows(1, 2)
    assert of_run(tmp_path / "run.csv.1") == expected_rows(0, 2)
