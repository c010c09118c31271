"""Learning curves of 20 learners on 248 data sets, distilled: ``python -m benchmarks lcdb``.

The package ``lcdb`` 0.1.0 holds two million trainings in 150 MB of text. What the benchmarks need of it,
means and spreads over the splits, is a file of results.

References:
    F. Mohr, T. J. Viering, M. Loog, J. N. van Rijn. LCDB 1.0: An extensive learning curves database for
    classification tasks. ECML PKDD 2022. The package is under the MIT licence, (c) 2021 Felix Mohr.
"""

import csv
import os
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness.command_line import parser_for
from benchmarks.harness.record import RESULTS
from benchmarks.suite.data import MissingDataError

NAME = "lcdb"
STORED = RESULTS / "lcdb.npz"
_TABLE = "database-accuracy.csv"
_LICENCE = "Distilled from PyPI's lcdb 0.1.0, MIT License, Copyright (c) 2021 Felix Mohr"
_UNIT = 2e-5  # of accuracies and their spreads as they are stored, in 16 bits
_NONE = np.iinfo(np.uint16).max
_DIGITS = 3  # of seconds
_NUMBERS = ("size_train", "outer_seed", "inner_seed", "traintime", "score_valid", "score_test")


class Curves(NamedTuple):
    """One entry in each array for each data set, learner and size; sorted by these."""

    learners: list[str]
    data_set: Any  # OpenML's number
    learner: Any  # place among the learners
    size: Any  # rows trained on
    splits: Any  # into training, validation and test, that were measured
    validation: Any  # accuracy, mean over the splits
    test: Any
    validation_spread: Any  # standard deviation over the splits
    test_spread: Any
    first_split: (
        Any  # accuracy in validation, of the first split alone; NaN where it was not measured
    )
    seconds: Any  # of training, mean over the splits


@cache
def learning_curves(path: Path = STORED) -> Curves:
    """Return what was distilled.

    Raises:
        MissingDataError: If there is no such file.
    """
    if not path.exists():
        expected = "what `python -m benchmarks lcdb` distils"
        raise MissingDataError("lcdb.npz", expected, str(path))
    with np.load(path) as file:
        columns = {name: file[name] for name in Curves._fields}
    for name, column in columns.items():
        if column.dtype == np.uint16 and name != "data_set":
            columns[name] = np.where(column == _NONE, np.nan, column * _UNIT)
    return Curves(**{**columns, "learners": columns["learners"].tolist()})


def distilled(path: Path) -> Curves:
    """Return means and spreads over the splits of the package's table of accuracies."""
    learners: dict[str, int] = {}
    rows = []
    with path.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            place = learners.setdefault(row["learner"], len(learners))
            rows.append([int(row["openmlid"]), place, *(float(row[name]) for name in _NUMBERS)])
    data_set, learner, size, outer, inner, seconds, validation, test = np.array(rows).T
    cells = np.stack([data_set, learner, size], 1)
    keys, cell, splits = np.unique(cells, axis=0, return_inverse=True, return_counts=True)
    cell = cell.reshape(-1)

    def mean(column: Any) -> Any:
        return np.bincount(cell, column) / splits

    def spread(column: Any) -> Any:
        squares = np.bincount(cell, (column - mean(column)[cell]) ** 2)
        return np.sqrt(squares / np.maximum(splits - 1, 1))

    first = np.full(len(keys), np.nan)
    is_first = (outer == 0) & (inner == 0)
    first[cell[is_first]] = validation[is_first]
    return Curves(
        learners=list(learners),
        data_set=keys[:, 0].astype(int),
        learner=keys[:, 1].astype(int),
        size=keys[:, 2].astype(int),
        splits=splits,
        validation=mean(validation),
        test=mean(test),
        validation_spread=spread(validation),
        test_spread=spread(test),
        first_split=first,
        seconds=mean(seconds),
    )


def store(curves: Curves, path: Path) -> None:
    """Write curves in the units of the file."""

    def counted(column: Any) -> Any:
        return np.where(np.isnan(column), _NONE, np.round(column / _UNIT)).astype(np.uint16)

    seconds = [float(f"{value:.{_DIGITS}g}") for value in curves.seconds]
    shares = ("validation", "test", "validation_spread", "test_spread", "first_split")
    columns = {
        "licence": np.array(_LICENCE),
        "learners": np.array(curves.learners),
        "data_set": curves.data_set.astype(np.uint16),
        "learner": curves.learner.astype(np.uint8),
        "size": curves.size.astype(np.uint32),
        "splits": curves.splits.astype(np.uint8),
        "seconds": np.array(seconds, dtype=np.float32),
        **{name: counted(getattr(curves, name)) for name in shares},
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, **columns)


def table_of_package() -> Path:
    """Return where the table of accuracies lies: in an installed ``lcdb``, or in the folder of the data.

    Raises:
        MissingDataError: If it is in neither.
    """
    spec = find_spec("lcdb")  # not imported: it would need what reads data sets from OpenML
    places = [Path(place) for place in (spec.submodule_search_locations or ())] if spec else []
    folder = os.environ.get("BOTORCH_COSTLY_DATA")
    places += [Path(folder) / "lcdb"] if folder else []
    for place in places:
        if (place / _TABLE).exists():
            return place / _TABLE
    expected = f"`pip install --no-deps lcdb==0.1.0`, or BOTORCH_COSTLY_DATA with lcdb/{_TABLE}"
    raise MissingDataError("lcdb", expected, folder)


def main(arguments: list[str]) -> None:
    """Distil the table of the package."""
    parser = parser_for(NAME, "distil the learning curves of lcdb 0.1.0")
    parser.add_argument("--table", type=Path, help=f"{_TABLE}, where it is not installed")
    options = parser.parse_args(arguments)
    path = options.results / STORED.name
    store(distilled(options.table or table_of_package()), path)
    curves = learning_curves(path)
    sets = len(np.unique(curves.data_set))
    print(
        f"{int(curves.splits.sum())} trainings, {len(curves.size)} means, {sets} data sets: {path}"
    )
