"""Studies in tables: files of separated values with a row for each evaluation."""

import csv
import io
import logging
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from botorch_costly.errors import InvalidArgumentError, check
from botorch_costly.plain import Plain
from botorch_costly.task_records import Task

_SEPARATORS = (",", ";", "\t")
_VALUE = "a number written as 1234.5 or 1e-3, or nan where the evaluation failed"
_logger = logging.getLogger(__name__)


class _Row(NamedTuple):
    line: int  # of the file, from 1, at which the row begins
    cells: list[str]  # without spaces around them


class _Study(NamedTuple):
    configs: list[dict[str, Plain]]
    values: list[float]
    texts: list[dict[str, str]]  # of numbers, as the file writes them


def tasks_from_csv(
    path: str | os.PathLike[str],
    value: str,
    *,
    task: str | None = None,
    names: Sequence[str] | None = None,
) -> list[Task]:
    r"""Read studies from a file of separated values, whose first row names the columns.

    Columns are separated by commas, semicolons or tabs; text is in UTF-8, or in UTF-16 with its mark. A
    cell that is a number is read as one, all others as text without the spaces around it. The text of a
    number is kept beside it: the option ``"3.10"`` of a ``Choice`` is not the option ``"3.1"``. Numbers
    have a decimal point and no thousands separators. A row with an empty cell in a column that is read is
    left out; a warning with their count is logged. Columns without a name are read only if that is asked
    for by ``names``.

    Args:
        path: Of the file.
        value: The column of measured values; ``nan`` or ``inf`` is an evaluation that failed.
        task: The column whose cells say which study a row is of; if omitted, all rows are of one, which
            has the name of the file without its ending.
        names: The columns of parameters; all but the other two if omitted.

    Returns:
        A task for each study, in the order in which the file first names them.

    Raises:
        InvalidArgumentError: If the file is no text of such a kind, a column is missing, named twice or
            has two uses, a row has more cells than there are columns, a value is no number, or no row is
            complete.
        OSError: If the file cannot be read.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "svm.csv"
        >>> _ = path.write_text("data,C,kernel,accuracy\niris,1,rbf,0.9\nwine,10,linear,0.8\n")
        >>> first, second = tasks_from_csv(path, "accuracy", task="data")
        >>> first.name, dict(first.configs[0]), first.values
        ('iris', {'C': 1, 'kernel': 'rbf'}, (0.9,))
    """
    known = isinstance(path, str | os.PathLike)
    check(known, "path", "the path of a file", path)
    text = _text(path)
    wanted = [value, *([] if task is None else [task])]
    wanted += names if isinstance(names, list | tuple) else []
    header, rows = _rows(text, _separator(text, wanted))
    used = _used(header, value, task, names)
    studies: dict[str, _Study] = {}
    empty: Counter[str] = Counter()
    for line, row in rows:
        cells = {column: row[header.index(column)] for column in used}
        lacking = [column for column, cell in cells.items() if not cell]
        empty.update(lacking)
        if not lacking:
            of = Path(path).stem if task is None else cells.pop(task)
            place = f"{Path(path).name}, line {line}, {value}"
            measured = _measured(place, cells.pop(value))
            config = {column: _parsed(cell) for column, cell in cells.items()}
            texts = {c: cell for c, cell in cells.items() if not isinstance(config[c], str)}
            study = studies.setdefault(of, _Study([], [], []))
            study.configs.append(config)
            study.values.append(measured)
            study.texts.append(texts)
    _report(path, sum(len(study.values) for study in studies.values()), len(rows), empty)
    return [
        Task(configs, values, name=name, texts=texts)
        for name, (configs, values, texts) in studies.items()
    ]


def _report(path: str | os.PathLike[str], kept: int, total: int, empty: Mapping[str, int]) -> None:
    """Raise if no row is left, and warn if some are left out."""
    counts = ", ".join(f"{count} in {column!r}" for column, count in empty.items())
    received = f"{total} rows, none so"
    received += f"; empty cells: {counts}; names chooses the columns that are read" if empty else ""
    check(kept > 0, "path", "a row without an empty cell", received)
    if kept < total:
        said = "%d of %d rows of %s have an empty cell and are left out: %s. names chooses columns."
        _logger.warning(said, total - kept, total, os.fspath(path), counts)


# -- text and rows ---------------------------------------------------------------------------------


def _text(path: str | os.PathLike[str]) -> str:
    """Return what a file says, its ends of lines as they are."""
    content = Path(path).read_bytes()
    wide = content[:2] in (b"\xff\xfe", b"\xfe\xff")
    kind = "utf-16" if wide else "utf-8-sig"
    try:
        text = content.decode(kind)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        received = f"the byte {content[error.start]:#04x} in line {line}"
        expected = (
            f"text in UTF-8, or in UTF-16 with its mark, such as {os.fspath(path)} saved anew"
        )
        raise InvalidArgumentError("path", expected, received) from error
    expected = "text in UTF-8, or in UTF-16 with its mark"
    check("\0" not in text, "path", expected, "text with null bytes")
    check(text.strip() != "", "path", "a file whose first row names the columns", "an empty file")
    return text


def _separator(text: str, wanted: Sequence[Any]) -> str:
    """Return what separates columns: that by which the header has all columns that are asked for."""
    for separator in _SEPARATORS:
        header = next(iter(_read(text, separator)), _Row(1, []))
        if set(map(str, wanted)) <= set(header.cells):
            return separator
    first = text.lstrip("\r\n").splitlines()[0]
    return max(_SEPARATORS, key=first.count)


def _rows(text: str, separator: str) -> tuple[list[str], list[_Row]]:
    """Return the header and the rows, with a cell for each column of the header."""
    (_, header), *rows = _read(text, separator)
    while len(header) > 1 and not header[-1]:  # it ends with a separator
        if any(cell for _, cells in rows for cell in cells[len(header) - 1 :]):
            break
        header = header[:-1]
    width, filled = len(header), []
    for line, cells in rows:
        more = [cell for cell in cells[width:] if cell]
        check(not more, f"line {line}", f"{width} cells", more)
        filled.append(_Row(line, [*cells, *[""] * (width - len(cells))][:width]))
    return header, filled


def _read(text: str, separator: str) -> Iterator[_Row]:
    """Yield the rows that are not empty."""
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True
    )
    line = 1
    try:
        for cells in reader:
            if len(cells) > 1 or any(map(str.strip, cells)):
                yield _Row(line, [cell.strip() for cell in cells])
            line = reader.line_num + 1
    except csv.Error as error:
        expected = "cells whose quotation marks are closed, of at most 131072 characters"
        raise InvalidArgumentError(f"line {line}", expected, str(error)) from error


def _used(
    header: list[str], value: str, task: str | None, names: Sequence[str] | None
) -> list[str]:
    """Return the columns that are read, and check all of them."""
    named = [column for column in header if column]
    check(len(set(named)) == len(named), "path", "distinct names of columns", header)
    others = [value] if task is None else [value, task]
    listed = names is None or isinstance(names, list | tuple)
    check(listed, "names", "a list of columns", names)
    parameters = [c for c in named if c not in others] if names is None else list(names)
    used = [*parameters, *others]
    for column in used:
        check(column in header, "column", f"one of {header}", column)
    check(len(parameters) > 0, "names", "a column of parameters", parameters)
    check(len(set(used)) == len(used), "columns", "one use of each", used)
    return used


# -- cells -----------------------------------------------------------------------------------------


def _measured(place: str, cell: str) -> float:
    number = _number(cell)
    if number is None:
        raise InvalidArgumentError(place, _VALUE, cell)
    return number


def _number(cell: str) -> float | None:
    """Return the number that a cell is written as, if it is one; infinity if it is too large."""
    try:
        return float(cell) if cell.isascii() and "_" not in cell else None
    except ValueError:
        return None


def _parsed(cell: str) -> Any:
    """Return a cell as an int or finite float if it is written as one, and as it is otherwise."""
    number = _number(cell)
    if number is None or not math.isfinite(number):
        return cell
    try:
        return int(cell)
    except ValueError:
        return number
