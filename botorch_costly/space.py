"""The search space: configurations of plain Python values <-> points of the unit cube.

Each parameter has its columns of the cube, in the order of the parameters; ``parameters`` defines their
encodings. Each point of the cube is decoded to a configuration, and ``SearchSpace.round`` moves a point
onto the encoding of its configuration.
"""

import itertools
import json
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import torch
from torch import Generator, Tensor

from botorch_costly.calls import advised
from botorch_costly.errors import (
    InvalidArgumentError,
    InvalidConfigError,
    InvalidShapeError,
    InvalidSpaceError,
    check,
    check_count,
)
from botorch_costly.parameters import OPTIONAL, Choice, Integer, Parameter, Real, Scheduled
from botorch_costly.plain import Plain, hashes_of, listed, tupled
from botorch_costly.randomness import check_generator
from botorch_costly.roles import Role, role_by_name

_logger = logging.getLogger(__name__)
_WIDE_RATE, _WIDE = 1e2, 1e4  # ratio of bounds of a linear scale that is probably a mistake
_KINDS: dict[str, Callable[..., Parameter]] = {
    kind.__name__: kind for kind in (Real, Scheduled, Integer, Choice)
}


def _named_pairs(
    parameters: Mapping[str, Parameter] | Iterable[tuple[str, Parameter]],
) -> tuple[tuple[str, Parameter], ...]:
    """Validate the parameters of a space and return them as (name, parameter) pairs."""

    def require(
        condition: bool, expected: str, received: object, name: str = "SearchSpace"
    ) -> None:
        check(condition, name, expected, received, InvalidSpaceError)

    form = "{name: parameter} or a list of (name, parameter) pairs"
    require(isinstance(parameters, Mapping | list | tuple), form, parameters)
    items = list(parameters.items() if isinstance(parameters, Mapping) else parameters)
    require(len(items) > 0, "at least one parameter", parameters)
    pairs: dict[str, Parameter] = {}
    for item in items:
        require(isinstance(item, list | tuple) and len(item) == 2, form, item)
        name, parameter = item
        require(isinstance(name, str) and name != "", "names that are non-empty strings", name)
        require(isinstance(parameter, Parameter), "a Real, Integer or Choice", parameter, name)
        require(name not in pairs, "distinct names", name)
        pairs[name] = parameter
    return tuple(pairs.items())


_is_own: ContextVar[bool] = ContextVar("is_own", default=True)


@contextmanager
def of_earlier_studies() -> Iterator[None]:
    """Make spaces without warnings: they are those of earlier studies, which cannot be changed."""
    token = _is_own.set(False)
    try:
        yield
    finally:
        _is_own.reset(token)


@cache  # spaces are rebuilt from states, and with fidelities
def _warn_of_scale(name: str, parameter: Parameter) -> None:
    """Warn of a linear scale over orders of magnitude, nearly all of which lies near its upper end.

    A parameter earns one warning in a process.
    """
    if not isinstance(parameter, Real) or parameter.log or parameter.low <= 0:
        return
    if parameter.step is not None:  # steps are equal on a linear scale, as the user wants them
        return
    is_rate = (parameter.role or role_by_name(name)) == "learning_rate"
    if parameter.high >= (_WIDE_RATE if is_rate else _WIDE) * parameter.low:
        message = "%s is searched on a linear scale, nine tenths of which lie above %.3g: log=True?"
        _logger.warning(message, name, parameter.low + 0.1 * (parameter.high - parameter.low))


@advised
@dataclass(frozen=True, init=False, repr=False)
class SearchSpace:
    """Named parameters, and their encoding to the unit cube.

    Args:
        parameters: ``{name: parameter}``, such as ``{"lr": Real(1e-5, 1e-1, log=True)}``, or a list of
            ``(name, parameter)`` pairs. Their order is the order of the encoded columns.

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
        for name, parameter in self.parameters if _is_own.get() else ():
            _warn_of_scale(name, parameter)

    def __repr__(self) -> str:
        return f"SearchSpace({dict(self.parameters)})"

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters' names, in order."""
        return tuple(name for name, _ in self.parameters)

    @cached_property
    def columns(self) -> dict[str, slice]:
        """Encoded columns of each parameter."""
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
        """Whether there are finitely many configurations: no parameter is a Real without a step."""
        return self._values() is not None

    @property
    def is_arms(self) -> bool:
        """Whether all parameters are choices: the configurations are arms without distances."""
        return all(isinstance(parameter, Choice) for _, parameter in self.parameters)

    def canonical(self, config: Mapping[str, Any]) -> dict[str, Plain]:
        """Return a configuration in plain values, in the order of the parameters.

        Scalars of NumPy and torch become Python numbers, and integer values of a ``Real`` become floats.

        Args:
            config: The value of each parameter by name.

        Raises:
            InvalidConfigError: If names are missing or unknown, or a value has the wrong type or
                lies outside its parameter's range.

        Example:
            >>> space = SearchSpace({"lr": Real(0, 1), "layers": Integer(1, 4)})
            >>> space.canonical({"layers": torch.tensor(2), "lr": 1})
            {'lr': 1.0, 'layers': 2}
        """
        check(isinstance(config, Mapping), "config", "a mapping", config, InvalidConfigError)
        is_complete = set(config) == set(self.names)
        expected = f"the names {list(self.names)}"
        check(is_complete, "config", expected, list(config), InvalidConfigError)
        return {name: p.canonical(name, config[name]) for name, p in self.parameters}

    @property
    def is_scheduled(self) -> bool:
        """Whether some parameter is ``Scheduled``."""
        return any(isinstance(parameter, Scheduled) for _, parameter in self.parameters)

    @property
    def rates(self) -> tuple[str, ...]:
        """Names of the learning rates: ``Scheduled`` parameters, or else logarithmic reals of that role.

        See ``roles`` for the names of learning rates.
        """
        scheduled = tuple(name for name, p in self.parameters if isinstance(p, Scheduled))
        return scheduled or self._logarithmic("learning_rate")

    @property
    def possible_rates(self) -> tuple[str, ...]:
        """Names of the logarithmic reals of unknown role, which may be learning rates."""
        return self._logarithmic(None)

    @property
    def lasting(self) -> tuple[str, ...]:
        """Names of the reals whose effect on the weights lasts: rates, weight decays and momenta.

        Without a known learning rate each logarithmic real of unknown role counts as one.
        """
        roles: tuple[Role | None, ...] = ("learning_rate", "weight_decay", "momentum")
        names = {name for role in roles for name in self.with_role(role)}
        names |= set(() if self.with_role("learning_rate") else self.possible_rates)
        return tuple(name for name in self.names if name in names)

    def _logarithmic(self, role: Role | None) -> tuple[str, ...]:
        logarithmic = {name for name, p in self.parameters if isinstance(p, Real) and p.log}
        return tuple(name for name in self.with_role(role) if name in logarithmic)

    def with_role(self, role: Role | None) -> tuple[str, ...]:
        """Return the names of the reals with a role; ``None`` for an unknown role."""
        reals = ((name, p) for name, p in self.parameters if isinstance(p, Real))
        return tuple(name for name, p in reals if (p.role or role_by_name(name)) == role)

    def scheduled(self, config: Mapping[str, Plain], share: float) -> dict[str, Plain]:
        """Return the configuration that is played when a share of the run is over.

        Args:
            config: A configuration of the space, with the peak of each ``Scheduled`` parameter.
            share: Share of the run, in [0, 1].

        Returns:
            The configuration with each peak multiplied by the factor of its schedule.
        """
        played = dict(config)
        for name, parameter in self.parameters:
            if isinstance(parameter, Scheduled):
                peak = parameter.canonical(name, config[name])
                played[name] = peak * parameter.factor(share)
        return played

    def check(self, config: Mapping[str, Any]) -> None:
        """Check that ``config`` is a configuration of this space.

        Raises:
            InvalidConfigError: If ``canonical`` refuses it.
        """
        self.canonical(config)

    def encode(self, config: Mapping[str, Any]) -> Tensor:
        """Return the encoding of a configuration, float64 of shape ``(dim,)``.

        Raises:
            InvalidConfigError: If ``canonical`` refuses it.
        """
        plain = self.canonical(config)
        return torch.cat([parameter.encode(plain[name]) for name, parameter in self.parameters])

    def _check_points(self, x: Tensor, shape: str, fits: bool) -> None:
        expected = f"a floating-point tensor of shape {shape} with dim = {self.dim}"
        is_valid = fits and x.is_floating_point()
        check(is_valid, "x", expected, (tuple(x.shape), x.dtype), InvalidShapeError)

    def decode(self, x: Tensor) -> dict[str, Plain]:
        """Return the configuration of a point, in plain Python values.

        Args:
            x: The point, shape ``(dim,)``; coordinates are clamped to [0, 1].

        Raises:
            InvalidShapeError: If ``x`` has another shape or is not floating-point.
            InvalidArgumentError: If ``x`` contains NaN.
        """
        self._check_points(x, "(dim,)", x.shape == (self.dim,))
        values = x.tolist()
        check(not any(map(math.isnan, values)), "x", "no NaN", values, InvalidArgumentError)
        columns = x.split([p.width for _, p in self.parameters])
        return {
            name: parameter.decode(own)
            for (name, parameter), own in zip(self.parameters, columns, strict=True)
        }

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
        """Draw configurations uniformly, for ``log`` parameters uniformly in the logarithm.

        Args:
            n: Number of configurations.
            generator: Random generator on the device of the result.

        Returns:
            The encodings, float64 of shape ``(n, dim)``.
        """
        n, device = check_count("n", n), check_generator(generator).device
        cube = torch.empty(n, self.dim, dtype=torch.float64, device=device)
        # The argmax of independent uniforms is a uniform option, so rounding the cube is enough.
        return self.round(cube.uniform_(generator=generator))

    def configurations(self) -> list[dict[str, Plain]]:
        """Return all configurations of a finite space, the last parameter varying fastest.

        Raises:
            InvalidSpaceError: If the space is not finite.
        """
        values = self._values()
        if values is None:
            raise InvalidSpaceError(
                "configurations", "a space without Real parameters that have no step", self
            )
        return [dict(zip(self.names, c, strict=True)) for c in itertools.product(*values)]

    def to_dict(self) -> dict[str, list[dict]]:
        """Return the definition in values that JSON preserves."""
        definitions = []
        for name, p in self.parameters:
            given = {k: v for k, v in vars(p).items() if k not in OPTIONAL or v is not None}
            fields = {k: listed(v) for k, v in given.items()}
            definitions.append({"name": name, "type": type(p).__name__, **fields})
        return {"parameters": definitions}

    @classmethod
    def from_dict(cls, definition: Mapping[str, list[dict]]) -> "SearchSpace":
        """Rebuild a space from ``to_dict``.

        Raises:
            InvalidSpaceError: If ``definition`` does not define a space.
        """
        pairs = []
        try:
            for entry in definition["parameters"]:
                fields = {k: tupled(v) for k, v in entry.items() if k not in ("name", "type")}
                pairs.append((entry["name"], _KINDS[entry["type"]](**fields)))
        except (KeyError, TypeError, AttributeError) as error:
            expected = "the plain values of SearchSpace.to_dict"
            raise InvalidSpaceError("definition", expected, definition) from error
        return cls(pairs)

    def fingerprint(self) -> str:
        """Return a short hash of the definition, the same in every process and on every machine.

        Of a definition with floats of more than nine digits it is two hashes; see ``plain.hashes_of``.
        """
        write = partial(json.dumps, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashes_of(self.to_dict(), write, 16)
