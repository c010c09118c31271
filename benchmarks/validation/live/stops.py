"""Where each rule of early stopping ends a recorded run, and what it missed."""

from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.validation.live.policies import SHARES, Stop, replayed
from benchmarks.validation.live.record import Record

PATIENCES = (1, 2, 3, 4, 5, 7, 10, 14, 20, 28)  # epochs
RATES = (0.02, 0.05, 0.1, 0.2)  # of false stops
_THRESHOLD = 1e-4  # relative, of ReduceLROnPlateau


def patience(values: Sequence[float], epochs: int, min_delta: float) -> int | None:
    """Return the epoch at which the rule of Lightning's and Keras's ``EarlyStopping`` stops, or None.

    Both count the epochs since the last one that was better than the best by more than ``min_delta``,
    and stop when there are as many as the patience.
    """
    best, waited = float("inf"), 0
    for epoch, value in enumerate(values):
        if value < best - min_delta:
            best, waited = value, 0
        else:
            waited += 1
            if waited >= epochs:
                return epoch
    return None


def second_plateau(values: Sequence[float], epochs: int, min_delta: float) -> int | None:
    """Return the epoch at which ``ReduceLROnPlateau`` reduces the rate the second time, or None.

    It does so after more than its patience of epochs without an improvement of a relative 1e-4 (its
    ``min_delta`` is not used), and counts anew after a reduction.
    """
    best, waited, reductions = float("inf"), 0, 0
    for epoch, value in enumerate(values):
        waited = 0 if value < best * (1 - _THRESHOLD) else waited + 1
        best = min(best, value) if waited == 0 else best
        if waited > epochs:
            reductions, waited = reductions + 1, 0
            if reductions == 2:
                return epoch
    return None


Rule = Callable[[Sequence[float], int, float], int | None]


def stops(record: Record, seed: int, min_delta: float) -> dict[str, dict[str, Any]]:
    """Return where each rule stops and whether that was false."""
    found = {}
    rules: dict[str, Rule] = {"patience": patience, "second plateau": second_plateau}
    values = [float(record.means[point]) for point in record.epochs]
    for name, rule in rules.items():
        for epochs in PATIENCES:
            end = rule(values, epochs, min_delta)
            read = range(len(values) if end is None else end + 1)
            best = min(read, key=lambda epoch: values[epoch])
            spent = len(read) * record.price(record.losses.shape[-1])
            stop = record.epochs[read[-1]]
            found[f"{name} {epochs}"] = _judged(record, stop, record.epochs[best], spent, min_delta)
    for share in SHARES:
        replay = replayed(record, seed, RATES, overhead=share, min_delta=min_delta)
        whole = Stop(len(record.losses) - 1, replay.chosen, replay.spent)
        for rate in RATES:
            ended = replay.stops.get(rate, whole)
            found[f"Validation {100 * share:.0f} %, false stop {rate:g}"] = _judged(
                record, ended.point, ended.chosen, ended.spent, min_delta
            )
    return found


def _judged(
    record: Record, stop: int, chosen: int, spent: float, min_delta: float
) -> dict[str, Any]:
    """Return whether a stop was false, and the shares of training and of the clock that it saved.

    A stop is false if a later recorded point is better than the checkpoint that was kept, by more than
    ``min_delta``. The clock is compared with a whole run in which everything is read at each epoch.
    """
    means, count = record.means, len(record.losses)
    trained = stop + 1
    later = float(means[trained:].min()) if trained < count else float("inf")
    all_read = len(record.epochs) * record.price(record.losses.shape[-1])
    clock = trained * record.seconds + spent
    return {
        "stopped": trained < count,
        "false": later < float(means[chosen]) - min_delta,
        "saved": round(1 - trained / count, 4),
        "saved_clock": round(1 - clock / (count * record.seconds + all_read), 4),
    }
