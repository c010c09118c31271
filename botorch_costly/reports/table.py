"""A run as a table: one row a round, in the columns that logs have."""

import csv
import io
from typing import Any

from botorch_costly.ask_tell.rows import cell_of, columns_of, row_of
from botorch_costly.reports.saved_run import SavedRun
from botorch_costly.schedule import Schedule


def rows_of(run: SavedRun | Schedule) -> list[dict[str, Any]]:
    """Return a row a round, in plain values; what is not known is None.

    Args:
        run: A run: decisions, what was told of them, and values as ``config/<name>``. Or a schedule:
            rounds and values.
    """
    if isinstance(run, Schedule):
        played = zip(run.rounds, run.replay(), strict=True)
        return [{"round": round} | columns_of("config", config) for round, config in played]
    return [row_of(one, run.told.get(one.round)) for one in run.decisions]


def csv_of(run: SavedRun | Schedule) -> str:
    """Return ``rows_of`` as comma-separated values with a line of names; None is an empty cell."""
    rows = rows_of(run)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([cell_of(row.get(name)) for name in columns])
    return text.getvalue()
