"""Studies in files of separated values with a row for each evaluation."""

import csv
import io
import logging
import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from botorch_costly.calls import advised
from botorch_costly.errors import InvalidArgumentError, check
from botorch_costly.plain import Plain
from botorch_costly.task_records import Task

_SEPARATORS = (",", ";", "\t")
_VALUE = "a number written as 1234.5 or 1e-3, or nan where the evaluation failed"
_logger = logging.getLogger(__name__)


class _Row(NamedTuple):
    line: int  # line of the file at which the row begins, from 1
    cells: list[str]  # stripped of spaces


class _Study(NamedTuple):
    configs: list[dict[str, Plain]]
    values: list[float]
    texts: list[dict[str, str]]  # numbers as written in the file


@advised
def tasks_from_csv(
    path: str | os.PathLike[str],
    value: str,
    *,
    task: str | None = None,
    names: Sequence[str] | None = None,
) -> list[Task]:
    r"""Read studies from a file of separated values, whose first row names the columns.

    Columns are separated by commas, semicolons or tabs. Text is in UTF-8, or in UTF-16 with a byte order
    mark. Numbers have a decimal point and no thousands separators; other cells are read as text, stripped
    of spaces. The text of a number is kept, too: the option ``"3.10"`` of a ``Choice`` is not the option
    ``"3.1"``. Rows with an empty cell in a column that is read are left out, and a warning with their
    count is logged. Columns without a name are read only if ``names`` has them.

    Args:
        path: Path of the file.
        value: Column of the measured values; ``nan`` or ``inf`` is a failed evaluation.
        task: Column with the name of the study of each row; if omitted, all rows are of one study,
            named after the file without its suffix.
        names: Columns of the parameters; all but ``value`` and ``task`` if omitted.

    Returns:
        A task for each study, in the order of their first rows.

    Raises:
        InvalidArgumentError: If the file has another format, a column is missing, named twice or has two
            uses, a row has more cells than there are columns, a value is not a number, or no row is
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
    check(isinstance(path, str | os.PathLike), "path", "the path of a file", path)
    text = _text(path)
    required = [value, *([] if task is None else [task])]
    required += names if isinstance(names, list | tuple) else []
    header, rows = _rows(text, _separator(text, required))
    columns = _columns(header, value, task, names)
    studies: dict[str, _Study] = {}
    empty: Counter[str] = Counter()
    for line, row in rows:
        cells = {column: row[header.index(column)] for column in columns}
        missing = [column for column, cell in cells.items() if not cell]
        empty.update(missing)
        if not missing:
            name = Path(path).stem if task is None else cells.pop(task)
            cell = cells.pop(value)
            number = number_in(cell)
            if number is None:
                raise InvalidArgumentError(f"{Path(path).name}, line {line}, {value}", _VALUE, cell)
            config = {column: parsed(cell) for column, cell in cells.items()}
            texts = {c: cell for c, cell in cells.items() if not isinstance(config[c], str)}
            study = studies.setdefault(name, _Study([], [], []))
            study.configs.append(config)
            study.values.append(number)
            study.texts.append(texts)
    _report(path, sum(len(study.values) for study in studies.values()), len(rows), empty)
    return [
        Task(configs, values, name=name, texts=texts)
        for name, (configs, values, texts) in studies.items()
    ]


def _report(path: str | os.PathLike[str], kept: int, total: int, empty: Mapping[str, int]) -> None:
    """Raise if no row is kept, and warn if rows are left out."""
    counts = ", ".join(f"{count} in {column!r}" for column, count in empty.items())
    received = f"{total} rows, none so"
    received += f"; empty cells: {counts}; names chooses the columns that are read" if empty else ""
    check(kept > 0, "path", "a row without an empty cell", received)
    if kept < total:
        message = (
            "%d of %d rows of %s have an empty cell and are left out: %s. names chooses columns."
        )
        _logger.warning(message, total - kept, total, os.fspath(path), counts)


# -- text and rows ---------------------------------------------------------------------------------


def _text(path: str | os.PathLike[str]) -> str:
    """Return the text of a file, without conversion of line ends."""
    content = Path(path).read_bytes()
    encoding = "utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    expected = "text in UTF-8, or in UTF-16 with its mark"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        received = f"the byte {content[error.start]:#04x} in line {line}"
        expected += f", such as {os.fspath(path)} saved anew"
        raise InvalidArgumentError("path", expected, received) from error
    check("\0" not in text, "path", expected, "text with null bytes")
    check(text.strip() != "", "path", "a file whose first row names the columns", "an empty file")
    return text


def _separator(text: str, required: Sequence[Any]) -> str:
    """Return the separator with which the header has all required columns, or the most frequent one."""
    for separator in _SEPARATORS:
        header = next(iter(_read(text, separator)), _Row(1, []))
        if set(map(str, required)) <= set(header.cells):
            return separator
    first = text.lstrip("\r\n").splitlines()[0]
    return max(_SEPARATORS, key=first.count)


def _rows(text: str, separator: str) -> tuple[list[str], list[_Row]]:
    """Return the header and the rows, with a cell for each column of the header."""
    (_, header), *rows = _read(text, separator)
    while len(header) > 1 and not header[-1]:  # the line ends with a separator
        if any(cell for _, cells in rows for cell in cells[len(header) - 1 :]):
            break
        header = header[:-1]
    width, filled = len(header), []
    for line, cells in rows:
        excess = [cell for cell in cells[width:] if cell]
        check(not excess, f"line {line}", f"{width} cells", excess)
        filled.append(_Row(line, [*cells, *[""] * (width - len(cells))][:width]))
    return header, filled


def _read(text: str, separator: str) -> Iterator[_Row]:
    """Iterate over the rows that are not empty."""
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


def _columns(
    header: list[str], value: str, task: str | None, names: Sequence[str] | None
) -> list[str]:
    """Return the columns to read, after checks."""
    named = [column for column in header if column]
    check(len(set(named)) == len(named), "path", "distinct names of columns", header)
    others = [value] if task is None else [value, task]
    is_list = names is None or isinstance(names, list | tuple)
    check(is_list, "names", "a list of columns", names)
    parameters = [c for c in named if c not in others] if names is None else list(names)
    columns = [*parameters, *others]
    for column in columns:
        check(column in header, "column", f"one of {header}", column)
    check(len(parameters) > 0, "names", "a column of parameters", parameters)
    check(len(set(columns)) == len(columns), "columns", "one use of each", columns)
    return columns


# -- cells -----------------------------------------------------------------------------------------


def number_in(cell: str) -> float | None:
    """Return the number in a cell, infinity if it is too large; None if the cell is not a number."""
    try:
        return float(cell) if cell.isascii() and "_" not in cell else None
    except ValueError:
        return None


def parsed(cell: str) -> Any:
    """Return a cell as an int or finite float, or unchanged if it is neither."""
    number = number_in(cell)
    if number is None or not math.isfinite(number):
        return cell
    try:
        return int(cell)
    except ValueError:
        return number
