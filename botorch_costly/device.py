"""Dtype and device of computations, checked before anything is computed with them, and reading from one.

A program waits for its device whenever it asks for a number that was computed there: ``.item()``,
``bool(tensor)``, a boolean index, a copy to the CPU. On a CPU that is free; elsewhere the queue of
operations runs dry. So loops ask a CPU often and other devices rarely, and a decision reads what it needs
at once.
"""

from collections.abc import Sequence
from typing import TypedDict

import torch
from torch import Tensor

from botorch_costly.errors import InvalidArgumentError, check

DTYPES = (torch.float32, torch.float64)


def check_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return ``dtype`` if it is float32 or float64.

    Raises:
        InvalidArgumentError: If it is another one.
    """
    check(dtype in DTYPES, "dtype", "torch.float32 or torch.float64", dtype)
    return dtype


def check_device(device: torch.device | str) -> torch.device:
    """Return the device, once a tensor was made on it and copied from it.

    Raises:
        InvalidArgumentError: If torch knows no such device, or this machine or this build of torch has
            none.
    """
    try:
        found = torch.device(device)
        torch.zeros(1, device=found).cpu()
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        expected = "a device that this machine and this build of torch have, such as 'cpu'"
        raise InvalidArgumentError("device", expected, device) from error
    return found


class Tkwargs(TypedDict):
    """Dtype and device of a computation, as keyword arguments of a factory or of ``Tensor.to``."""

    dtype: torch.dtype
    device: torch.device


def check_tkwargs(dtype: torch.dtype, device: torch.device | str) -> Tkwargs:
    """Return dtype and device, both checked.

    Raises:
        InvalidArgumentError: If either is not one to compute with; see ``check_dtype`` and
            ``check_device``.
    """
    return {"dtype": check_dtype(dtype), "device": check_device(device)}


def largest_reward(dtype: torch.dtype) -> float:
    """Return the largest size of a reward of which sums in ``dtype`` and squares in Python are finite.

    Example:
        >>> largest_reward(torch.float32) < 1e31
        True
    """
    return min(torch.finfo(dtype).max / 1e8, torch.finfo(torch.float64).max ** 0.5 / 1000)


def is_near(tensor: Tensor) -> bool:
    """Return whether the numbers of a tensor can be read without waiting: it is on the CPU."""
    return tensor.device.type == "cpu"


def moved(tensor: Tensor, like: Tensor) -> Tensor:
    """Return a tensor in the dtype and on the device of another, without waiting where it is sent to.

    A copy to the CPU is waited for, or else there would be no numbers to read.
    """
    return tensor.to(like, non_blocking=is_near(tensor))


def read(*parts: Tensor) -> tuple[Tensor, ...]:
    """Return tensors of any shapes and dtypes on the CPU, waiting for their device once.

    Integers travel as floating-point numbers and have to be smaller than 2**24.

    Example:
        >>> read(torch.tensor(True), torch.tensor([0.5, 2.0]))
        (tensor(True), tensor([0.5000, 2.0000]))
    """
    far = [part for part in parts if not is_near(part)]
    if not far:
        return parts
    widest = torch.float64 if any(part.dtype == torch.float64 for part in far) else torch.float32
    packed = torch.cat([part.detach().reshape(-1).to(widest) for part in far]).cpu()
    pieces = iter(packed.split([part.numel() for part in far]))
    return tuple(
        part if is_near(part) else next(pieces).to(part.dtype).reshape(part.shape) for part in parts
    )


def columns_of(
    x: Tensor,  # shape: (*batch, d)
    columns: Sequence[int],
) -> Tensor:  # shape: (*batch, columns)
    """Return some columns, at least one; a list as an index would have to travel to the device.

    Example:
        >>> columns_of(torch.tensor([5.0, 6.0, 7.0]), (2, 0))
        tensor([7., 5.])
    """
    first, end = columns[0], columns[-1] + 1
    if first >= 0 and list(columns) == list(range(first, end)):
        return x[..., first:end]
    return torch.stack([x[..., column] for column in columns], -1)
