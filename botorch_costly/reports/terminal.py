"""Runs as tables on a terminal, by the library Rich where it is installed."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from botorch_costly.reports.saved_run import SavedRun
from botorch_costly.reports.text import (
    config_text,
    facts_of,
    latest_queries,
    outcome_config,
    outcome_text,
    printable,
)

if TYPE_CHECKING:
    from rich.table import Table


def print_tables(runs: Sequence[Any], stream: TextIO) -> bool:
    """Print runs as tables; print nothing and return False where that is not the thing to do.

    It is where the stream is a terminal, Rich is installed, and all that is to be printed are saved runs.
    Rich heeds ``NO_COLOR`` and the width and the encoding of the terminal.

    Args:
        runs: As ``saved_runs`` returns them.
        stream: Where to print.
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
    facts = {title: said for title, said in facts_of(run).items() if title != "run"}
    yield f"{run.name} ({run.kind})", (), facts.items()
    reasons = [("query" if query else "skip", str(count), why) for query, why, count in run.reasons]
    if reasons:
        yield "reasons", ("decision", "rounds", "reason"), reasons
    queries = [
        (str(one.round), outcome_text(run, one), config_text(outcome_config(run, one)))
        for one in latest_queries(run)
    ]
    if queries:
        yield "latest queries", ("round", run.told_as, "configuration"), queries


def _table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], encoding: str
) -> "Table":
    """Return a table whose cells are text as it is: no markup, and nothing that a terminal obeys."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    def text(said: str, style: str = "") -> Text:
        return Text(printable(said, encoding), style=style)

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
