"""Studies in tables: files of comma-separated values with a row for each evaluation."""

import csv
import logging
import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from botorch_costly.errors import InvalidArgumentError, check
from botorch_costly.plain import Plain
from botorch_costly.task_records import Task

_logger = logging.getLogger(__name__)


def tasks_from_csv(
    path: str | os.PathLike[str],
    value: str,
    *,
    task: str | None = None,
    names: Sequence[str] | None = None,
) -> list[Task]:
    r"""Read studies from a file of comma-separated values in UTF-8, whose first row names the columns.

    A cell that is a number is read as one, all others as text without the spaces around it. A row with an
    empty cell in a column that is read is left out; a warning with their count is logged.

    Args:
        path: Of the file.
        value: The column of measured values; ``nan`` or ``inf`` is an evaluation that failed.
        task: The column whose cells say which study a row is of; if omitted, all rows are of one, which
            has the name of the file without its ending.
        names: The columns of parameters; all but the other two if omitted.

    Returns:
        A task for each study, in the order in which the file first names them.

    Raises:
        InvalidArgumentError: If a column is missing, named twice or has two uses, a row has more cells
            than there are columns, a value is no number, or no row is complete.
        OSError: If the file cannot be read.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "svm.csv"
        >>> _ = path.write_text("data,C,kernel,accuracy\niris,1,rbf,0.9\nwine,10,linear,0.8\n")
        >>> first, second = tasks_from_csv(path, "accuracy", task="data")
        >>> first.name, dict(first.configs[0]), first.values
        ('iris', {'C': 1, 'kernel': 'rbf'}, (0.9,))
    """
    with open(path, newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file, skipinitialspace=True, restval="")
        header = [column.strip() for column in reader.fieldnames or ()]
        reader.fieldnames = header
        used = _used(header, value, task, names)
        rows = [(reader.line_num, row) for row in reader]
    whole = Path(path).stem
    studies: dict[str, list[tuple[dict[str, Plain], float]]] = {}
    for line, row in rows:
        check(None not in row, f"line {line}", f"{len(header)} cells", row.get(None))
        cells = {column: row[column].strip() for column in used}
        if all(cells.values()):
            of = whole if task is None else cells.pop(task)
            measured = _measured(line, value, cells.pop(value))
            config = {column: _parsed(cell) for column, cell in cells.items()}
            studies.setdefault(of, []).append((config, measured))
    count = sum(map(len, studies.values()))
    check(count > 0, "path", "a row without an empty cell", f"{len(rows)} rows, none so")
    if count < len(rows):
        said = "%d of %d rows of %s have an empty cell and are left out."
        _logger.warning(said, len(rows) - count, len(rows), os.fspath(path))
    return [
        Task([config for config, _ in study], [measured for _, measured in study], name=name)
        for name, study in studies.items()
    ]


def _used(
    header: list[str], value: str, task: str | None, names: Sequence[str] | None
) -> list[str]:
    """Return the columns that are read, and check all of them."""
    check(len(set(header)) == len(header), "path", "distinct names of columns", header)
    others = [value] if task is None else [value, task]
    listed = names is None or isinstance(names, list | tuple)
    check(listed, "names", "a list of columns", names)
    parameters = [c for c in header if c not in others] if names is None else list(names)
    used = [*parameters, *others]
    for column in used:
        check(column in header, "column", f"one of {header}", column)
    check(len(parameters) > 0, "names", "a column of parameters", parameters)
    check(len(set(used)) == len(used), "columns", "one use of each", used)
    return used


def _measured(line: int, column: str, cell: str) -> float:
    try:
        return float(cell)
    except ValueError as error:
        raise InvalidArgumentError(f"line {line}, {column}", "a number", cell) from error


def _parsed(cell: str) -> Any:
    """Return a cell as an int or finite float if it is written as one, and as it is otherwise."""
    for kind in (int, float):
        try:
            number = kind(cell)
        except ValueError:
            continue
        return number if math.isfinite(number) and "_" not in cell else cell
    return cell
