"""Milliseconds of a call, on any device."""

import time
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

T = TypeVar("T")
_CALLS = 50  # of which one time is taken where one alone would be too short


def synchronize(device: torch.device | str) -> None:
    """Wait until the device has done what it was told."""
    if torch.device(device).type == "cuda":
        torch.cuda.synchronize(device)


def timed(call: Callable[[], T], device: torch.device | str) -> tuple[float, T]:
    """Return the milliseconds of a call and what it returned."""
    synchronize(device)
    start = time.perf_counter()
    result = call()
    synchronize(device)
    return 1e3 * (time.perf_counter() - start), result


def small_operation_us(device: torch.device | str) -> float:
    """Return the microseconds of ``a + 1`` for three numbers: what the machine is like right now."""
    a = torch.zeros(3, dtype=torch.float64, device=device)

    def add() -> Tensor:
        for _ in range(_CALLS):
            b = a + 1
        return b

    return 1e3 * timed(add, device)[0] / _CALLS
