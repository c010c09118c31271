"""The parameters of a search space: plain Python values <-> columns of the unit cube.

    Real        one column, linear or logarithmic between its bounds
    Scheduled   a logarithmic Real that is multiplied by a schedule during training
    Integer     one column, widened by half a step at both ends, decoded by rounding; a Real
                with a step likewise
    Choice      one column per option (one-hot), decoded by argmax; a single option is a
                constant without a column

So without ``log`` every integer has an equal share of its column, and every option an equal share of its
columns.
"""

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

import torch
from torch import Tensor

from botorch_costly.calls import advised
from botorch_costly.errors import InvalidConfigError, InvalidSpaceError, check, check_rate
from botorch_costly.plain import PLAIN, Plain, agree, is_plain, plain, rounds_to, same
from botorch_costly.roles import Role, check_role
from botorch_costly.steps import check_steps, nearest_step, steps_of, tensor_of_steps

OPTIONAL = ("step", "role")  # fields that a definition leaves out where they are None


@dataclass(frozen=True)
class _Number:
    """The base of Real and Integer: one column, whose ends correspond to ``edges``."""

    low: float
    high: float
    log: bool = field(default=False, kw_only=True)
    step: float | None = field(default=None, kw_only=True)

    width: ClassVar[int] = 1
    kind: ClassVar[str] = "a number"
    types: ClassVar[tuple[type, ...]] = (int, float)  # the last is the type of plain values
    largest: ClassVar[float] = sys.float_info.max  # excludes infinities and NaN

    def __post_init__(self) -> None:
        for end in ("low", "high"):
            object.__setattr__(self, end, plain(getattr(self, end)))
        name, bounds = type(self).__name__, (self.low, self.high)
        expected = f"bounds that are each {self.kind} of at most {self.largest:g} in size"
        check(all(map(self._is_kind, bounds)), name, expected, bounds, InvalidSpaceError)
        check(isinstance(self.log, bool), f"{name} log", "a bool", self.log, InvalidSpaceError)
        check(self.low < self.high, name, "low < high", bounds, InvalidSpaceError)
        positive = self.low > 0 or not self.log
        check(positive, name, "bounds > 0 with log=True", bounds, InvalidSpaceError)
        object.__setattr__(self, "step", plain(self.step))
        if self.step is not None:
            valid = self._is_kind(self.step)
            check(valid, f"{name} step", f"{self.kind} above 0", self.step, InvalidSpaceError)
            check_steps(f"{name} step", self.low, self.high, self.step, log=self.log)
        low, high = self._ends
        resolved = 0 < high - low < math.inf
        check(resolved, name, "a span that float64 resolves", bounds, InvalidSpaceError)

    @property
    def values(self) -> Sequence[float] | None:
        """All values, in increasing order; None if they are too many to list."""
        return None if self.step is None else steps_of(self.low, self.high, self.step)

    def __repr__(self) -> str:
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        names = [n for n, value in given.items() if n not in OPTIONAL or value is not None]
        arguments = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__name__}({arguments})"

    def _is_typed(self, value: Any) -> bool:
        return isinstance(value, self.types) and not isinstance(value, bool)

    def _is_kind(self, value: Any) -> bool:
        return self._is_typed(value) and abs(value) <= self.largest

    @property
    def edges(self) -> tuple[float, float]:
        """Values that correspond to the ends of the column: half a step beyond the bounds."""
        beyond = 0 if self.step is None else self.step / 2
        return self.low - beyond, self.high + beyond

    @property
    def _ends(self) -> tuple[float, float]:
        low, high = self.edges
        return (math.log(low), math.log(high)) if self.log else (low, high)

    def canonical(self, name: str, value: Any) -> Any:
        """Return ``value`` as a plain number of this kind.

        A number that equals a bound but for its last bits is converted to that bound, and so is a scalar
        of NumPy or torch that equals it in its own precision.

        Args:
            name: Name of the parameter, for messages.
            value: A Python number, or a scalar of NumPy or torch.

        Raises:
            InvalidConfigError: If the value is not a number of this kind, or outside the bounds.
        """
        number = plain(value)
        check(self._is_typed(number), name, self.kind, value, InvalidConfigError)
        for bound in (self.low, self.high):
            if rounds_to(bound, value) or agree(bound, number):
                return bound
        within = f"{self.kind} in [{self.low}, {self.high}]"
        check(self.low <= number <= self.high, name, within, value, InvalidConfigError)
        return self.types[-1](number if self.step is None else self._on_step(name, number, value))

    def _on_step(self, name: str, number: float, value: Any) -> float:
        """Return the step that a number is, but for its last bits; raise if it lies between two."""
        nearest, is_near = nearest_step(self.values or (), number)
        expected = f"a step of {self.step} from {self.low} to {self.high}, such as {nearest}"
        check(is_near or rounds_to(nearest, value), name, expected, value, InvalidConfigError)
        return nearest

    def _nearest(self, columns: Tensor) -> Tensor:
        """Values nearest to the encodings, of those with a step, in float64."""
        steps = tensor_of_steps(self.low, self.high, self.step or 1, columns.device)
        first = (self.from_unit(columns) - self.low) / (self.step or 1)
        # The outer edges round outwards, hence the clamp.
        return steps[first.round().clamp(0, len(steps) - 1).long()]

    def to_unit(self, value: Tensor) -> Tensor:
        """Map values between the edges onto [0, 1]."""
        low, high = self._ends
        return (((value.log() if self.log else value) - low) / (high - low)).clamp(0, 1)

    def from_unit(self, unit: Tensor) -> Tensor:
        """Map [0, 1] onto the values between the edges, in float64; numbers outside are clamped."""
        unit, (low, high) = unit.double(), self._ends
        value = (1 - unit) * low + unit * high
        value = (value.exp() if self.log else value).clamp(*self.edges)
        # exp(log(low)) may differ from low, but a corner of the cube is decoded to the exact bound.
        return value.masked_fill(unit <= 0, self.edges[0]).masked_fill(unit >= 1, self.edges[1])

    def encode(self, value: Any) -> Tensor:
        """Columns of a canonical value, shape ``(1,)``."""
        return self.to_unit(torch.tensor([value], dtype=torch.float64))


@advised
@dataclass(frozen=True, repr=False)
class Real(_Number):
    """A real number between two bounds, both included.

    Args:
        low: The smallest value.
        high: The largest value.
        log: Whether the encoding is logarithmic (the bounds must then be positive).
        step: Distance of the values that are suggested, ``low``, ``low + step``, .. up to ``high``, which
            must be one of them; None for all values between the bounds. A configuration between two
            steps is refused, that of an earlier study counts as it is. No step with ``log``.
        role: ``"learning_rate"`` or ``"momentum"``, which tuners treat specially, or ``"other"``; by
            default derived from the parameter's name, see ``roles``.

    Raises:
        InvalidSpaceError: If the bounds are not finite and increasing, their logarithm is undefined, the
            step does not lead from one to the other, or the role is unknown.

    Example:
        >>> Real(0.1, 0.4, step=0.1).values
        (0.1, 0.2, 0.3, 0.4)
    """

    role: Role | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        check_role(type(self).__name__, self.role)
        for name in ("low", "high", "step"):
            if self._is_kind(number := plain(getattr(self, name))):
                # Real(0, 1) and Real(-0.0, 1.0) are the same parameter, with the same fingerprint.
                object.__setattr__(self, name, float(number) + 0.0)
        super().__post_init__()

    def decode(self, columns: Tensor) -> float:
        """Value of the encoding ``columns``, shape ``(1,)``."""
        if self.step is not None:
            return self._nearest(columns).item()
        if self.log:
            return self.from_unit(columns).item()
        # Same result as `from_unit` to the last digit, without the overhead of tensor operations.
        unit, (low, high) = columns.item(), self.edges
        if not 0 < unit < 1:
            return low if unit <= 0 else high
        return min(max((1 - unit) * low + unit * high, low), high)

    def round(self, columns: Tensor) -> Tensor:
        """Nearest encodings, shape ``(*batch, 1)``."""
        if self.step is not None:
            return self.to_unit(self._nearest(columns)).to(columns)
        return columns.clamp(0, 1)


_DECAY = 0.2  # last share of the run, in which "wsd" decreases
BASES: dict[str, Callable[[float], float]] = {
    "wsd": lambda share: min(1.0, (1 - share) / _DECAY),
    "cosine": lambda share: (1 + math.cos(math.pi * share)) / 2,
    "constant": lambda share: 1.0,
}


@advised
@dataclass(frozen=True, repr=False)
class Scheduled(Real):
    """A learning rate whose peak is tuned and multiplied by a schedule during training.

    The end of a run benefits from small steps. With a schedule they need not be tuned, and their benefit
    is not attributed to a configuration. A round plays the peak times the factor of the schedule, which
    may be below ``low``.

    References:
        A. Hägele et al. Scaling laws and compute-optimal training beyond fixed training durations.
        2024: constant, then a linear decrease over the last fifth, as good as a cosine.

    Args:
        low: The smallest peak, positive.
        high: The largest peak.
        log: Whether the encoding is logarithmic.
        base: Schedule: ``"wsd"``, constant until the last fifth of the run and then linear to 0;
            ``"cosine"``, half a cosine from 1 to 0; or ``"constant"``.

    Raises:
        InvalidSpaceError: If the bounds are not positive, finite and increasing, or the base is unknown.

    Example:
        >>> rate = Scheduled(1e-5, 1e-1)
        >>> rate.factor(0.0), round(rate.factor(0.9), 6)
        (1.0, 0.5)
    """

    log: bool = field(default=True, kw_only=True)
    base: str = field(default="wsd", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        is_base = isinstance(self.base, str) and self.base in BASES
        check(is_base, "base", f"one of {list(BASES)}", self.base, InvalidSpaceError)
        check(self.low > 0, "Scheduled", "bounds > 0", (self.low, self.high), InvalidSpaceError)
        check(self.step is None, "Scheduled step", "none", self.step, InvalidSpaceError)
        is_rate = self.role in (None, "learning_rate")
        check(is_rate, "Scheduled role", "'learning_rate'", self.role, InvalidSpaceError)

    def factor(self, share: float) -> float:
        """Return the factor of the peak, in [0, 1], when a share of the run is over.

        Raises:
            InvalidArgumentError: If the share is outside [0, 1].
        """
        return BASES[self.base](check_rate("share", share))


@advised
@dataclass(frozen=True, repr=False)
class Integer(_Number):
    """An integer between two bounds, both included.

    Args:
        low: The smallest value, at least -2**40 (with ``log``: at least 1).
        high: The largest value, at most 2**40.
        log: Whether the encoding is logarithmic. An integer ``k`` then has the share of the column
            between the logarithms of ``k - 1/2`` and ``k + 1/2``.
        step: Distance of the values, as of ``Real``; 1 if omitted.

    Raises:
        InvalidSpaceError: If the bounds are not increasing integers in that range, or the step does not
            lead from one to the other.
    """

    low: int
    high: int
    step: int | None = field(default=None, kw_only=True)

    kind: ClassVar[str] = "an integer"
    types: ClassVar[tuple[type, ...]] = (int,)
    # Beyond this size float64 columns, at first logarithmic ones, do not resolve integers.
    largest: ClassVar[float] = 2**40

    @property
    def edges(self) -> tuple[float, float]:
        """Values that correspond to the ends of the column: half a step beyond the bounds."""
        beyond = (self.step or 1) / 2
        return self.low - beyond, self.high + beyond

    @property
    def values(self) -> range:
        """All values, in increasing order."""
        return range(self.low, self.high + 1, self.step or 1)

    def _nearest(self, columns: Tensor) -> Tensor:
        if self.step is not None:
            return super()._nearest(columns)
        # The outer edges round outwards, hence the clamp.
        return self.from_unit(columns).round().clamp(self.low, self.high)

    def decode(self, columns: Tensor) -> int:
        """Value of the encoding ``columns``, shape ``(1,)``."""
        return int(self._nearest(columns).item())

    def round(self, columns: Tensor) -> Tensor:
        """Nearest encodings, shape ``(*batch, 1)``."""
        return self.to_unit(self._nearest(columns)).to(columns)


@advised
@dataclass(frozen=True)
class Choice:
    """One of finitely many options, all at the same distance from each other.

    Args:
        options: A list or tuple of plain values (str, int, finite float, bool, None, or tuples of
            these, such as Adam's ``betas``). Options that are equal in Python (``1``, ``1.0`` and
            ``True``) are duplicates.

    Raises:
        InvalidSpaceError: If there are no options, duplicates, or options that are not plain.
    """

    options: tuple[Plain, ...]
    log: ClassVar[bool] = False

    def __init__(self, options: Iterable[Plain]) -> None:
        is_ordered = isinstance(options, list | tuple)  # a set has no order, a str is a typo
        check(is_ordered, "Choice", "a list or tuple of options", options, InvalidSpaceError)
        options = tuple(options)
        check(len(options) > 0, "Choice", "at least one option", options, InvalidSpaceError)
        for option in options:
            check(is_plain(option), "Choice", f"options, each {PLAIN}", option, InvalidSpaceError)
        are_distinct = len(set(options)) == len(options)
        check(are_distinct, "Choice", "distinct options", options, InvalidSpaceError)
        object.__setattr__(self, "options", options)

    @property
    def width(self) -> int:
        """Number of encoded columns: one per option, none for a single option."""
        return len(self.options) if len(self.options) > 1 else 0

    @property
    def values(self) -> tuple[Plain, ...]:
        """All options, in the order given."""
        return self.options

    def canonical(self, name: str, value: object) -> Plain:
        """Return the option that equals ``value``, types included: ``1`` is not ``True``.

        A number that equals an option but for its last bits, or a scalar of NumPy or torch that equals it
        in its own precision, is converted to it.

        Args:
            name: Name of the parameter, for messages.
            value: A plain value, or a scalar of NumPy or torch.

        Raises:
            InvalidConfigError: If the value is none of the options.
        """
        exact = plain(value)
        for option in self.options:
            if same(exact, option):
                return option
        for option in self.options:
            if rounds_to(option, value) or agree(option, exact):
                return option
        hint = ", a tuple in place of a list" if isinstance(value, list) else ""
        raise InvalidConfigError(name, f"one of {list(self.options)}{hint}", value)

    def encode(self, value: Any) -> Tensor:
        """Columns of an option, shape ``(width,)``."""
        columns = torch.zeros(self.width, dtype=torch.float64)
        if self.width:
            columns[self.options.index(value)] = 1
        return columns

    def decode(self, columns: Tensor) -> Plain:
        """Option of the encoding ``columns``, shape ``(width,)``; for equal maxima the first."""
        return self.options[int(columns.argmax())] if self.width else self.options[0]

    def round(self, columns: Tensor) -> Tensor:
        """Nearest encodings, shape ``(*batch, width)``."""
        if not self.width:
            return columns
        chosen = columns.argmax(-1, keepdim=True)
        return torch.zeros_like(columns).scatter(-1, chosen, 1.0)


Parameter = Real | Integer | Choice
