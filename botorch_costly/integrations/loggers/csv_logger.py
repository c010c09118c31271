"""A log as a table of comma-separated values: one row a round, written at once."""

import contextlib
import csv
import glob
import io
import itertools
import logging
import os
import shutil
import uuid
from collections.abc import Collection, Iterable
from pathlib import Path

from botorch_costly.ask_tell.rows import cell_of
from botorch_costly.errors import check
from botorch_costly.integrations.loggers.entry import LogEntry
from botorch_costly.integrations.loggers.logger import Logger

_logger = logging.getLogger(__name__)


class CsvLogger(Logger):
    """Writes a row a round to a file, which can be read at any time.

    A run that is resumed goes on in its file: rows of rounds that are played again are replaced, and so
    are rewards that were told late and are not told yet in the state. Where rows would be lost, or the
    file is of another run, that file is kept first, as ``<name>.1``, ``<name>.2`` and so on. A reward
    that is told late has another row of its round. The file is made with the first row, so that of the
    processes of a run only the one that logs writes it.

    Each run writes a file of its own: one whose file was put aside by another run that began in its place
    goes on where the file is now. A warning says so, once.

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
        self._file: _File | None = None  # that rows go to, once it is prepared
        self._has_warned = False

    def begin(self, round: int) -> None:
        """Continue the file before this round."""
        self._first, self._untold, self._file = round, frozenset(), None

    def reopen(self, rounds: Collection[int]) -> None:
        """Continue the file without what it says was told of these rounds."""
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
        """Find the file, which is not where it was; begin another one if it is nowhere."""
        kept = file.path.parent.glob(f"{glob.escape(self.path.name)}.*")
        now = next((path for path in (self.path, *kept) if file.is_at(path)), None)
        if now is None:
            self._file = _prepared(self.path, columns, 0, frozenset())
            self._warn(f"its file has been removed; what follows is in {self._file.path}")
        else:
            file.path = now
            self._warn(f"another run began in its place; this one goes on in {now}")

    def _warn(self, said: str) -> None:
        self._has_warned = True
        _logger.warning("The log %s: %s. Give each run a file of its own.", self.path, said)


class _File:
    """A file that rows are appended to, known by what it is and not by its name.

    Args:
        path: Where it is now.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        found = path.stat()
        self._key, self._size = (found.st_dev, found.st_ino), found.st_size

    def is_at(self, path: Path) -> bool:
        """Return whether this file is at a path."""
        try:
            found = path.stat()
        except OSError:
            return False
        return self._key == (found.st_dev, found.st_ino)

    def append(self, line: str) -> bool:
        """Append a line; return whether something else was appended since the last one."""
        with open(self.path, "a", encoding="utf-8", newline="") as file:
            file.write(line)
            file.flush()
            size = os.fstat(file.fileno()).st_size
        grown, self._size = size - self._size, size
        return grown > len(line.encode())


def _prepared(path: Path, columns: list[str], first: float, untold: Collection[int]) -> _File:
    """Return the file at a path, in the state in which the row of round ``first`` comes next.

    Args:
        path: Of the file.
        columns: Of the run.
        first: Rows of this round and later ones are outdated.
        untold: Rounds before it of which nothing was told yet.
    """
    target = Path(os.path.realpath(path))
    while True:
        text = target.read_text(encoding="utf-8") if target.exists() else ""
        content = _continued(text, columns, first, untold)
        if content == text or _replaced(target, content, kept=text != ""):
            return _File(target)


def _continued(text: str, columns: list[str], first: float, untold: Collection[int]) -> str:
    """Return what a file is to hold that holds this text."""

    def stays(row: list[str]) -> bool:
        if len(row) != len(columns):
            return False  # it is no row of ours
        cells = dict(zip(columns, row, strict=True))
        tells = cells["reward"] != "" or cells["failed"] == str(True)
        try:
            return float(cells["round"]) < first and not (tells and int(cells["round"]) in untold)
        except ValueError:
            return False

    header, *rows = csv.reader(io.StringIO(text, newline="")) if text else [[]]
    # The last row of a process that was killed may be a part of one.
    rows = rows if text.endswith("\n") else rows[:-1]
    kept = list(filter(stays, rows)) if header == columns else []
    return "".join(map(_line, [columns, *kept]))


def _replaced(path: Path, content: str, *, kept: bool) -> bool:
    """Put another file in the place of one that is kept; return False if another run came before."""
    unfinished = path.with_name(f".{uuid.uuid4().hex}.part")
    try:
        unfinished.write_text(content, encoding="utf-8", newline="")
        if kept:
            shutil.copymode(path, unfinished)
            _put_aside(path)
        try:
            os.link(
                unfinished, path
            )  # it replaces no file: one of two runs that begin at once is first
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
    """Rename a file, not a copy of it, so that a run that writes it can follow.

    Raises:
        FileNotFoundError: If another process was faster.
    """
    names = (path.with_name(f"{path.name}.{number}") for number in itertools.count(1))
    name = next(name for name in names if _is_taken(name))
    try:
        os.replace(path, name)
    except FileNotFoundError:
        name.unlink()
        raise


def _is_taken(name: Path) -> bool:
    """Return whether a name was free, and take it from all other processes."""
    try:
        open(name, "xb").close()
    except FileExistsError:
        return False
    return True


def _line(cells: Iterable[str]) -> str:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerow(cells)
    return text.getvalue()
