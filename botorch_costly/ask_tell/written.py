"""Conversion of states to tensors and plain values, which ``torch.load`` reads safely."""

import copy
import io
from collections import OrderedDict
from typing import Any

import numpy as np
import torch
from torch import Tensor

from botorch_costly.errors import InvalidArgumentError

_PLAIN = (str, int, float, bool, type(None))


def readable(where: str, value: Any) -> Any:
    """Return a state that can be read again, with numbers of NumPy converted to Python's.

    Containers are copied, tensors are not.

    Args:
        where: Path of the value in the state, for the error.
        value: A state, or an entry of one.

    Raises:
        InvalidArgumentError: If an entry, which the error names, cannot be read by ``torch.load`` with
            ``weights_only=True``.

    Example:
        >>> readable("optimizer", {"lr": np.float64(0.5), "betas": (0.9, 0.99)})
        {'lr': 0.5, 'betas': (0.9, 0.99)}
    """
    if type(value) in _PLAIN or isinstance(value, Tensor):
        return value
    if type(value) in (dict, OrderedDict):
        converted = copy.copy(value)  # keeps the attributes of a network's state
        for key, entry in value.items():
            _check_readable(f"{where}: key", key)
            converted[key] = readable(f"{where}[{key!r}]", entry)
        return converted
    if type(value) in (list, tuple):
        return type(value)(readable(f"{where}[{n}]", entry) for n, entry in enumerate(value))
    if isinstance(value, np.number | np.bool_) and type(value.item()) in _PLAIN:
        return value.item()
    _check_readable(where, value)
    return value


def _check_readable(where: str, value: Any) -> None:
    if type(value) in _PLAIN:
        return
    file = io.BytesIO()
    try:
        torch.save(value, file)
        file.seek(0)
        torch.load(file, weights_only=True)
    except Exception as error:
        expected = "tensors and plain values, which can be read again"
        raise InvalidArgumentError(where, expected, value) from error
