"""Runs as tables on a terminal, printed by the library Rich if it is installed."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from botorch_costly.plain import config_text
from botorch_costly.records import Decision
from botorch_costly.reports.saved_run import SavedRun
from botorch_costly.reports.text import (
    facts_of,
    filled,
    grounds_of,
    latest_queries,
    outcome_cells,
    outcome_setting,
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
    if run.reasons:
        yield "reasons", *_reasons(run)
    if latest := latest_queries(run):
        yield f"latest {run.queried}", *_table_of(run, latest)


def _reasons(run: SavedRun) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    reasons = [("query" if query else "skip", str(count), why) for query, why, count in run.reasons]
    names = ("decision", f"{run.unit}s", "reason")
    return (names[1:], [reason[1:] for reason in reasons]) if run.is_search else (names, reasons)


def _table_of(
    run: SavedRun, queries: Sequence[Decision]
) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    cells = [outcome_cells(run, query) for query in queries]
    configs = [config_text(outcome_setting(run, query)) for query in queries]
    rows = [
        (str(query.round), *outcome.values(), config)
        for query, outcome, config in zip(queries, cells, configs, strict=True)
    ]
    return filled((run.unit, *cells[0], "configuration"), rows)


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
