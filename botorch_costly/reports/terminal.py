"""Runs as tables on a terminal, printed by the library Rich if it is installed."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from botorch_costly.records import Decision
from botorch_costly.reports.saved_run import SavedRun
from botorch_costly.reports.text import (
    config_text,
    facts_of,
    grounds_of,
    latest_queries,
    metric_text,
    outcome_config,
    outcome_text,
    printable,
)

if TYPE_CHECKING:
    from rich.table import Table


def print_tables(runs: Sequence[Any], stream: TextIO) -> bool:
    """Print runs as tables if possible, and return whether they were printed.

    This is possible if the stream is a terminal, Rich is installed, and all ``runs`` are saved runs. Rich
    respects ``NO_COLOR`` and the width and encoding of the terminal.

    Args:
        runs: Saved runs or schedules.
        stream: Stream to print to.
    """
    if not stream.isatty() or not all(isinstance(run, SavedRun) for run in runs):
        return False
    try:
        from rich.console import Console
    except ImportError:
        return False
    console = Console(file=stream, highlight=False)
    for run in runs:
        for title, columns, rows in _sections(run):
            console.print(_table(title, columns, rows, console.encoding))
    return True


def _sections(run: SavedRun) -> Iterator[tuple[str, Sequence[str], Iterable[Sequence[str]]]]:
    """Yield the title, the columns and the rows of each table."""
    facts = [(title, text) for title, text in facts_of(run).items() if title != "run"]
    yield f"{run.name} ({run.kind})", (), facts
    if grounds := grounds_of(run):
        yield "diagnosis", (), [(line,) for line in grounds]
    reasons = [("query" if query else "skip", str(count), why) for query, why, count in run.reasons]
    if reasons:
        yield "reasons", ("decision", "rounds", "reason"), reasons
    queries = [
        (str(query.round), outcome_text(run, query), *_metric(run, query), _config(run, query))
        for query in latest_queries(run)
    ]
    if queries:
        metric = ("metric",) if run.measured else ()
        yield "latest queries", ("round", run.told_as, *metric, "configuration"), queries


def _metric(run: SavedRun, query: Decision) -> list[str]:
    """Return the cell of the metric; none in a run whose metrics were not told."""
    return [metric_text(run, query)] if run.measured else []


def _config(run: SavedRun, query: Decision) -> str:
    return config_text(outcome_config(run, query))


def _table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], encoding: str
) -> "Table":
    """Return a table whose cells contain neither markup nor control characters."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    def text(content: str, style: str = "") -> Text:
        return Text(printable(content, encoding), style=style)

    table = Table(
        title=text(title, "bold"),
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_header=bool(columns),
    )
    for name in columns:
        table.add_column(text(name), overflow="fold")
    for row in rows:
        table.add_row(*map(text, row))
    return table
