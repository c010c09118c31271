"""Observations of an earlier study as points of a search space, which may be another than the study's.

Parameters are matched by name. Those that the space lacks are ignored, those that an observation lacks
are filled in, and observations outside the space are left out and counted.
"""

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from botorch_costly.errors import InvalidConfigError, InvalidShapeError, InvalidSpaceError, check
from botorch_costly.parameters import Choice, Integer, Parameter, Real
from botorch_costly.plain import Plain
from botorch_costly.space import SearchSpace

_logger = logging.getLogger(__name__)
_ABSENT = object()  # in place of a value that an observation lacks


@dataclass(frozen=True, eq=False)
class EncodedTask:
    """The observations of a study that lie in a space and did not fail, in the order of the study.

    Attributes:
        points: Their encodings, float64 of shape ``n x dim``.
        values: Their values as measured, finite, float64 of shape ``(n,)``.
        kept: Their numbers in the study, from 0.
        failed: How many observations were left out because they failed.
        outside: How many others were left out by each parameter: the first in the order of the space
            whose value lies outside it. Parameters that left none out are not named.
        filled: How many of the ``n`` observations lack each parameter. Parameters that none lacks are
            not named.
        ignored: Parameters of the study that the space lacks.
    """

    points: Tensor
    values: Tensor
    kept: tuple[int, ...]
    failed: int
    outside: Mapping[str, int]
    filled: Mapping[str, int]
    ignored: tuple[str, ...]

    @property
    def left_out(self) -> int:
        """How many observations were left out, for all reasons."""
        return self.failed + sum(self.outside.values())


class _Columns(NamedTuple):
    """What the observations have of one parameter."""

    encoded: Tensor  # shape: (n, width)
    inside: Tensor  # shape: (n,); where nothing is recorded, too
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
        space: To encode in.
        configs: Values by name, or rows of numbers, in which an option has its number.
        values: One a configuration; None if it failed.
        names: Of the columns of rows; those of the space if omitted.
        fill: Values of parameters that an observation lacks, by name.
        title: Of the task, for messages.
        texts: How the numbers of each configuration are written, by name, where they are written
            otherwise than by ``str``.
    """
    check(isinstance(space, SearchSpace), "space", "a SearchSpace", space, InvalidSpaceError)
    filling = _filling(space, fill)
    rows = not isinstance(configs[0], Mapping)
    known = _names(configs, space.names if names is None else names)
    shared = any(name in known for name in space.names)
    expected = f"some parameter of the space, {list(space.names)}"
    check(shared, title, expected, list(known), InvalidConfigError)
    cells = {name: _cells(configs, known.get(name)) for name in space.names}
    columns = {
        name: _columns(parameter, cells[name], _texts(texts, name), filling[name], numbered=rows)
        for name, parameter in space.parameters
    }
    keep = torch.tensor([value is not None for value in values])
    failed, outside = int((~keep).sum()), {}
    for name, column in columns.items():
        outside[name] = int((keep & ~column.inside).sum())
        keep = keep & column.inside
    outside, kept = _counted(outside), keep.nonzero().flatten()
    examples = {n: cells[n][int((~columns[n].inside).int().argmax())] for n in outside}
    _report(title, len(kept), failed, outside, examples)
    return EncodedTask(
        points=torch.cat([column.encoded for column in columns.values()], dim=-1)[kept],
        values=torch.tensor([values[i] for i in kept.tolist()], dtype=torch.float64),
        kept=tuple(kept.tolist()),
        failed=failed,
        outside=outside,
        filled=_counted({name: int((c.absent & keep).sum()) for name, c in columns.items()}),
        ignored=tuple(name for name in known if name not in columns),
    )


def _counted(counts: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in counts.items() if count}


def _report(
    title: str, kept: int, failed: int, outside: Mapping[str, int], examples: Mapping[str, Any]
) -> None:
    """Raise if no observation is kept, and warn if most of them are not."""
    texts = {n: f", such as {cell!r}" for n, cell in examples.items() if isinstance(cell, str)}
    by = [f"{n} by {name!r}{texts.get(name, '')}" for name, n in outside.items()]
    reasons = ", ".join([f"{failed} failed", *by])
    expected = "an observation inside the space that did not fail"
    check(kept > 0, title, expected, reasons, InvalidConfigError)
    left_out = failed + sum(outside.values())
    if left_out > kept:
        said = "Of %s %d observations of %d are left out (%s): is the space right?"
        _logger.warning(said, title, left_out, left_out + kept, reasons)


# -- names and cells -------------------------------------------------------------------------------


def _names(configs: Sequence[Any], columns: Sequence[str]) -> dict[str, str | int]:
    """Return where in a configuration each parameter of the study is: its name, or its column."""
    if isinstance(configs[0], Mapping):
        return {name: name for config in configs for name in config}
    width, expected = len(configs[0]), f"a column for each parameter of the space, {list(columns)}"
    check(width == len(columns), "configs", expected, f"{width} columns", InvalidShapeError)
    return {name: at for at, name in enumerate(columns)}


def _cells(configs: Sequence[Any], at: str | int | None) -> list[Any]:
    if at is None:
        return [_ABSENT] * len(configs)
    if isinstance(at, str):
        return [config.get(at, _ABSENT) for config in configs]
    return [row[at] for row in configs]


def _texts(texts: Sequence[Mapping[str, Plain]] | None, name: str) -> list[Plain]:
    return [] if texts is None else [one.get(name) for one in texts]


def _filling(space: SearchSpace, fill: Mapping[str, Any] | None) -> dict[str, Tensor]:
    """Return the encoding that each parameter has where an observation lacks it."""
    given = {} if fill is None else fill
    check(isinstance(given, Mapping), "fill", "a mapping", given, InvalidConfigError)
    expected = f"names of the space, {list(space.names)}"
    check(set(given) <= set(space.names), "fill", expected, list(given), InvalidConfigError)
    return {
        name: p.encode(p.canonical(name, given[name])) if name in given else _middle(p)
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
    numbered: bool,
) -> _Columns:
    absent = torch.tensor([cell is _ABSENT for cell in cells])
    if isinstance(parameter, Choice):
        encoded, inside = _one_hot(
            parameter, cells, texts or [None] * len(cells), numbered=numbered
        )
    else:
        numbers = torch.tensor([_number(parameter, c) for c in cells], dtype=torch.float64)
        encoded, inside = parameter.to_unit(numbers).unsqueeze(-1), ~numbers.isnan()
    encoded[absent] = fill
    return _Columns(encoded, inside | absent, absent)


def _number(parameter: Real | Integer, cell: object) -> float:
    """Return a value as a number between the bounds; NaN if it is none."""
    if not isinstance(cell, int | float) or isinstance(cell, bool):
        return math.nan
    if isinstance(parameter, Integer) and cell != math.floor(cell):
        return math.nan
    if parameter.low <= cell <= parameter.high:
        return float(cell)
    bounds = (float(parameter.low), float(parameter.high))
    return next((bound for bound in bounds if cell == _single(bound)), math.nan)


def _one_hot(
    parameter: Choice, cells: list[Any], texts: Sequence[Plain], *, numbered: bool
) -> tuple[Tensor, Tensor]:
    known, written = _numbers_of(parameter.options, numbered), [*map(str, parameter.options)]
    pairs = zip(cells, texts, strict=True)
    found = torch.tensor([_number_of(known, written, cell, text) for cell, text in pairs])
    encoded = torch.zeros(len(cells), parameter.width, dtype=torch.float64)
    if parameter.width:
        encoded.scatter_(-1, found.clamp(min=0).unsqueeze(-1), 1.0)
    return encoded, found >= 0


def _number_of(known: Mapping[Any, int], written: Sequence[str], cell: Any, text: Plain) -> int:
    """Return the number of the option that a value stands for, or -1; its text goes before it.

    A number that is written as the text is not an option that is written otherwise: ``"3.10"`` is not
    ``"3.1"``, and ``"1.0"`` is not 1 where it is an option itself. Tables write ``"16"`` as ``16.0`` in
    a column with a gap.
    """
    if text is None:
        return known.get(cell, known.get(str(cell), -1))
    alike = known.get(cell, -1)
    if alike >= 0 and written[alike] == text:
        return alike
    whole = isinstance(cell, float) and text == f"{cell:.0f}.0"
    return known.get(text, known.get(f"{cell:.0f}", -1) if whole and alike < 0 else alike)


def _numbers_of(options: Sequence[Plain], numbered: bool) -> dict[Any, int]:
    """Return the number of each option by what stands for it.

    Exact options come first: of ``("1", 1)`` each stands for itself. Programs write truth in several
    ways: ``True``, ``TRUE`` and ``true``.
    """
    if numbered:
        return {number: number for number in range(len(options))}
    known: dict[Any, int] = {}
    for written in (lambda option: option, _single, str):
        for number, option in enumerate(options):
            known.setdefault(written(option), number)
    for number, option in enumerate(options):
        if isinstance(option, bool):
            known.setdefault(str(option).upper(), number)
            known.setdefault(str(option).lower(), number)
    return known


def _single(value: Any) -> Any:
    """Return a value as it is when floats are rounded to single precision, in tuples, too."""
    if isinstance(value, tuple):
        return tuple(map(_single, value))
    if not isinstance(value, float):
        return value
    with np.errstate(over="ignore"):
        return float(np.float32(value))
