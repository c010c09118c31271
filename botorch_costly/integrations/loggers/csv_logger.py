"""A log as a table of comma-separated values: one row a round, written at once."""

import csv
import io
import itertools
import os
import shutil
from collections.abc import Collection, Iterable
from pathlib import Path

from botorch_costly.ask_tell.rows import cell_of
from botorch_costly.errors import check
from botorch_costly.files import replacing
from botorch_costly.integrations.loggers.entry import LogEntry
from botorch_costly.integrations.loggers.logger import Logger


class CsvLogger(Logger):
    """Writes a row a round to a file, which can be read at any time.

    A run that is resumed goes on in its file: rows of rounds that are played again are replaced, and so
    are rewards that were told late and are not told yet in the state. Where rows would be lost, or the
    file is of another run, a copy of it is kept first, as ``<name>.1``, ``<name>.2`` and so on. A reward
    that is told late has another row of its round. The file is made with the first row, so that of the
    processes of a run only the one that logs writes it.

    Args:
        path: Of the file; its folder is made if it is not there.

    Raises:
        InvalidArgumentError: If the path is a folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        check(not self.path.is_dir(), "path", "a file", str(path))
        self._first = 0.0  # rows of this round and later ones are outdated
        self._untold: frozenset[int] = frozenset()  # and those that say what came of these rounds
        self._is_prepared = False

    def begin(self, round: int) -> None:
        """Continue the file before this round."""
        self._first, self._untold, self._is_prepared = round, frozenset(), False

    def reopen(self, rounds: Collection[int]) -> None:
        """Continue the file without what it says was told of these rounds."""
        self._untold = frozenset(rounds)

    def log(self, entry: LogEntry) -> None:
        """Write a row."""
        row = {name: cell_of(value) for name, value in entry.row().items()}
        if not self._is_prepared:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            _prepare(self.path, list(row), self._first, self._untold)
            self._is_prepared = True
        with open(self.path, "a", encoding="utf-8", newline="") as file:
            file.write(_line(row.values()))


def _prepare(path: Path, columns: list[str], first: float, untold: Collection[int]) -> None:
    """Bring a file into the state in which the row of round ``first`` comes next.

    Args:
        path: Of the file.
        columns: Of the run.
        first: Rows of this round and later ones are outdated.
        untold: Rounds before it of which nothing was told yet.
    """

    def stays(row: list[str]) -> bool:
        if len(row) != len(columns):
            return False  # it is no row of ours
        cells = dict(zip(columns, row, strict=True))
        tells = cells["reward"] != "" or cells["failed"] == str(True)
        return float(cells["round"]) < first and not (tells and int(cells["round"]) in untold)

    text = path.read_text(encoding="utf-8") if path.exists() else ""
    header, *rows = csv.reader(io.StringIO(text, newline="")) if text else [[]]
    # The last row of a process that was killed may be a part of one.
    rows = rows if text.endswith("\n") else rows[:-1]
    kept = list(filter(stays, rows)) if header == columns else []
    content = "".join(map(_line, [columns, *kept]))
    if content == text:
        return
    if text:
        shutil.copy2(path, _unused(path))
    with replacing(path) as file:
        file.write(content.encode())


def _unused(path: Path) -> Path:
    names = (path.with_name(f"{path.name}.{number}") for number in itertools.count(1))
    return next(name for name in names if not name.exists())


def _line(cells: Iterable[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()
