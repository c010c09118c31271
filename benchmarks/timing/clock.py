"""Milliseconds of a call, on any device."""

import time
from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

T = TypeVar("T")
_TRIES = 10  # of which the best counts
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
    """Return the microseconds of negating three numbers, at best: what every operation costs at least."""
    a = torch.zeros(3, dtype=torch.float64, device=device)

    def negate() -> Tensor:
        for _ in range(_CALLS):
            b = a.neg()
        return b

    with torch.inference_mode():
        return 1e3 * min(timed(negate, device)[0] for _ in range(_TRIES)) / _CALLS
