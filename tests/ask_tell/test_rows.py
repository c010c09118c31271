"""A round as a row: logs and reports have the columns in common, in the order that files rely on."""

import csv
import io
import json

import pytest

import botorch_costly as bc
from botorch_costly.ask_tell.rows import cell_of, row_of
from botorch_costly.integrations.loggers import LogEntry
from botorch_costly.records import TwinDecision
from botorch_costly.reports import SavedRun, csv_of, rows_of

CONFIG = {"lr": 0.1, "on": ("a", None), "policy": "light"}
DECISION = bc.Decision(3, CONFIG, query=True, reason="rivals", confidence=0.7, interval=1)
TOLD = bc.Observation(3, CONFIG, 0.25, seconds=1.5)
CONFIG_COLUMNS = ["config/lr", "config/on", "config/policy"]


def test_the_columns_of_a_log_keep_their_order():
    row = LogEntry(decision=DECISION, observation=TOLD, queries=2, seconds=9.0).row()
    decided = ["round", "interval", "query", "reason", "confidence"]
    told = ["reward", "metric", "failed", "query_seconds"]
    stands = ["queries", "budget", "seconds", "exploration_cost", "tuner_ms"]
    assert list(row) == [*decided, *told, *stands, *CONFIG_COLUMNS]
    assert list(row.values())[:9] == [3, 1, True, "rivals", 0.7, 0.25, None, False, 1.5]
    assert row["seconds"] == 9.0
    assert [row[name] for name in CONFIG_COLUMNS] == [0.1, '["a", null]', "light"]


def test_the_columns_of_a_report_keep_their_order():
    row = row_of(DECISION, TOLD)
    decided = ["round", "query", "reason", "confidence", "interval"]
    assert list(row) == [*decided, "reward", "metric", "failed", "query_seconds", *CONFIG_COLUMNS]
    assert [row[name] for name in CONFIG_COLUMNS] == [0.1, ["a", None], "light"]


def test_what_logs_and_reports_share_is_the_same():
    logged = LogEntry(decision=DECISION, observation=TOLD).row()
    for name, value in row_of(DECISION, TOLD).items():
        assert cell_of(logged[name]) == cell_of(value), name


@pytest.mark.parametrize(
    ("observation", "told"),
    [
        (None, (None, False, None)),
        (bc.Observation(3, CONFIG), (None, False, None)),
        (bc.Observation(3, CONFIG, failed=True, seconds=2.0), (None, True, 2.0)),
    ],
)
def test_what_was_not_told_is_unknown(observation, told):
    row = row_of(DECISION, observation)
    assert (row["reward"], row["failed"], row["query_seconds"]) == told
    assert list(row) == list(row_of(DECISION, TOLD))


def test_the_configuration_before_schedules_stands_before_the_one_played():
    decision = TwinDecision(3, {"lr": 0.1}, query=False, reason="", peak={"lr": 0.4}, drop=(1, 2))
    row = row_of(decision)
    assert list(row)[-2:] == ["peak/lr", "config/lr"]
    assert (row["peak/lr"], row["config/lr"], row["drop"]) == (0.4, 0.1, [1, 2])
    assert [name for name in LogEntry(decision=decision).row() if "/" in name] == ["config/lr"]


def test_a_table_of_trainings_has_a_row_each():
    space = bc.SearchSpace({"lr": bc.Real(0.0, 1.0)})
    optimizer = bc.CurveOptimizer(space, iterations=4)
    decision = optimizer.ask()
    curve = [0.1 * step for step in range(1, decision.iterations + 1)]
    optimizer.tell(decision, curve=curve, cost=2.0)
    run = SavedRun.from_state(optimizer.state_dict())
    (row,) = rows_of(run)
    (read,) = csv.DictReader(io.StringIO(csv_of(run)))
    assert list(read) == list(row)
    assert list(row)[-2:] == ["query_seconds", "config/lr"]
    assert json.loads(read["curve"]) == curve
    assert (row["cost"], read["query_seconds"]) == (2.0, "")
