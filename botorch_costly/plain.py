"""Plain values, the values of configurations: str, int, finite float, bool, None, and tuples of these.

Each plain value can be hashed, compared, pickled, and written to JSON. JSON has no tuples: ``listed``
and ``tupled`` convert them to lists and back. Lists are mutable and therefore not plain.
"""

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from botorch_costly.errors import InvalidArgumentError

Plain = str | int | float | bool | None | tuple["Plain", ...]
PLAIN = "a str, int, finite float, bool, None or a tuple of these (a tuple in place of a list)"
_DIGITS = 9  # of floats that are the same in spite of another processor, library or order of a sum
_RELATIVE = 10.0**-_DIGITS
# A float as ``repr`` writes it, which is no part of a word or a hash.
_FLOAT = re.compile(r"(?<![\w.])-?\d+(?:\.\d+(?:e[+-]?\d{1,3})?|e[+-]?\d{1,3})(?![\w.])")
_SCALARS = (str, int, float, bool, type(None))


def is_plain(value: object) -> bool:
    """Return whether a value is plain.

    Example:
        >>> is_plain((0.9, (None, "a"))), is_plain([0.9]), is_plain(float("nan"))
        (True, False, False)
    """
    if type(value) is tuple:
        return all(map(is_plain, value))
    return type(value) in _SCALARS and not (isinstance(value, float) and not math.isfinite(value))


def plain(value: Any) -> Any:
    """Return a value with NumPy and torch scalars, also in tuples, converted to Python numbers.

    Example:
        >>> plain((np.float32(0.5), torch.tensor(3), "a"))
        (0.5, 3, 'a')
    """
    if type(value) is tuple:
        return tuple(map(plain, value))
    return value.item() if _is_foreign_scalar(value) else value


def same(value: object, other: object) -> bool:
    """Return whether two plain values are equal, types included: 1, 1.0 and True are three values."""
    if type(value) is tuple and type(other) is tuple:
        return len(value) == len(other) and all(map(same, value, other))
    return type(value) is type(other) and value == other


def agree(value: object, other: object) -> bool:
    """Return whether two plain values, lists or mappings are equal but for the last bits of floats.

    The exponential or the power of a number has other last bits on another processor or with another
    version of a library, so that a value that is computed anew differs from the one that was saved.

    Example:
        >>> agree({"lr": 0.1 + 0.2}, {"lr": 0.3}), agree(1, 1.0), agree(0.3, 0.300001)
        (True, False, False)
    """
    if isinstance(value, Mapping) and isinstance(other, Mapping):
        return set(value) == set(other) and all(agree(value[name], other[name]) for name in value)
    if isinstance(value, list | tuple) and type(value) is type(other):
        return len(value) == len(other) and all(map(agree, value, other))
    if isinstance(value, float) and isinstance(other, float):
        return math.isclose(value, other, rel_tol=_RELATIVE) or repr(value) == repr(other)
    return same(value, other)


def agree_as_text(text: str, other: str) -> bool:
    """Return whether two texts are equal but for the last digits of the floats in them.

    Example:
        >>> agree_as_text("Real(low=0.30000000000000004)", "Real(low=0.3)")
        True
        >>> agree_as_text("Integer(low=3)", "Integer(low=4)"), agree_as_text("3.0", "3")
        (False, False)
    """
    if text == other:
        return True
    if _FLOAT.sub("", text) != _FLOAT.sub("", other):
        return _share_a_hash(text, other)
    floats, others = (list(map(float, _FLOAT.findall(given))) for given in (text, other))
    return all(map(math.isfinite, (*floats, *others))) and agree(floats, others)


def hashes_of(value: Any, write: Callable[[Any], str], size: int) -> str:
    """Return two hashes of plain values, lists or mappings: as they are, and of floats of nine digits.

    They are joined by a bar, and two such texts ``agree_as_text`` if they share one. Where no float has
    more digits they are equal, and stand once.

    Args:
        value: The values.
        write: Writes them as text.
        size: Length of a hash.

    Example:
        >>> hashes_of([0.3], str, 4), hashes_of([0.1 + 0.2], str, 4)
        ('3fbc', 'e54e|3fbc')
        >>> agree_as_text("2, 3fbc", "2, e54e|3fbc"), agree_as_text("3, 3fbc", "2, e54e|3fbc")
        (True, False)
    """
    texts = (write(given) for given in (value, _without_last_digits(value)))
    hashes = (hashlib.sha256(text.encode()).hexdigest()[:size] for text in texts)
    return "|".join(dict.fromkeys(hashes))


def _share_a_hash(text: str, other: str) -> bool:
    """Return whether texts that end with hashes, of which one has several, share one of them."""
    (begin, _, hashes), (start, _, others) = (t.strip("'").rpartition(" ") for t in (text, other))
    shared = set(hashes.split("|")) & set(others.split("|"))
    return "|" in hashes + others and begin == start and bool(shared)


def _without_last_digits(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _without_last_digits(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(_without_last_digits, value))
    return float(f"{value:.{_DIGITS}g}") if isinstance(value, float) else value


def rounds_to(number: object, scalar: object) -> bool:
    """Return whether a plain value equals ``scalar`` when rounded to the precision of ``scalar``.

    For example, ``np.float32(0.1)`` converts to 0.10000000149, which exceeds a bound of 0.1.

    Args:
        number: A plain value.
        scalar: A scalar of NumPy or torch, or a tuple that may contain them.

    Example:
        >>> rounds_to(0.1, np.float32(0.1)), rounds_to(0.1, float(np.float32(0.1)))
        (True, False)
    """
    if type(number) is tuple and type(scalar) is tuple:
        return len(number) == len(scalar) and all(map(rounds_to, number, scalar))
    if isinstance(number, float) and _is_foreign_scalar(scalar):
        try:
            tensor = torch.as_tensor(scalar)
        except TypeError:  # a dtype that torch does not support
            return False
        rounded = torch.tensor(number, dtype=torch.float64).to(tensor.dtype)
        return tensor.is_floating_point() and bool(rounded == tensor.cpu())
    return same(number, plain(scalar))


def listed(value: Any) -> Any:
    """Return a plain value with tuples converted to lists, for JSON."""
    return list(map(listed, value)) if isinstance(value, tuple) else value


def tupled(value: Any) -> Any:
    """Return a value read from JSON with lists converted to tuples, the inverse of ``listed``.

    Example:
        >>> tupled(listed((0.9, ("a", None))))
        (0.9, ('a', None))
    """
    return tuple(map(tupled, value)) if isinstance(value, list | tuple) else value


def as_number(name: str, value: Any) -> float:
    """Return a number as a float; torch and NumPy scalars are accepted, except for booleans.

    Args:
        name: Name of the argument in an error.
        value: A number, finite or not.

    Raises:
        InvalidArgumentError: If ``value`` is no number.

    Example:
        >>> as_number("reward", torch.tensor(2))
        2.0
    """
    try:
        if not isinstance(value, str | bytes | bool) and not _is_boolean(value):
            return float(value.detach() if isinstance(value, Tensor) else value)
    except (TypeError, ValueError, RuntimeError, OverflowError):
        pass
    raise InvalidArgumentError(name, "a number", value)


def config_text(config: Mapping[str, Plain]) -> str:
    """Return a configuration in one line, floats with four digits."""
    return ", ".join(f"{name}={value_text(value)}" for name, value in config.items())


def value_text(value: Plain) -> str:
    """Return a value as text, floats with four digits, also in tuples.

    Example:
        >>> value_text(0.1 + 0.2), value_text((0.9, 0.1 + 0.2)), value_text((0.9,))
        ('0.3', '(0.9, 0.3)', '(0.9,)')
    """
    if isinstance(value, tuple):
        return f"({', '.join(map(value_text, value))}{',' if len(value) == 1 else ''})"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def is_list(value: object) -> bool:
    """Return whether a value is a list, tensor or array with at least one dimension."""
    ndim = getattr(value, "ndim", None)
    return isinstance(value, Sequence) if ndim is None else ndim > 0


def _is_boolean(value: object) -> bool:
    if isinstance(value, Tensor):
        return value.dtype is torch.bool
    return isinstance(value, np.generic | np.ndarray) and value.dtype == np.bool_


def _is_foreign_scalar(value: object) -> bool:
    return isinstance(value, np.generic | np.ndarray | Tensor) and value.ndim == 0
