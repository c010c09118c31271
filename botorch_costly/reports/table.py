"""A run as a table: one row a round, in the columns that logs have."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

from botorch_costly.records import Observation
from botorch_costly.reports.saved_run import SavedRun
from botorch_costly.schedule import Schedule

_OF_THE_DECISION = ("round", "config")  # what an observation repeats of it
_UNTOLD = {"reward": None, "failed": False, "seconds": None}


def rows_of(run: SavedRun | Schedule) -> list[dict[str, Any]]:
    """Return a row a round, in plain values; what is not known is None.

    Args:
        run: A run: decisions, what was told of them, and values as ``config/<name>``. Or a schedule:
            rounds and values.
    """
    if isinstance(run, Schedule):
        played = zip(run.rounds, run.replay(), strict=True)
        return [_flat({"round": round, "config": dict(config)}) for round, config in played]
    told = {one.round: _told(one) for one in run.observations}
    return [_flat({**one.to_dict(), **_UNTOLD, **told.get(one.round, {})}) for one in run.decisions]


def csv_of(run: SavedRun | Schedule) -> str:
    """Return ``rows_of`` as comma-separated values with a line of names; None is an empty cell."""
    rows = rows_of(run)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_cell(row.get(name)) for name in columns])
    return text.getvalue()


def _told(observation: Observation) -> dict[str, Any]:
    values = observation.to_dict()
    return {name: value for name, value in values.items() if name not in _OF_THE_DECISION}


def _flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with those of a mapping as ``<mapping>/<name>``, configurations last."""
    row = {name: value for name, value in values.items() if not isinstance(value, Mapping)}
    if "seconds" in row:
        row["query_seconds"] = row.pop("seconds")
    for mapping in sorted((k for k in values if k not in row and k != "seconds"), reverse=True):
        row |= {f"{mapping}/{name}": value for name, value in values[mapping].items()}
    return row


def _cell(value: Any) -> str:
    if value is None:
        return ""
    listed = isinstance(value, Sequence) and not isinstance(value, str)
    return json.dumps(value) if listed else str(value)
