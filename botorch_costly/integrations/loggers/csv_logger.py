"""A log as a table of comma-separated values: one row per round, written immediately."""

import contextlib
import csv
import glob
import io
import logging
import os
import shutil
import uuid
from collections.abc import Collection, Iterable
from pathlib import Path

from botorch_costly.ask_tell.rows import cell_of
from botorch_costly.calls import advised
from botorch_costly.errors import check
from botorch_costly.files import numbered
from botorch_costly.integrations.loggers.entry import LogEntry
from botorch_costly.integrations.loggers.logger import Logger

_logger = logging.getLogger(__name__)


@advised
class CsvLogger(Logger):
    """Writes a row per round to a file, which can be read at any time.

    A resumed run continues in its file. Rows of rounds that are played again are replaced, and so are
    rows of late rewards that the loaded state does not have yet. If rows would be lost, or the file
    belongs to another run, the old file is kept as ``<name>.1``, ``<name>.2`` and so on. A late reward
    adds another row for its round. The file is created with the first row, so that only the logging
    process of a run writes it.

    Each run needs its own file. If another run starts at the same path and renames the file, the earlier
    run follows its file to the new name, with one warning.

    Args:
        path: Path of the file; its folder is created if it does not exist.

    Raises:
        InvalidArgumentError: If the path is a folder.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        check(not self.path.is_dir(), "path", "a file", str(path))
        self._first = 0.0  # rows of this round and later ones are outdated
        self._untold: frozenset[int] = frozenset()  # outcomes of these rounds are outdated, too
        self._file: _File | None = None  # None until it is prepared
        self._has_warned = False

    def begin(self, round: int) -> None:
        """Continue the file before this round."""
        self._first, self._untold, self._file = round, frozenset(), None

    def reopen(self, rounds: Collection[int]) -> None:
        """Continue the file without outcomes of these rounds."""
        self._untold = frozenset(rounds)

    def log(self, entry: LogEntry) -> None:
        """Write a row."""
        row = {name: cell_of(value) for name, value in entry.row().items()}
        if self._file is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = _prepared(self.path, list(row), self._first, self._untold)
        elif not self._file.is_at(self._file.path):
            self._follow(self._file, list(row))
        if self._file.append(_line(row.values())) and not self._has_warned:
            self._warn("another run writes to it as well")

    def _follow(self, file: "_File", columns: list[str]) -> None:
        """Find a file that was renamed; begin another one if it was removed."""
        kept = file.path.parent.glob(f"{glob.escape(self.path.name)}.*")
        renamed = next((path for path in (self.path, *kept) if file.is_at(path)), None)
        if renamed is None:
            self._file = _prepared(self.path, columns, 0, frozenset())
            self._warn(f"its file has been removed; further rows are in {self._file.path}")
        else:
            file.path = renamed
            self._warn(f"another run started at this path; this run continues in {renamed}")

    def _warn(self, event: str) -> None:
        self._has_warned = True
        _logger.warning("The log %s: %s. Use one file for each run.", self.path, event)


class _File:
    """A file that rows are appended to, identified by device and inode, not by name.

    Args:
        path: Present path of the file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        status = path.stat()
        self._key, self._size = (status.st_dev, status.st_ino), status.st_size

    def is_at(self, path: Path) -> bool:
        """Return whether this file is at a path."""
        try:
            status = path.stat()
        except OSError:
            return False
        return self._key == (status.st_dev, status.st_ino)

    def append(self, line: str) -> bool:
        """Append a line; return whether another writer has appended to the file since the last line."""
        with open(self.path, "a", encoding="utf-8", newline="") as file:
            file.write(line)
            file.flush()
            size = os.fstat(file.fileno()).st_size
        grown, self._size = size - self._size, size
        return grown > len(line.encode())


def _prepared(path: Path, columns: list[str], first: float, untold: Collection[int]) -> _File:
    """Return the file at a path, ready for the row of round ``first``.

    Args:
        path: Path of the file.
        columns: Columns of the run.
        first: Rows of this round and later ones are outdated.
        untold: Earlier rounds without an outcome yet.
    """
    target = Path(os.path.realpath(path))
    while True:
        text = target.read_text(encoding="utf-8") if target.exists() else ""
        content = _continued(text, columns, first, untold)
        if content == text or _replaced(target, content, kept=text != ""):
            return _File(target)


def _continued(text: str, columns: list[str], first: float, untold: Collection[int]) -> str:
    """Return the new text of a file with this text."""

    def stays(row: list[str]) -> bool:
        if len(row) != len(columns):
            return False  # a row of another table
        cells = dict(zip(columns, row, strict=True))
        tells = cells["reward"] != "" or cells["failed"] == str(True)
        try:
            return float(cells["round"]) < first and not (tells and int(cells["round"]) in untold)
        except ValueError:
            return False

    header, *rows = csv.reader(io.StringIO(text, newline="")) if text else [[]]
    # A process that was killed may have written a part of its last row.
    rows = rows if text.endswith("\n") else rows[:-1]
    kept = list(filter(stays, rows)) if header == columns else []
    return "".join(map(_line, [columns, *kept]))


def _replaced(path: Path, content: str, *, kept: bool) -> bool:
    """Replace a file, which stays under another name if ``kept``; return False if another run did so."""
    unfinished = path.with_name(f".{uuid.uuid4().hex}.part")
    try:
        unfinished.write_text(content, encoding="utf-8", newline="")
        if kept:
            shutil.copymode(path, unfinished)
            _put_aside(path)
        try:
            os.link(unfinished, path)  # fails if another run has just created the file
        except OSError:
            if path.exists():
                return False
            os.replace(unfinished, path)  # a disk without links
    except FileNotFoundError:
        return False
    finally:
        with contextlib.suppress(OSError):
            unfinished.unlink()
    return True


def _put_aside(path: Path) -> None:
    """Rename a file without copying it, so that a run that writes it can follow.

    Raises:
        FileNotFoundError: If another process was faster.
    """
    name = next(name for name in numbered(path) if _is_taken(name))
    try:
        os.replace(path, name)
    except FileNotFoundError:
        name.unlink()
        raise


def _is_taken(name: Path) -> bool:
    """Create a file with a name, and return True, if the name was free."""
    try:
        open(name, "xb").close()
    except FileExistsError:
        return False
    return True


def _line(cells: Iterable[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()
