"""Dtype and device of computations, checked before anything is computed with them."""

import torch

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


def largest_reward(dtype: torch.dtype) -> float:
    """Return the largest size of a reward of which sums in ``dtype`` and squares in Python are finite.

    Example:
        >>> largest_reward(torch.float32) < 1e31
        True
    """
    return min(torch.finfo(dtype).max / 1e8, torch.finfo(torch.float64).max ** 0.5 / 1000)
