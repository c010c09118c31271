"""The domain of a search: a space, perhaps a space of fidelities, perhaps a list to choose from."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from botorch_costly.device import Tkwargs, check_tkwargs
from botorch_costly.errors import InvalidConfigError, InvalidSpaceError, check
from botorch_costly.parameters import Plain, Real
from botorch_costly.plain import as_number
from botorch_costly.space import SearchSpace

Setting = tuple[Mapping[str, Plain], Mapping[str, float]]
"""A configuration, and the value of each fidelity; the second mapping is empty without fidelities."""

_DECIMALS = 9  # digits of an encoding by which listed settings are told apart


class Domain:
    """The settings that a search may evaluate, and their encoding as points of the unit cube.

    Args:
        space: Search space of the configurations.
        fidelities: Space of the fidelities, each a ``Real`` with a positive lower bound; none if omitted.
        candidates: Settings to choose from, each a configuration, or a pair of a configuration and its
            fidelities; all of the domain if omitted.
        dtype: Floating-point type of encoded points.
        device: Device of encoded points.
        allow_single: Whether the space may hold a single configuration.

    Attributes:
        listed: Encoded candidates in float64 on the CPU, shape ``(n, dim)``; None without a list.

    Raises:
        InvalidSpaceError: If the space holds a single point, or a fidelity is no positive ``Real`` or has
            the name of a parameter.
        InvalidArgumentError: If a candidate is listed twice, or there is no such device.
        InvalidConfigError: If a candidate does not belong to the domain.

    Example:
        >>> domain = Domain(SearchSpace({"lr": Real(0.0, 1.0)}))
        >>> domain.encode({"lr": 0.25})
        tensor([0.2500], dtype=torch.float64)
        >>> domain.decode(domain.encode({"lr": 0.25}))
        ({'lr': 0.25}, {})
    """

    def __init__(
        self,
        space: SearchSpace,
        fidelities: SearchSpace | None = None,
        *,
        candidates: Sequence[Setting | Mapping[str, Plain]] | None = None,
        dtype: torch.dtype = torch.float64,
        device: torch.device | str = "cpu",
        allow_single: bool = False,
    ) -> None:
        tunable = isinstance(space, SearchSpace) and (space.dim > 0 or allow_single)
        check(tunable, "space", "a SearchSpace with something to tune", space, InvalidSpaceError)
        self.space = space
        self.fidelities = None if fidelities is None else _checked(fidelities, space)
        self.tkwargs: Tkwargs = check_tkwargs(dtype, device)
        self._candidates = None if candidates is None else _settings(candidates, self.fidelities)
        self.listed = None if self._candidates is None else self._encoded(self._candidates)

    @property
    def dim(self) -> int:
        """Number of columns of an encoded setting."""
        return self.space.dim + (0 if self.fidelities is None else self.fidelities.dim)

    @property
    def digest(self) -> str | None:
        """A short hash of the list of candidates; None without a list."""
        return None if self.listed is None else digest_of([self.listed])

    def encode(
        self, config: Mapping[str, Plain], fidelities: Mapping[str, Any] | None = None
    ) -> Tensor:
        """Return an encoded setting, float64 on the CPU, shape ``(dim,)``.

        Raises:
            InvalidConfigError: If it does not belong to the domain.
        """
        point = self.space.encode(config)
        if self.fidelities is None:
            return point
        return torch.cat([point, self.fidelities.encode({} if fidelities is None else fidelities)])

    def decode(self, point: Tensor) -> Setting:
        """Return the setting of an encoded point, shape ``(dim,)``: of a list, the nearest candidate."""
        if self._candidates is not None and self.listed is not None:
            config, fidelities = self._candidates[self._nearest(point)]
            return config, _numbers(fidelities)
        config = self.space.decode(point[: self.space.dim])
        if self.fidelities is None:
            return config, {}
        return config, _numbers(self.fidelities.decode(point[self.space.dim :]))

    def config_at(self, point: Tensor) -> Mapping[str, Plain]:
        """Return the configuration of an encoded configuration, shape ``(space.dim,)``."""
        if self._candidates is not None and self.listed is not None:
            return self._candidates[self._nearest(point)][0]
        return self.space.decode(point)

    def canonical(
        self, config: Mapping[str, Plain], fidelities: Mapping[str, Any] | None = None
    ) -> Setting:
        """Return a setting as plain values of the domain; it need not be a candidate.

        Raises:
            InvalidConfigError: If it does not belong to the domain.
        """
        values: Mapping[str, Any] = {} if fidelities is None else fidelities
        check(self.fidelities is not None or not values, "fidelities", "none here", fidelities)
        if self.fidelities is not None:
            given = isinstance(values, Mapping) and set(values) == set(self.fidelities.names)
            expected = f"a value of each of {list(self.fidelities.names)}"
            check(given, "fidelities", expected, fidelities, InvalidConfigError)
            values = self.fidelities.canonical(values)
        return self.space.canonical(config), _numbers(values)

    def share(self, fidelities: Mapping[str, float]) -> float:
        """Return the product of fidelities as shares of their upper bounds, which are the target."""
        spaces = () if self.fidelities is None else self.fidelities.parameters
        highest = {
            name: parameter.high for name, parameter in spaces if isinstance(parameter, Real)
        }
        return math.prod(value / highest[name] for name, value in fidelities.items())

    def stacked(self, points: Sequence[Tensor]) -> Tensor:
        """Return encoded points as a matrix in the dtype and on the device of the domain, ``n x dim``."""
        if not points:
            return torch.zeros(0, self.dim, **self.tkwargs)
        return torch.stack(list(points)).to(**self.tkwargs)

    def _nearest(self, point: Tensor) -> int:
        """Return the number of the candidate whose first columns are nearest to a point."""
        assert self.listed is not None
        listed = self.listed[:, : len(point)].to(point)
        return int((listed - point).abs().sum(-1).argmin())

    def _encoded(self, candidates: Sequence[Setting]) -> Tensor:
        check(len(candidates) > 0, "candidates", "at least one", candidates)
        points = torch.stack([self.encode(*candidate) for candidate in candidates])
        distinct = len(points.round(decimals=_DECIMALS).unique(dim=0))
        expected = "each candidate once"
        check(distinct == len(points), "candidates", expected, f"{distinct} in {len(points)}")
        return points


def digest_of(tables: Sequence[Tensor], rows: str | None = None) -> str:
    """Return a short hash of tensors, rounded to single precision so that last bits do not count.

    Args:
        tables: The tensors.
        rows: Name of what a row is. With a name the rows are counted in place of the tensors, and rounded
            to nine decimals.

    Example:
        >>> digest_of([torch.zeros(2, 1)]), digest_of([torch.zeros(2, 1).double()], "evaluations")
        ('1 tables, af5570f5a1810b7a', '2 evaluations, 374708fff7719dd5')
    """
    total = hashlib.sha256()
    for table in tables:
        rounded = table.float() if rows is None else table.round(decimals=_DECIMALS)
        total.update(rounded.contiguous().numpy().tobytes())
    count = f"{len(tables)} tables" if rows is None else f"{sum(map(len, tables))} {rows}"
    return f"{count}, {total.hexdigest()[:16]}"


def _numbers(fidelities: Mapping[str, Any]) -> dict[str, float]:
    return {name: as_number(name, value) for name, value in fidelities.items()}


def _checked(fidelities: SearchSpace, space: SearchSpace) -> SearchSpace:
    valid = isinstance(fidelities, SearchSpace) and fidelities.dim > 0
    valid = valid and all(
        isinstance(parameter, Real) and parameter.step is None
        for _, parameter in fidelities.parameters
    )
    check(
        valid,
        "fidelities",
        "a SearchSpace of Real parameters without step",
        fidelities,
        InvalidSpaceError,
    )
    shared = sorted(set(fidelities.names) & set(space.names))
    expected = "names other than those of the space"
    check(not shared, "fidelities", expected, shared, InvalidSpaceError)
    for name, parameter in fidelities.parameters:
        above = isinstance(parameter, Real) and parameter.low > 0
        check(above, f"fidelity {name}", "bounds above 0", parameter, InvalidSpaceError)
    return fidelities


def _settings(
    candidates: Sequence[Setting | Mapping[str, Plain]], fidelities: SearchSpace | None
) -> list[Setting]:
    """Return candidates as pairs of a configuration and its fidelities."""
    settings: list[Setting] = []
    kinds = "configurations, or " if fidelities is None else ""
    for number, candidate in enumerate(candidates):
        pair: Any = candidate
        if isinstance(candidate, Mapping) and fidelities is None:
            pair = dict(candidate), {}
        valid = isinstance(pair, Sequence) and not isinstance(pair, str) and len(pair) == 2
        expected = f"{kinds}pairs of a configuration and its fidelities"
        check(valid, "candidates", expected, f"{candidate} as number {number}")
        config, values = pair
        settings.append((config, values))
    return settings
