"""Which candidates of a log are read: intervals, plateaus, the oracle, and ``bc.Validation``."""

import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any
from unittest.mock import patch

from benchmarks.validation.problem import Log, Protocol
from botorch_costly.validation import Validation

SHARE = 0.125  # of the candidates that may be read
INTERVALS = (2, 4, 8, 16)
HINDSIGHT = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)  # among which the best one of a workload is chosen
_PLATEAU = 2  # readings without an improvement, after which the interval doubles
_THRESHOLD = 1e-4  # relative improvement that counts, as in ``ReduceLROnPlateau``

Policy = Callable[[Log, Protocol], list[int]]


def every(interval: int) -> Policy:
    """Return the policy that reads every k-th candidate."""

    def policy(log: Log, protocol: Protocol) -> list[int]:
        return list(range(interval - 1, log.limit(protocol), interval))

    return policy


def growing(factor: float) -> Policy:
    """Return the policy that reads when the run is ``factor`` times as long as at the latest reading."""

    def policy(log: Log, protocol: Protocol) -> list[int]:
        readings = [0]
        for candidate in range(1, log.limit(protocol)):
            if log.seconds(candidate) >= factor * log.seconds(readings[-1]):
                readings.append(candidate)
        return readings

    return policy


def plateau(interval: int) -> Policy:
    """Return the policy whose interval doubles on a plateau, and is reset by an improvement."""

    def policy(log: Log, protocol: Protocol) -> list[int]:
        readings, best, bad, gap = list[int](), math.inf, 0, interval
        for candidate in range(log.limit(protocol)):
            if candidate - (readings[-1] if readings else -1) < gap:
                continue
            readings.append(candidate)
            value = log.value(candidate)
            if value < best - _THRESHOLD * abs(best) or best == math.inf:
                best, bad, gap = value, 0, interval
            else:
                bad += 1
                gap = 2 * gap if bad % _PLATEAU == 0 else gap
        return readings

    return policy


def last(log: Log, protocol: Protocol) -> list[int]:
    """Read the last candidate alone."""
    return [len(log) - 1]


def oracle(log: Log, protocol: Protocol) -> list[int]:
    """Read the candidate at which the target is reached, or the best one."""
    return [int(log.values.argmin()) if log.crossing is None else log.crossing]


def validation(
    *, target: bool = True, share: float = SHARE, constants: Mapping[str, Any] | None = None
) -> Policy:
    """Return the policy of ``bc.Validation``, for which training and each reading last one second.

    Args:
        target: Whether the target is an option.
        share: Share of the candidates that may be read.
        constants: Other values of constants of ``botorch_costly.validation``, such as ``timing._STOCK``.
    """

    def policy(log: Log, protocol: Protocol) -> list[int]:
        with ExitStack() as stack:
            for name, value in (constants or {}).items():
                stack.enter_context(patch(f"botorch_costly.validation.{name}", value))
            return _replayed(log, protocol, target=target, share=share)

    return policy


def _replayed(log: Log, protocol: Protocol, *, target: bool, share: float) -> list[int]:
    seconds, readings = 0.0, list[int]()
    deciding = Validation(
        overhead=share / (1 + share),
        clock=lambda: seconds,
        target=log.target if target else None,
        steps=len(log) - 1 if protocol == "planned" else None,
    )
    for candidate in range(log.limit(protocol)):
        seconds += 1.0
        if deciding.due(candidate, train_loss=log.loss(candidate)):
            seconds += 1.0
            value = log.value(candidate)
            deciding.tell(value)
            readings.append(candidate)
            if protocol == "open" and value <= log.target:
                break
    return readings


OURS = "Validation"
WITHOUT_TARGET = f"{OURS}, no target"
BASELINE = "every 8"
POLICIES: dict[str, Policy] = {
    **{f"every {interval}": every(interval) for interval in INTERVALS},
    "x1.1 in time": growing(1.1),
    "x1.3 in time": growing(1.3),
    "plateau": plateau(4),
    "last": last,
    "oracle": oracle,
    OURS: validation(),
    WITHOUT_TARGET: validation(target=False),
}
# A belief that is too sure of itself.
_SURE = {"belief._SLOWEST": -6, "belief._FASTEST": 0}
_OLD_NOISES = [10.0**k for k in range(-9, -2)]
ABLATIONS: dict[str, Policy] = {
    "no stock": validation(constants={"timing._STOCK": 1.0}),
    "a stock of three": validation(constants={"timing._STOCK": 3.0}),
    "no stock limit": validation(constants={"timing._STOCK": 1e9}),
    "blind to the target": validation(constants={"timing._REACHED": 9.0}),
    "target at .3": validation(constants={"timing._REACHED": 0.3}),
    "target at .9": validation(constants={"timing._REACHED": 0.9}),
    "blind to improvements": validation(constants={"timing._IMPROVEMENT": 1e9}),
    "improvement at .2": validation(constants={"timing._IMPROVEMENT": 0.2}),
    "improvement with credit 1": validation(constants={"timing._SPARE": 1.0}),
    "smooth and exact curves": validation(constants={**_SURE, "belief._NOISES": _OLD_NOISES}),
    "no jumps": validation(constants={"belief._JUMPS": 0.0}),
}
"""The rule with one of its constants changed."""
