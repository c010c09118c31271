"""Checks of dtypes and devices, and transfers between devices.

A program synchronizes with its device whenever it reads a number from it: ``.item()``, ``bool(tensor)``,
a boolean index, a copy to the CPU. On a CPU that is free; on other devices it stalls the queue of
operations. So loops read rarely from other devices, and a decision reads all its numbers at once.
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
        InvalidArgumentError: If it is another dtype.
    """
    check(dtype in DTYPES, "dtype", "torch.float32 or torch.float64", dtype)
    return dtype


def check_device(device: torch.device | str) -> torch.device:
    """Return the device after a test: a tensor is created there and copied to the CPU.

    Raises:
        InvalidArgumentError: If torch, its build or this machine does not support the device.
    """
    try:
        checked = torch.device(device)
        torch.zeros(1, device=checked).cpu()
    except (RuntimeError, AssertionError, TypeError, NotImplementedError) as error:
        expected = "a device that this machine and this build of torch have, such as 'cpu'"
        raise InvalidArgumentError("device", expected, device) from error
    return checked


class Tkwargs(TypedDict):
    """Dtype and device of a computation, as keyword arguments of a factory or of ``Tensor.to``."""

    dtype: torch.dtype
    device: torch.device


def check_tkwargs(dtype: torch.dtype, device: torch.device | str) -> Tkwargs:
    """Return dtype and device, both checked.

    Raises:
        InvalidArgumentError: If ``check_dtype`` or ``check_device`` refuses its argument.
    """
    return {"dtype": check_dtype(dtype), "device": check_device(device)}


def largest_reward(dtype: torch.dtype) -> float:
    """Return the largest size of rewards such that sums in ``dtype`` and squares in Python are finite.

    Example:
        >>> largest_reward(torch.float32) < 1e31
        True
    """
    return min(torch.finfo(dtype).max / 1e8, torch.finfo(torch.float64).max ** 0.5 / 1000)


def is_near(tensor: Tensor) -> bool:
    """Return whether a tensor is on the CPU, where reading it does not synchronize."""
    return tensor.device.type == "cpu"


def moved(tensor: Tensor, like: Tensor) -> Tensor:
    """Return a tensor in the dtype and on the device of another one.

    Only copies from the CPU are asynchronous: an asynchronous copy to the CPU has no valid numbers yet.
    """
    return tensor.to(like, non_blocking=is_near(tensor))


def read(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return tensors of any shapes and dtypes on the CPU, with a single synchronization.

    Integers are transferred as floating-point numbers and have to be smaller than 2**24.

    Example:
        >>> read(torch.tensor(True), torch.tensor([0.5, 2.0]))
        (tensor(True), tensor([0.5000, 2.0000]))
    """
    far = [t for t in tensors if not is_near(t)]
    if not far:
        return tensors
    widest = torch.float64 if any(t.dtype == torch.float64 for t in far) else torch.float32
    packed = torch.cat([t.detach().reshape(-1).to(widest) for t in far]).cpu()
    pieces = iter(packed.split([t.numel() for t in far]))
    return tuple(t if is_near(t) else next(pieces).to(t.dtype).reshape(t.shape) for t in tensors)


def columns_of(
    x: Tensor,  # shape: (*batch, d)
    columns: Sequence[int],
) -> Tensor:  # shape: (*batch, columns)
    """Return columns by number, at least one, without the copy to the device that a list index needs.

    Example:
        >>> columns_of(torch.tensor([5.0, 6.0, 7.0]), (2, 0))
        tensor([7., 5.])
    """
    first, end = columns[0], columns[-1] + 1
    if first >= 0 and list(columns) == list(range(first, end)):
        return x[..., first:end]
    return torch.stack([x[..., column] for column in columns], -1)
