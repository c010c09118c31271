"""A file of states holds tensors and plain values, so that it can be read again."""

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
    """Return a state that can be read again, with numbers of NumPy as those of Python.

    Tensors are not looked into, and containers of plain values and tensors are all that is copied.

    Args:
        where: The place of the value, for the error.
        value: A state, or a part of one.

    Raises:
        InvalidArgumentError: If it holds something that ``torch.load`` does not read with
            ``weights_only=True``; the error names the entry.

    Example:
        >>> readable("optimizer", {"lr": np.float64(0.5), "betas": (0.9, 0.99)})
        {'lr': 0.5, 'betas': (0.9, 0.99)}
    """
    if type(value) in _PLAIN or isinstance(value, Tensor):
        return value
    if type(value) in (dict, OrderedDict):
        found = copy.copy(value)  # with the attributes that a state of a network has
        for key, one in value.items():
            _check_readable(f"{where}: key", key)
            found[key] = readable(f"{where}[{key!r}]", one)
        return found
    if type(value) in (list, tuple):
        return type(value)(readable(f"{where}[{n}]", one) for n, one in enumerate(value))
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
