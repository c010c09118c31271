"""Milliseconds of a call on any device, and which accelerator there is."""

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import TypeVar

import torch
from torch import Tensor


def accelerator() -> str:
    """Return the kind of the accelerator that this machine has, or "cpu"."""
    found = torch.accelerator.current_accelerator(check_available=True)
    return "cpu" if found is None else found.type


T = TypeVar("T")
_TRIES = 10  # of which the best counts
_CALLS = 50  # of which one time is taken where one alone would be too short


def synchronize(device: torch.device | str) -> None:
    """Wait until the device has done what it was told."""
    if torch.device(device).type != "cpu":
        torch.get_device_module(device).synchronize(device)


def clock_of(device: torch.device) -> Callable[[], float]:
    """Return the clock of a device: of a CPU its own time, since others may use it meanwhile."""
    return time.process_time if device.type == "cpu" else time.perf_counter


def timed(call: Callable[[], T], device: torch.device | str = "cpu") -> tuple[float, T]:
    """Return the milliseconds of a call and what it returned."""
    synchronize(device)
    start = time.perf_counter()
    result = call()
    synchronize(device)
    return 1e3 * (time.perf_counter() - start), result


def median_ms(call: Callable[[], T], repeats: int) -> tuple[float, T]:
    """Return the median milliseconds of a call after one to warm up, and what it returned."""
    result = call()
    times = []
    for _ in range(repeats):
        spent, result = timed(call)
        times.append(spent)
    return median(times), result


def by_turns(
    calls: Mapping[str, Callable[[], object]], repeats: int, *, least: bool = False
) -> dict[str, float]:
    """Return the milliseconds of each call, made by turns: a busy machine is busy for all.

    Args:
        calls: Calls on the CPU, by name.
        repeats: Number of turns.
        least: Whether to return the least processor time instead of the median time.
    """
    clock: Callable[[], float] = time.process_time if least else time.perf_counter
    spent: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()  # the first call pays for what is kept
    for _ in range(repeats):
        for name, call in calls.items():
            start = clock()
            call()
            spent[name].append(1e3 * (clock() - start))
    return {name: min(times) if least else median(times) for name, times in spent.items()}


def small_operation_us(device: torch.device | str) -> float:
    """Return the microseconds of negating three numbers, at best: what every operation costs at least."""
    a = torch.zeros(3, dtype=torch.float64, device=device)

    def negate() -> Tensor:
        for _ in range(_CALLS):
            b = a.neg()
        return b

    with torch.inference_mode():
        return 1e3 * min(timed(negate, device)[0] for _ in range(_TRIES)) / _CALLS
