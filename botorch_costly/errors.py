"""The errors of this package.

Each message states the expected and the received value in terms of the caller's arguments. Each class
also derives from the built-in error that a caller would catch without knowing this package.
"""

import contextlib
import math
import numbers
import os
import reprlib
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

_LONGEST = 500  # characters of a value in a message: a state may hold all weights of a network


class _Short(reprlib.Repr):
    """The ``repr`` of a value, shortened for a message, with large tensors given by their shape."""

    def __init__(self) -> None:
        super().__init__()
        self.maxdict = self.maxlist = self.maxtuple = self.maxset = self.maxfrozenset = 30
        self.maxstring = self.maxlong = self.maxother = _LONGEST

    def repr1(self, x: Any, level: int) -> str:
        shape = getattr(x, "shape", None)
        if isinstance(shape, tuple) and hasattr(x, "dtype") and math.prod(shape) > 30:
            return f"{type(x).__name__} of shape {tuple(shape)}, {x.dtype}"
        if isinstance(x, dict) and level > 0:
            return self._entries(x, level - 1)
        return super().repr1(x, level)

    def _entries(self, x: dict[Any, Any], level: int) -> str:
        """Return the ``repr`` of a dictionary in its own order; ``reprlib`` would sort it."""
        entries = [
            f"{self.repr1(key, level)}: {self.repr1(value, level)}"
            for key, value, _ in zip(x.keys(), x.values(), range(self.maxdict), strict=False)
        ]
        return "{" + ", ".join(entries + ["..."] * (len(x) > self.maxdict)) + "}"


def shortened(text: str, longest: int = _LONGEST) -> str:
    """Return a text without its middle if it is longer than ``longest`` characters."""
    return text if len(text) <= longest else f"{text[: longest - 103]}...{text[-100:]}"


def shown(value: object) -> str:
    """Return the ``repr`` of a value in at most 500 characters, without a tensor's elements."""
    try:
        return shortened(_Short().repr(value))
    except Exception:  # for example an integer with more digits than Python converts
        return f"a value of type {type(value).__name__}, which cannot be shown"


def _of_class(value: object) -> str:
    """Return advice on a class that was passed in place of its object; "" for any other value."""
    if not isinstance(value, type) or issubclass(value, numbers.Number):
        return ""
    return f" itself (call it to make an object: {value.__name__}(..))"


class CostlyError(Exception):
    """Base of every error raised by this package."""

    def __init__(self, name: str, expected: str, received: object) -> None:
        """Initialize with the argument's name, and its expected and received value."""
        super().__init__(name, expected, received)
        # Afterwards, for ImportError and AttributeError have a name of their own, which they reset.
        self.name, self.expected, self.received = name, expected, received

    def __str__(self) -> str:
        name, expected = shortened(str(self.name)), shortened(str(self.expected), 4 * _LONGEST)
        received = f"{shown(self.received)}{_of_class(self.received)}"
        return f"{name}: Expected {expected}; Received {received}."

    def __repr__(self) -> str:  # that of Exception shows all arguments in full
        return f"{type(self).__name__}({str(self)!r})"


class InvalidArgumentError(CostlyError, ValueError):
    """A number or option is outside its valid range."""


class InvalidShapeError(CostlyError, ValueError):
    """A tensor has the wrong shape, dtype or device."""


class InvalidCallError(CostlyError, TypeError):
    """A call, or an operator, does not take these arguments."""


class InvalidSpaceError(CostlyError, ValueError):
    """A search space or one of its parameters is ill-defined."""


class InvalidConfigError(CostlyError, ValueError):
    """A configuration does not belong to the search space."""


class InvalidBudgetError(CostlyError, ValueError):
    """Quotas, budgets or horizons contradict each other."""


class UnknownNameError(CostlyError, AttributeError):
    """An object has no attribute of this name."""

    name: Any  # None is allowed for an AttributeError


class UnknownParameterError(CostlyError, KeyError):
    """A configuration has no value of this name."""

    __str__ = CostlyError.__str__  # KeyError would print the repr of the message


class UnknownDecisionError(CostlyError, KeyError):
    """A reward was told for a decision that this tuner did not make."""

    __str__ = CostlyError.__str__  # KeyError would print the repr of the message


class AlreadyToldError(CostlyError, ValueError):
    """A reward was told twice for the same decision."""


class StateMismatchError(CostlyError, ValueError):
    """A saved state belongs to another space, version or kind of tuner."""


class RestoreError(CostlyError, RuntimeError):
    """A function of the caller raised while it restored an earlier state."""


class UnsafeVersionError(CostlyError, RuntimeError):
    """The installed version of a library cannot do safely what was asked for."""


class HorizonExceededError(CostlyError, RuntimeError):
    """The tuner was asked for more rounds than its horizon."""


class RankError(CostlyError, RuntimeError):
    """A distributed run cannot continue because of one of its ranks."""


class RanksDisagreeError(RankError):
    """The ranks of a distributed run are at different points of their programs."""


class RankLostError(RankError):
    """A rank of a distributed run did not answer in time, or its process has ended."""


class MissingExtraError(CostlyError, ImportError):
    """A library that an adapter needs is missing, or its version is not supported."""

    name: Any  # None is allowed for an ImportError


class NumericalError(CostlyError, ArithmeticError):
    """A factorization or optimization reached numbers from which it cannot continue."""


def warn_caller(message: str) -> None:
    """Warn of the line of the user's program that called the package, however deep this call is."""
    package, level, frame = f"{Path(__file__).parent}{os.sep}", 1, sys._getframe()
    while frame.f_back is not None and _is_inside(frame, package):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, stacklevel=level)


def _is_inside(frame: FrameType, package: str) -> bool:
    # Decorators of the standard library, such as contextlib's, stand between two calls of the package.
    name = frame.f_code.co_filename
    return name.startswith((package, "<")) or name == contextlib.__file__


def is_power_of_two(count: int) -> bool:
    """Return whether a count is 1, 2, 4, 8, ..., the counts at which warnings are repeated."""
    return count & (count - 1) == 0


def check(
    condition: bool,
    name: str,
    expected: str,
    received: object,
    error: type[CostlyError] = InvalidArgumentError,
) -> None:
    """Raise ``error`` with an Expected / Received message unless ``condition`` holds."""
    if not condition:
        raise error(name, expected, received)


def _is_number(value: object) -> bool:
    if isinstance(value, int):  # some integers are too large for a float
        return not isinstance(value, bool) and abs(value) <= sys.float_info.max
    return isinstance(value, float) and not math.isnan(value)


def _number_check(expected: str, holds: Callable[[float], bool]) -> Callable[[str, float], float]:
    def checked(name: str, value: float) -> float:
        check(_is_number(value) and holds(value), name, expected, value)
        return value

    checked.__doc__ = f"Return ``value`` if it is {expected}; raise InvalidArgumentError otherwise."
    return checked


check_probability = _number_check("a number in (0, 1)", lambda v: 0 < v < 1)
check_error_rate = _number_check("a probability of an error, in (0, 0.5]", lambda v: 0 < v <= 0.5)
check_rate = _number_check("a number in [0, 1]", lambda v: 0 <= v <= 1)
check_positive = _number_check("a finite number > 0", lambda v: 0 < v < math.inf)
check_nonnegative = _number_check("a finite number >= 0", lambda v: 0 <= v < math.inf)


def check_count(name: str, value: float, minimum: int = 0) -> int:
    """Return ``value`` as an int if it is an integer of at least ``minimum``; raise otherwise.

    NumPy integers are accepted, and floats without a fractional part: ``1e3`` is 1000.

    Raises:
        InvalidArgumentError: If ``value`` is no integer, or less than ``minimum``.
    """
    is_number = isinstance(value, numbers.Real) and not isinstance(value, bool)
    is_integer = is_number and (
        isinstance(value, numbers.Integral) or (math.isfinite(value) and value == math.floor(value))
    )
    check(is_integer and value >= minimum, name, f"an integer >= {minimum}", value)
    return int(value)
