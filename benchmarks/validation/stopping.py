"""When a recorded training is stopped: by patience, and by the belief of ``bc.Validation``.

An improvement counts if it is larger than a hundredth of that of the run so far. A stop is false if a
later candidate, read or not, improves the best reading by more than that.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.validation.policies import Policy, every, validation
from benchmarks.validation.problem import Log
from botorch_costly.validation.belief import Reading
from botorch_costly.validation.readings import Readings
from botorch_costly.validation.stopping import LEAST, improves
from botorch_costly.validation.training_loss import TrainingLoss

LIMITS = (0.005, 0.01, 0.02, 0.05, 0.1)  # false_stop
PATIENCES = (2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 28, 32, 40, 48, 64, 96)
SCHEDULES: dict[str, Policy] = {
    "every 1": every(1),
    "every 4": every(4),
    "Validation": validation(target=False),
}
"""Which candidates are read, by the end of the run that is planned."""

_ASKED = 4  # candidates between two looks at the belief
_DELTA = 0.01  # least improvement, as a share of that of the run so far


class Stop(NamedTuple):
    """The end of a run before the planned one."""

    saved: float  # share of the seconds of training that are left out
    is_false: bool


def stop_at(log: Log, candidate: int, best: float, delta: float) -> Stop:
    """Return the stop of a run after a candidate."""
    later = float(np.min(log.values[candidate + 1 :]))
    saved = 1 - log.seconds(candidate) / log.seconds(len(log) - 1)
    return Stop(saved, later < best - delta)


def patience(log: Log, readings: Sequence[int], wait: int) -> Stop | None:
    """Stop after so many readings without an improvement, as Lightning and Keras do."""
    best, worst, read, bad = math.inf, -math.inf, math.inf, 0
    for candidate in _before_the_end(log, readings):
        value = log.value(candidate)
        worst, read = max(worst, value), min(read, value)
        improved = worst - best if math.isfinite(best) else 0.0
        if value < best - _DELTA * improved:
            best, bad = value, 0
        else:
            bad += 1
        if bad >= wait:
            return stop_at(log, candidate, read, _DELTA * (worst - read))
    return None


def chances(log: Log, readings: Sequence[int]) -> Iterator[tuple[int, float, float, float]]:
    """Yield candidates, their chances of a later improvement, the best value and the least change."""
    history, training, start, asked = Readings(), TrainingLoss(), 0, 0
    for candidate in _before_the_end(log, readings):
        for earlier in range(start, candidate + 1):
            loss = log.loss(earlier)
            if loss is not None:
                training.add(loss)
        start = candidate + 1
        history.close()
        history.record_whole(Reading(candidate, log.value(candidate), 0.0, training.level))
        if candidate < asked:
            continue
        asked = candidate + _ASKED
        best, delta = history.best, _DELTA * history.improved
        if best is not None and history.successes >= LEAST:
            chance = improves(history.all, best.value - delta, len(log) - 1)
            yield candidate, chance, best.value, delta


def by_belief(log: Log, readings: Sequence[int], limits: Sequence[float]) -> list[Stop | None]:
    """Stop once the chance of an improvement is below a limit, for each of several limits."""
    stops: list[Stop | None] = [None] * len(limits)
    for candidate, chance, best, delta in chances(log, readings):
        for index, limit in enumerate(limits):
            if stops[index] is None and chance < limit:
                stops[index] = stop_at(log, candidate, best, delta)
        if None not in stops:
            break
    return stops


def stops_of(log: Log, schedule: str) -> dict[str, Stop | None]:
    """Return the stop of a run by each rule; None where it goes on to the end."""
    readings = SCHEDULES[schedule](log, "planned")
    believed = by_belief(log, readings, LIMITS)
    stops = {f"false_stop {limit:g}": stop for limit, stop in zip(LIMITS, believed, strict=True)}
    return {**stops, **{f"patience {wait}": patience(log, readings, wait) for wait in PATIENCES}}


def _before_the_end(log: Log, readings: Sequence[int]) -> list[int]:
    """Return the successful readings before the last candidate."""
    return [k for k in readings if k < len(log) - 1 and math.isfinite(log.value(k))]
