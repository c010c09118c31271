"""A run is read from its state alone, whatever tuner made it."""

import math

import pytest
import torch

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError, StateMismatchError
from botorch_costly.reports import SavedRun, rows_of, saved_runs, text_of
from tests.reports.running import FAILED, SPACE, START, UNTOLD, played, played_twins, saved


@pytest.fixture(scope="module")
def tuner():
    return played(query=bc.BernoulliQuery(1.0), limits=bc.Limits(max_queries=9))


def test_options_are_read_and_the_schedule_is_that_of_the_tuner(tuner):
    run = SavedRun.from_state(tuner.state_dict())
    assert (run.horizon, run.budget, run.maximize) == (40, 9, True)
    assert run.schedule() == tuner.schedule()
    assert run.best.reward == max(o.reward for o in tuner.observations if o.reward is not None)
    assert run.seconds == 1.5 * len(tuner.observations)


def test_the_least_loss_is_the_best():
    free = bc.Limits(rate_factor=math.inf)  # so that rewards differ soon
    run = SavedRun.from_state(played(maximize=False, limits=free).state_dict())
    rewards = [o.reward for o in run.observations if o.reward is not None]
    assert len(set(rewards)) > 1
    assert run.best.reward == min(rewards)


@pytest.mark.parametrize(("metric", "best"), [("loss", 0.2), ("accuracy", 0.6)])
def test_of_metrics_the_best_is_that_of_their_kind(metric, best):
    """Kind: a direction is taken from a default, and the worst is called the best."""
    several = bc.PopulationTuner(SPACE, 40, members=2, metric=metric)
    for value in (0.4, 0.2, 0.6, 0.5):
        several.tell(several.ask(), [value, value])
    for tuner_ in (played_twins(metric), several):
        run = SavedRun.from_state(tuner_.state_dict())
        assert run.best.reward == best
        assert f"best {metric} told: {best}" in text_of(run)


def test_the_text_tells_what_was_paid_and_why(tuner):
    text = text_of(SavedRun.from_state(tuner.state_dict(), "mine"))
    queries = tuner.queries
    assert "run: mine (OnlineTuner)\nrounds: 16 of 40\n" in text
    assert f"queries: {queries} ({queries / 16:.0%} of the rounds), 1 failed, 1 not told" in text
    assert "query rule: BernoulliQuery(rate=1.0)" in text
    assert f"spent: {queries} of 9 queries, {1.5 * (queries - 1):.4g} seconds" in text
    counts = [int(line.split()[0]) for line in text.splitlines() if " query  " in line]
    assert sum(counts) == queries


def test_the_text_tells_what_came_of_the_latest_queries():
    tuner = played(rounds=10)
    lines = text_of(SavedRun.from_state(tuner.state_dict())).partition("latest queries:\n")[2]
    first, second, *_ = tuner.decisions[1::2]
    rows = lines.splitlines()
    assert rows[0].startswith(f"  round 1: lr={first.config['lr']:.4g}, depth=2, ")
    assert rows[1].endswith(f"; {second.config['lr']:.4g}")
    assert [line.rpartition("; ")[2] for line in rows[2:4]] == ["failed", "not told"]


def test_rows_have_the_columns_of_logs(tuner):
    rows = rows_of(SavedRun.from_state(tuner.state_dict()))
    first, failed, untold = rows[0], rows[FAILED], rows[UNTOLD]
    assert {name: first[f"config/{name}"] for name in START} == dict(START)
    assert (failed["failed"], failed["reward"], failed["query_seconds"]) == (True, None, 1.5)
    assert (untold["query"], untold["failed"], untold["query_seconds"]) == (True, False, None)


def test_states_are_found_wherever_they_are_in_a_file(tmp_path, tuner):
    path, state = tmp_path / "mine.pt", tuner.state_dict()
    torch.save(state, path)
    assert [run.name for run in saved_runs(path)] == ["tuner"]
    torch.save({"epoch": 3, "session": {"tuner": state}, "other": state}, path)
    assert [run.name for run in saved_runs(path)] == ["session.tuner", "other"]


def test_a_run_of_which_rounds_were_forgotten_says_so():
    run = SavedRun.from_state(played(limits=bc.Limits(keep_rounds=12)).state_dict())
    assert "rounds: 16 of 40, 12 of them kept" in text_of(run)


def test_a_run_that_has_not_begun_is_described():
    run = SavedRun.from_state(played(rounds=0).state_dict())
    assert "rounds: 0 of 40\nqueries: 0, 0 failed" in text_of(run)
    assert (run.best, run.seconds, run.cost) == (None, None, None)
    with pytest.raises(InvalidArgumentError):
        run.schedule()


def test_what_is_no_state_is_refused(tmp_path, tuner):
    state = tuner.state_dict()
    for damaged in (
        {**state, "header": {**state["header"], "version": "1"}},
        {**state, "ledger": {**state["ledger"], "suggestions": "[{}]"}},
        {**state, "ledger": {**state["ledger"], "outcomes": "["}},
        {**state, "ledger": {}},
        {},
    ):
        with pytest.raises(StateMismatchError):
            SavedRun.from_state(damaged)
    torch.save({"network": {"weight": torch.zeros(2)}}, tmp_path / "network.pt")
    with pytest.raises(StateMismatchError, match="state of a tuner"):
        saved_runs(tmp_path / "network.pt")


@pytest.mark.parametrize("entry", ["tells", "records", "definition"])
def test_a_state_that_does_not_describe_its_tuner_says_what_to_do(entry):
    state = played(rounds=3).state_dict()
    older = {**state, "header": {k: v for k, v in state["header"].items() if k != entry}}
    with pytest.raises(StateMismatchError, match="load an older one into its tuner"):
        SavedRun.from_state(older)
    played(rounds=0).load_state_dict(older)  # which goes on from it


@pytest.mark.parametrize(
    ("entry", "wrong"),
    [
        ("definition", "{"),
        ("definition", "[]"),
        ("definition", '{"parameters": [{"name": "lr", "type": "Real", "low": 2, "high": 1}]}'),
        ("definition", '{"parameters": [{"name": "lr", "type": "print"}]}'),
        ("records", "Decision"),
        ("records", "int str"),
    ],
)
def test_a_damaged_description_is_refused(entry, wrong, tuner):
    state = tuner.state_dict()
    with pytest.raises(StateMismatchError):
        SavedRun.from_state({**state, "header": {**state["header"], entry: wrong}})


def test_the_file_of_a_run_holds_it(tmp_path, tuner):
    (run,) = saved_runs(saved(tmp_path, tuner))
    assert run.decisions == tuner.decisions
    assert run.space == SPACE
