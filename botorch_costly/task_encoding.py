"""Encoding of an earlier study's observations in a search space that may differ from the study's.

Parameters are matched by name. Those that the space lacks are ignored, those that an observation lacks
are filled in, and observations outside the space are omitted and counted.
"""

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from botorch_costly.errors import (
    InvalidConfigError,
    InvalidShapeError,
    InvalidSpaceError,
    check,
    shortened,
)
from botorch_costly.parameters import Choice, Integer, Parameter, Real
from botorch_costly.plain import Plain
from botorch_costly.space import SearchSpace

# Values of each configuration, and of its iterations; rows of each of several studies.
_REPEATED = 3
_ITERATIONS = {"epoch", "epochs", "iter", "iteration", "iterations", "training_iteration"}
_ITERATIONS |= {"step", "steps", "_step", "global_step", "trainer/global_step"}
_STUDIES = {"data", "dataset", "data_set", "dataset_id", "dataset_name", "task", "task_id", "study"}
_logger = logging.getLogger(__name__)
_MOST_ROWS = 1500  # of a study in a Gaussian process, whose memory grows with their square
_ABSENT = object()  # marks a value that an observation lacks


@dataclass(frozen=True, eq=False)
class EncodedTask:
    """The ``n`` observations of a study inside a space that did not fail, in the order of the study.

    Attributes:
        points: The encodings, float64 of shape ``n x dim``.
        values: The measured values, finite, float64 of shape ``(n,)``.
        kept: The numbers of the observations in the study, from 0.
        failed: Number of observations that failed, which are omitted.
        outside: Number of other omitted observations by parameter: the first one in the order of the
            space whose value is outside. Parameters with a count of 0 are not listed.
        filled: Number of observations among the ``n`` that lack a parameter, by parameter. Parameters
            with a count of 0 are not listed.
        ignored: Parameters of the study that the space lacks.
        complete: Row of the first proposal of advice that names all parameters; None without one.
    """

    points: Tensor
    values: Tensor
    kept: tuple[int, ...]
    failed: int
    outside: Mapping[str, int]
    filled: Mapping[str, int]
    ignored: tuple[str, ...]
    complete: int | None = None

    @property
    def left_out(self) -> int:
        """Number of omitted observations, for all reasons."""
        return self.failed + sum(self.outside.values())


def representative(points: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
    """Return at most 1,500 observations of a study, evenly spread over the ranks of their values.

    The best and the worst are among them, and their order is that of the study.

    Args:
        points: Encoded configurations, ``n x d``.
        values: Their values, shape ``(n,)``.
    """
    if len(values) <= _MOST_ROWS:
        return points, values
    places = torch.linspace(0, len(values) - 1, _MOST_ROWS, dtype=torch.float64).round().long()
    kept = values.argsort(stable=True)[places.to(values.device)].sort().values
    return points[kept], values[kept]


class _Columns(NamedTuple):
    """The values of one parameter in all observations."""

    encoded: Tensor  # shape: (n, width)
    inside: Tensor  # also true for absent values, shape: (n,)
    absent: Tensor  # shape: (n,)


def encode_observations(
    space: SearchSpace,
    configs: Sequence[Mapping[str, Plain]] | Sequence[tuple[float, ...]],
    values: Sequence[float | None],
    *,
    names: Sequence[str] | None,
    fill: Mapping[str, Any] | None,
    title: str,
    texts: Sequence[Mapping[str, Plain]] | None = None,
) -> EncodedTask:
    """Encode observations; the rules and errors are those of ``Task.in_space``.

    Args:
        space: Search space of the encoding.
        configs: Values by name, or rows of numbers, in which an option is given by its number.
        values: Value of each configuration; None if it failed.
        names: Names of the columns of rows; those of the space if omitted.
        fill: Values of parameters that an observation lacks, by name.
        title: Title of the task, for messages.
        texts: Written forms of the numbers of each configuration, by name, where they differ from
            ``str``.
    """
    check(isinstance(space, SearchSpace), "space", "a SearchSpace", space, InvalidSpaceError)
    filling = _filling(space, fill)
    are_rows = not isinstance(configs[0], Mapping)
    keys = _keys(configs, space.names if names is None else names)
    is_shared = any(name in keys for name in space.names)
    expected = f"some parameter of the space, {list(space.names)}"
    check(is_shared, title, expected, list(keys), InvalidConfigError)
    cells = {name: _cells(configs, keys.get(name)) for name in space.names}
    columns = {}
    for name, parameter in space.parameters:
        written = [] if texts is None else [entry.get(name) for entry in texts]
        columns[name] = _columns(
            parameter, cells[name], written, filling[name], are_numbers=are_rows
        )
    keep = torch.tensor([value is not None for value in values])
    failed, outside = int((~keep).sum()), {}
    for name, column in columns.items():
        outside[name] = int((keep & ~column.inside).sum())
        keep = keep & column.inside
    outside, kept = _counted(outside), keep.nonzero().flatten()
    examples = {n: cells[n][int((~columns[n].inside).int().argmax())] for n in outside}
    _report(title, len(kept), failed, outside, examples)
    ignored = tuple(name for name in keys if name not in columns)
    absent = tuple(n for n, c in columns.items() if n not in (fill or {}) and c.absent.all())
    warn_of_names(ignored, absent)
    warn_of_studies(ignored, configs)
    return EncodedTask(
        points=torch.cat([column.encoded for column in columns.values()], dim=-1)[kept],
        values=torch.tensor([values[i] for i in kept.tolist()], dtype=torch.float64),
        kept=tuple(kept.tolist()),
        failed=failed,
        outside=outside,
        filled=_counted({name: int((c.absent & keep).sum()) for name, c in columns.items()}),
        ignored=ignored,
    )


def _counted(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


def _report(
    title: str, kept: int, failed: int, outside: Mapping[str, int], examples: Mapping[str, Any]
) -> None:
    """Raise if no observation is kept, and warn if most are omitted."""
    texts = {n: f", such as {cell!r}" for n, cell in examples.items() if isinstance(cell, str)}
    by_name = [f"{n} by {name!r}{texts.get(name, '')}" for name, n in outside.items()]
    reasons = ", ".join([f"{failed} failed", *by_name])
    expected = "an observation inside the space that did not fail"
    check(kept > 0, title, expected, reasons, InvalidConfigError)
    left_out = failed + sum(outside.values())
    if left_out > kept:
        message = "Of %s %d observations of %d are left out (%s): is the space right?"
        _logger.warning(message, title, left_out, left_out + kept, reasons)


@cache  # several studies may have the same names, and are encoded for several models
def warn_of_names(ignored: tuple[str, ...], absent: tuple[str, ...]) -> None:
    """Warn once in a process of names that may have changed between a study and the space.

    Args:
        ignored: Names of the study that the space lacks; without any nothing has been renamed.
        absent: Names of the space that the study lacks; the same holds.
    """
    if not (ignored and absent):
        return
    _logger.warning(
        "An earlier study lacks %s, for which a default is filled in, and has %s, which the space does "
        "not know: if a parameter has been renamed, give both the same name (fill={name: value} says "
        "what was in use).",
        shortened(" and ".join(absent)),
        shortened(" and ".join(ignored)),
    )


def warn_of_studies(ignored: tuple[str, ...], configs: Sequence[Any]) -> None:
    """Warn once in a process of a study whose rows are of several, by a column that the space lacks.

    Args:
        ignored: Names of the study that the space lacks.
        configs: Configurations of the study; rows of numbers have no such column.
    """
    for name in ignored:
        if name.replace("/", ".").rpartition(".")[2].lower() in _STUDIES:
            cells = [config.get(name) for config in configs if isinstance(config, Mapping)]
            counts = Counter(
                cell for cell in cells if isinstance(cell, str | int) and not isinstance(cell, bool)
            )
            several = [str(cell) for cell, count in counts.items() if count >= _REPEATED]
            if len(several) > 1:
                _say_studies(name, shortened(", ".join(several)))


@cache
def _say_studies(name: str, several: str) -> None:
    _logger.warning(
        "The rows of an earlier study have several values of %s (%s), which the space lacks, and "
        "count as one study. Make a Task of each, as tasks_from_csv(.., task=%r) does.",
        *(name, several, name),
    )


def warn_of_iterations(encoded: EncodedTask, configs: Sequence[Any]) -> None:
    """Warn once in a process of a study with several values of each configuration, by iteration.

    Args:
        encoded: Observations of a study in a space, whose values count as final ones.
        configs: Configurations of the study.
    """
    names = [name for name in encoded.ignored if name.lower() in _ITERATIONS]
    if not names or not isinstance(configs[0], Mapping):
        return
    rows, distinct = len(encoded.points), len(set(map(tuple, encoded.points.tolist())))
    cells = {configs[row].get(names[0]) for row in encoded.kept}
    if len(cells) >= _REPEATED and rows >= _REPEATED * distinct:
        _say_iterations(names[0], rows, distinct)


@cache
def _say_iterations(name: str, rows: int, configs: int) -> None:
    _logger.warning(
        "The %d values of an earlier study are of %d configurations and differ by %s, which the space "
        "lacks: each counts as a final value. Keep the last one of each training, or give Task the "
        "shares of whole trainings, progress=.",
        *(rows, configs, name),
    )


# -- names and cells -------------------------------------------------------------------------------


def _keys(configs: Sequence[Any], columns: Sequence[str]) -> dict[str, str | int]:
    """Return the key of each parameter of the study in a configuration: its name, or its column."""
    if isinstance(configs[0], Mapping):
        return {name: name for config in configs for name in config}
    width, expected = len(configs[0]), f"a column for each parameter of the space, {list(columns)}"
    check(width == len(columns), "configs", expected, f"{width} columns", InvalidShapeError)
    return {name: column for column, name in enumerate(columns)}


def _cells(configs: Sequence[Any], key: str | int | None) -> list[Any]:
    if key is None:
        return [_ABSENT] * len(configs)
    if isinstance(key, str):
        return [config.get(key, _ABSENT) for config in configs]
    return [row[key] for row in configs]


def _filling(space: SearchSpace, fill: Mapping[str, Any] | None) -> dict[str, Tensor]:
    """Return the encoding of each parameter for observations that lack it."""
    fill = {} if fill is None else fill
    check(isinstance(fill, Mapping), "fill", "a mapping", fill, InvalidConfigError)
    expected = f"names of the space, {list(space.names)}"
    check(set(fill) <= set(space.names), "fill", expected, list(fill), InvalidConfigError)
    return {
        name: p.encode(p.canonical(name, fill[name])) if name in fill else _middle(p)
        for name, p in space.parameters
    }


def _middle(parameter: Parameter) -> Tensor:
    if isinstance(parameter, Choice):
        return parameter.encode(parameter.options[0])
    return parameter.round(torch.full((1,), 0.5, dtype=torch.float64))


# -- columns ---------------------------------------------------------------------------------------


def _columns(
    parameter: Parameter,
    cells: list[Any],
    texts: Sequence[Plain],
    fill: Tensor,
    *,
    are_numbers: bool,
) -> _Columns:
    absent = torch.tensor([cell is _ABSENT for cell in cells])
    if isinstance(parameter, Choice):
        encoded, inside = _one_hot(parameter, cells, texts or [None] * len(cells), are_numbers)
    else:
        numbers = torch.tensor([_number(parameter, c) for c in cells], dtype=torch.float64)
        encoded, inside = parameter.to_unit(numbers).unsqueeze(-1), ~numbers.isnan()
    encoded[absent] = fill
    return _Columns(encoded, inside | absent, absent)


def _number(parameter: Real | Integer, cell: object) -> float:
    """Return a value as a number between the bounds; NaN if that is impossible."""
    if not isinstance(cell, int | float) or isinstance(cell, bool):
        return math.nan
    if isinstance(parameter, Integer) and cell != math.floor(cell):
        return math.nan
    if parameter.low <= cell <= parameter.high:
        return float(cell)
    bounds = (float(parameter.low), float(parameter.high))
    return next((bound for bound in bounds if cell == _single(bound)), math.nan)


def _one_hot(
    parameter: Choice, cells: list[Any], texts: Sequence[Plain], are_numbers: bool
) -> tuple[Tensor, Tensor]:
    numbers, written = _numbers(parameter.options, are_numbers), [*map(str, parameter.options)]
    pairs = zip(cells, texts, strict=True)
    matches = torch.tensor([_match(numbers, written, cell, text) for cell, text in pairs])
    encoded = torch.zeros(len(cells), parameter.width, dtype=torch.float64)
    if parameter.width:
        encoded.scatter_(-1, matches.clamp(min=0).unsqueeze(-1), 1.0)
    return encoded, matches >= 0


def _match(numbers: Mapping[Any, int], written: Sequence[str], cell: Any, text: Plain) -> int:
    """Return the number of the option that matches a value, or -1; its text has priority.

    A value does not match an option with another written form: ``"3.10"`` is not ``"3.1"``, and ``"1.0"``
    is not 1 if ``"1.0"`` is an option itself. Tables write ``"16"`` as ``16.0`` in a column with a gap.
    """
    if text is None:
        return numbers.get(cell, numbers.get(str(cell), -1))
    by_value = numbers.get(cell, -1)
    if by_value >= 0 and written[by_value] == text:
        return by_value
    is_whole = isinstance(cell, float) and text == f"{cell:.0f}.0"
    by_integer = numbers.get(f"{cell:.0f}", -1) if is_whole and by_value < 0 else by_value
    return numbers.get(text, by_integer)


def _numbers(options: Sequence[Plain], are_numbers: bool) -> dict[Any, int]:
    """Return the number of each option by the values and texts that match it.

    Exact matches have priority: the options ``("1", 1)`` each match their own value. Programs write
    booleans in several ways: ``True``, ``TRUE`` and ``true``.
    """
    if are_numbers:
        return {number: number for number in range(len(options))}
    numbers: dict[Any, int] = {}
    for form in (lambda option: option, _single, str):
        for number, option in enumerate(options):
            numbers.setdefault(form(option), number)
    for number, option in enumerate(options):
        if isinstance(option, bool):
            numbers.setdefault(str(option).upper(), number)
            numbers.setdefault(str(option).lower(), number)
    return numbers


def _single(value: Any) -> Any:
    """Return a value with floats rounded to float32, also in tuples."""
    if isinstance(value, tuple):
        return tuple(map(_single, value))
    if not isinstance(value, float):
        return value
    with np.errstate(over="ignore"):
        return float(np.float32(value))
