"""The search space: configurations of plain Python values <-> points of the unit cube.

Each parameter owns some columns of the cube, in the order in which the space names them:

    Real        one column, linear or logarithmic between its bounds
    Integer     one column, widened by half a step at both ends, decoded by rounding
    Choice      one column per option (one-hot), decoded by argmax; a single option is a
                constant, there is nothing to search in it, and it owns no column

So without ``log`` every integer owns an equal share of its column, and every option an equal
share of its columns. A point anywhere in the cube stands for the configuration it decodes to;
``SearchSpace.round`` moves it onto the canonical encoding of that configuration.
"""

import hashlib
import itertools
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import torch
from torch import Generator, Tensor

from botorch_costly.errors import (
    InvalidArgumentError,
    InvalidConfigError,
    InvalidShapeError,
    InvalidSpaceError,
    check,
    check_count,
)

Plain = str | int | float | bool | None
_PLAIN_TYPES = (str, int, float, bool, type(None))


@dataclass(frozen=True)
class _Number:
    """What Real and Integer share: one column, whose ends stand for ``edges``."""

    low: float
    high: float
    log: bool = False

    width: ClassVar[int] = 1
    kind: ClassVar[str] = "a number"
    types: ClassVar[tuple[type, ...]] = (int, float)
    largest: ClassVar[float] = sys.float_info.max  # so neither infinite nor NaN

    def __post_init__(self) -> None:
        name, bounds = type(self).__name__, (self.low, self.high)
        expected = f"bounds that are each {self.kind} of at most {self.largest:g} in size"
        check(all(map(self._is_kind, bounds)), name, expected, bounds, InvalidSpaceError)
        check(isinstance(self.log, bool), f"{name} log", "a bool", self.log, InvalidSpaceError)
        check(self.low < self.high, name, "low < high", bounds, InvalidSpaceError)
        positive = self.low > 0 or not self.log
        check(positive, name, "bounds > 0 with log=True", bounds, InvalidSpaceError)
        low, high = self._ends
        resolved = 0 < high - low < math.inf
        check(resolved, name, "a span that float64 resolves", bounds, InvalidSpaceError)

    def _is_kind(self, value: Any) -> bool:
        typed = isinstance(value, self.types) and not isinstance(value, bool)
        return typed and abs(value) <= self.largest

    @property
    def edges(self) -> tuple[float, float]:
        """Values that the ends of the column stand for."""
        return self.low, self.high

    @property
    def _ends(self) -> tuple[float, float]:
        low, high = self.edges
        return (math.log(low), math.log(high)) if self.log else (low, high)

    @property
    def expected(self) -> str:
        """What a value must be, in words."""
        return f"{self.kind} in [{self.low}, {self.high}]"

    def admits(self, value: Any) -> bool:
        """Whether ``value`` is one of this parameter's values."""
        return self._is_kind(value) and self.low <= value <= self.high

    def to_unit(self, value: Tensor) -> Tensor:
        """Map values between the edges onto [0, 1]."""
        low, high = self._ends
        return (((value.log() if self.log else value) - low) / (high - low)).clamp(0, 1)

    def from_unit(self, unit: Tensor) -> Tensor:
        """Map [0, 1] onto the values between the edges, in float64; clamp what lies outside."""
        unit, (low, high) = unit.double(), self._ends
        value = (1 - unit) * low + unit * high
        value = (value.exp() if self.log else value).clamp(*self.edges)
        # exp(log(low)) need not be low: a corner of the cube stands for the bound as it was given.
        return value.masked_fill(unit <= 0, self.edges[0]).masked_fill(unit >= 1, self.edges[1])

    def encode(self, value: Any) -> Tensor:
        """Columns of an admitted value, shape ``(1,)``."""
        return self.to_unit(torch.tensor([value], dtype=torch.float64))


@dataclass(frozen=True)
class Real(_Number):
    """A real number between two bounds, both included.

    Args:
        low: The smallest value.
        high: The largest value.
        log: Whether the encoding is logarithmic (the bounds must then be positive).

    Raises:
        InvalidSpaceError: If the bounds are not finite and increasing, or the logarithm of one is
            undefined.
    """

    values: ClassVar[None] = None  # too many to list

    def __post_init__(self) -> None:
        for field in ("low", "high"):
            if self._is_kind(bound := getattr(self, field)):
                # Real(0, 1) and Real(-0.0, 1.0) are one parameter, with one fingerprint.
                object.__setattr__(self, field, float(bound) + 0.0)
        super().__post_init__()

    def decode(self, columns: Tensor) -> float:
        """Value that ``columns``, shape ``(1,)``, stand for."""
        return self.from_unit(columns).item()

    def round(self, columns: Tensor) -> Tensor:
        """Nearest encodings, shape ``(*batch, 1)``."""
        return columns.clamp(0, 1)


@dataclass(frozen=True)
class Integer(_Number):
    """An integer between two bounds, both included.

    Args:
        low: The smallest value, at least -2**40 (with ``log``: at least 1).
        high: The largest value, at most 2**40.
        log: Whether the encoding is logarithmic. An integer ``k`` then owns the share of the
            column between the logarithms of ``k - 1/2`` and ``k + 1/2``.

    Raises:
        InvalidSpaceError: If the bounds are not increasing integers of that size.
    """

    low: int
    high: int

    kind: ClassVar[str] = "an integer"
    types: ClassVar[tuple[type, ...]] = (int,)
    # Beyond this size float64 columns, logarithmic ones first, cannot tell integers apart.
    largest: ClassVar[float] = 2**40

    @property
    def edges(self) -> tuple[float, float]:
        """Values that the ends of the column stand for: half a step beyond the bounds."""
        return self.low - 0.5, self.high + 0.5

    @property
    def values(self) -> range:
        """All values, in increasing order."""
        return range(self.low, self.high + 1)

    def _nearest(self, columns: Tensor) -> Tensor:
        # The outer edges themselves round outwards, hence the clamp.
        return self.from_unit(columns).round().clamp(self.low, self.high)

    def decode(self, columns: Tensor) -> int:
        """Value that ``columns``, shape ``(1,)``, stand for."""
        return int(self._nearest(columns).item())

    def round(self, columns: Tensor) -> Tensor:
        """Nearest encodings, shape ``(*batch, 1)``."""
        return self.to_unit(self._nearest(columns)).to(columns)


@dataclass(frozen=True)
class Choice:
    """One of finitely many options, no two of them closer than others.

    Args:
        options: A list or tuple of plain values (str, int, float, bool, None). Options that
            Python holds equal (``1``, ``1.0`` and ``True``) are duplicates.

    Raises:
        InvalidSpaceError: If there are no options, duplicates, or options that are not plain.
    """

    options: tuple[Plain, ...]

    def __init__(self, options: Iterable[Plain]) -> None:
        ordered = isinstance(options, list | tuple)  # a set has no order, a str is a typo
        check(ordered, "Choice", "a list or tuple of options", options, InvalidSpaceError)
        options = tuple(options)
        check(len(options) > 0, "Choice", "at least one option", options, InvalidSpaceError)
        expected = "options that are str, int, finite float, bool or None"
        for option in options:
            plain = type(option) in _PLAIN_TYPES
            plain = plain and (not isinstance(option, float) or math.isfinite(option))
            check(plain, "Choice", expected, option, InvalidSpaceError)
        distinct = len(set(options)) == len(options)
        check(distinct, "Choice", "distinct options", options, InvalidSpaceError)
        object.__setattr__(self, "options", options)

    @property
    def width(self) -> int:
        """Number of encoded columns: one an option, none for a single option."""
        return len(self.options) if len(self.options) > 1 else 0

    @property
    def values(self) -> tuple[Plain, ...]:
        """All options, in the order given."""
        return self.options

    @property
    def expected(self) -> str:
        """What a value must be, in words."""
        return f"one of {list(self.options)}"

    def admits(self, value: object) -> bool:
        """Whether ``value`` is one of the options, type included (``1`` is not ``True``)."""
        return type(value) in _PLAIN_TYPES and any(
            type(value) is type(option) and value == option for option in self.options
        )

    def encode(self, value: Any) -> Tensor:
        """Columns of an admitted option, shape ``(width,)``."""
        columns = torch.zeros(self.width, dtype=torch.float64)
        if self.width:
            columns[self.options.index(value)] = 1
        return columns

    def decode(self, columns: Tensor) -> Plain:
        """Option that ``columns``, shape ``(width,)``, stand for; of equals the first."""
        return self.options[int(columns.argmax())] if self.width else self.options[0]

    def round(self, columns: Tensor) -> Tensor:
        """Nearest encodings, shape ``(*batch, width)``."""
        if not self.width:
            return columns
        chosen = columns.argmax(-1, keepdim=True)
        return torch.zeros_like(columns).scatter(-1, chosen, 1.0)


Parameter = Real | Integer | Choice
_KINDS: dict[str, Callable[..., Parameter]] = {"Real": Real, "Integer": Integer, "Choice": Choice}


def _named_pairs(
    parameters: Mapping[str, Parameter] | Iterable[tuple[str, Parameter]],
) -> tuple[tuple[str, Parameter], ...]:
    """Validate the parameters of a space and return them as (name, parameter) pairs."""

    def demand(condition: bool, expected: str, received: object, name: str = "SearchSpace") -> None:
        check(condition, name, expected, received, InvalidSpaceError)

    form = "{name: parameter} or a list of (name, parameter) pairs"
    demand(isinstance(parameters, Mapping | list | tuple), form, parameters)
    items = list(parameters.items() if isinstance(parameters, Mapping) else parameters)
    demand(len(items) > 0, "at least one parameter", parameters)
    pairs: dict[str, Parameter] = {}
    for item in items:
        demand(isinstance(item, list | tuple) and len(item) == 2, form, item)
        name, parameter = item
        demand(isinstance(name, str) and name != "", "names that are non-empty strings", name)
        demand(isinstance(parameter, Parameter), "a Real, Integer or Choice", parameter, name)
        demand(name not in pairs, "distinct names", name)
        pairs[name] = parameter
    return tuple(pairs.items())


@dataclass(frozen=True, init=False, repr=False)
class SearchSpace:
    """Named parameters, and their encoding to the unit cube.

    Args:
        parameters: ``{name: parameter}``, or a list of ``(name, parameter)`` pairs. Their order
            is the order of the encoded columns.

    Attributes:
        parameters: The ``(name, parameter)`` pairs.

    Raises:
        InvalidSpaceError: If there is no parameter, a name is no string or occurs twice, or a
            parameter is none of ``Real``, ``Integer`` and ``Choice``.

    Example:
        >>> space = SearchSpace({"lr": Real(1e-4, 1e-2, log=True), "policy": Choice(["a", "b"])})
        >>> space.encode({"lr": 1e-3, "policy": "b"})
        tensor([0.5000, 0.0000, 1.0000], dtype=torch.float64)
        >>> space.decode(torch.tensor([1.0, 0.7, 0.2]))
        {'lr': 0.01, 'policy': 'a'}
    """

    parameters: tuple[tuple[str, Parameter], ...]

    def __init__(
        self, parameters: Mapping[str, Parameter] | Iterable[tuple[str, Parameter]]
    ) -> None:
        object.__setattr__(self, "parameters", _named_pairs(parameters))

    def __repr__(self) -> str:
        return f"SearchSpace({dict(self.parameters)})"

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters' names, in order."""
        return tuple(name for name, _ in self.parameters)

    @cached_property
    def columns(self) -> dict[str, slice]:
        """Encoded columns that each parameter owns."""
        ends = list(itertools.accumulate(p.width for _, p in self.parameters))
        return {
            name: slice(end - p.width, end)
            for (name, p), end in zip(self.parameters, ends, strict=True)
        }

    @property
    def dim(self) -> int:
        """Number of encoded columns (0 if there is a single configuration)."""
        return sum(parameter.width for _, parameter in self.parameters)

    def _values(self) -> list[Sequence[Plain]] | None:
        values: list[Sequence[Plain]]
        values = [p.values for _, p in self.parameters if p.values is not None]
        return values if len(values) == len(self.parameters) else None

    @property
    def size(self) -> int | None:
        """Number of configurations; None if infinite."""
        values = self._values()
        return None if values is None else math.prod(map(len, values))

    @property
    def is_finite(self) -> bool:
        """Whether there are finitely many configurations: no parameter is Real."""
        return self._values() is not None

    @property
    def is_arms(self) -> bool:
        """Whether all parameters are choices: finite arms with no notion of closeness."""
        return all(isinstance(parameter, Choice) for _, parameter in self.parameters)

    def check(self, config: Mapping[str, Plain]) -> None:
        """Raise unless ``config`` is a configuration of this space.

        Raises:
            InvalidConfigError: If names are missing or unknown, or a value has the wrong type or
                lies outside its parameter's range.
        """
        check(isinstance(config, Mapping), "config", "a mapping", config, InvalidConfigError)
        same = set(config) == set(self.names)
        check(same, "config", f"the names {list(self.names)}", list(config), InvalidConfigError)
        for name, parameter in self.parameters:
            admitted = parameter.admits(config[name])
            check(admitted, name, parameter.expected, config[name], InvalidConfigError)

    def encode(self, config: Mapping[str, Plain]) -> Tensor:
        """Point of the unit cube that stands for ``config``, float64 of shape ``(dim,)``.

        Raises:
            InvalidConfigError: If ``config`` is not a configuration of this space.
        """
        self.check(config)
        return torch.cat([parameter.encode(config[name]) for name, parameter in self.parameters])

    def _check_points(self, x: Tensor, shape: str, fits: bool) -> None:
        expected = f"a floating-point tensor of shape {shape} with dim = {self.dim}"
        good = fits and x.is_floating_point()
        check(good, "x", expected, (tuple(x.shape), x.dtype), InvalidShapeError)

    def decode(self, x: Tensor) -> dict[str, Plain]:
        """Configuration that a point stands for, in plain Python values.

        Args:
            x: The point, shape ``(dim,)``; coordinates outside [0, 1] count as the nearer end.

        Raises:
            InvalidShapeError: If ``x`` has another shape or is not floating-point.
            InvalidArgumentError: If ``x`` contains NaN.
        """
        self._check_points(x, "(dim,)", x.shape == (self.dim,))
        check(not bool(x.isnan().any()), "x", "no NaN", x.tolist(), InvalidArgumentError)
        return {name: p.decode(x[self.columns[name]]) for name, p in self.parameters}

    def round(self, x: Tensor) -> Tensor:
        """Move points onto the encodings of the configurations they decode to.

        Idempotent, and ``decode(round(x)) == decode(x)`` in float64; in float32 up to the
        resolution of that type.

        Args:
            x: The points, shape ``(*batch, dim)``.

        Returns:
            The encodings, shape, dtype and device of ``x``.

        Raises:
            InvalidShapeError: If ``x`` has another shape or is not floating-point.
        """
        self._check_points(x, "(*batch, dim)", x.ndim > 0 and x.shape[-1] == self.dim)
        return torch.cat([p.round(x[..., self.columns[n]]) for n, p in self.parameters], dim=-1)

    def sample(self, n: int, generator: Generator) -> Tensor:
        """Draw configurations uniformly: every integer and option alike, ``log`` ones in the log.

        Args:
            n: How many.
            generator: The source of randomness; its device is the result's.

        Returns:
            Their encodings, float64 of shape ``(n, dim)``.
        """
        check_count("n", n)
        cube = torch.empty(n, self.dim, dtype=torch.float64, device=generator.device)
        # The argmax of independent uniforms is a uniform option, so rounding the cube is enough.
        return self.round(cube.uniform_(generator=generator))

    def configurations(self) -> list[dict[str, Plain]]:
        """All configurations of a finite space, the last parameter varying fastest.

        Raises:
            InvalidSpaceError: If the space is not finite.
        """
        values = self._values()
        if values is None:
            expected = "a space without Real parameters"
            raise InvalidSpaceError("configurations", expected, self)
        return [dict(zip(self.names, c, strict=True)) for c in itertools.product(*values)]

    def to_dict(self) -> dict[str, list[dict]]:
        """Definition in plain values that JSON keeps."""
        described = []
        for name, p in self.parameters:
            fields = {k: list(v) if isinstance(v, tuple) else v for k, v in vars(p).items()}
            described.append({"name": name, "type": type(p).__name__, **fields})
        return {"parameters": described}

    @classmethod
    def from_dict(cls, definition: Mapping[str, list[dict]]) -> "SearchSpace":
        """Rebuild a space from ``to_dict``.

        Raises:
            InvalidSpaceError: If ``definition`` does not define a space.
        """
        pairs = []
        try:
            for entry in definition["parameters"]:
                fields = {k: v for k, v in entry.items() if k not in ("name", "type")}
                pairs.append((entry["name"], _KINDS[entry["type"]](**fields)))
        except (KeyError, TypeError, AttributeError) as error:
            expected = "the plain values of SearchSpace.to_dict"
            raise InvalidSpaceError("definition", expected, definition) from error
        return cls(pairs)

    def fingerprint(self) -> str:
        """Short hash of the definition, the same in every process and on every machine."""
        text = json.dumps(self.to_dict(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]
