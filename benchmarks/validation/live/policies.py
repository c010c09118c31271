"""Which checkpoint each policy of reading keeps, replayed on a record with the clock of the record."""

import time
from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean, median
from typing import Any, NamedTuple

import torch

from benchmarks.validation.live.record import Record
from botorch_costly import Validation

INTERVALS = (1, 2, 3, 4, 6, 8, 12, 16)  # epochs
SHARES = (0.03,)  # of the clock, for Validation
REFERENCE = "every epoch"
_RATIO = 1.1  # of the steps at two readings of the rival
_SUBSET = 0.2  # of the examples, of the rival


class Clock:
    """A clock that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Verdicts(NamedTuple):
    """What readings of part of the examples said, counted."""

    decided: int  # "better" or "worse"
    wrong: int  # against the means of the whole set
    undecided: int


class Stop(NamedTuple):
    """Where ``should_stop`` would have ended a run."""

    point: int
    chosen: int  # point of the checkpoint that is kept
    spent: float  # seconds of reading


class Replay(NamedTuple):
    """The end of a replay of ``Validation``."""

    chosen: int  # point of the checkpoint that is kept
    examples: int
    readings: int
    share: float  # of the clock, for validation
    spent: float  # seconds of reading
    stops: dict[float, Stop]  # by the rate of false stops, of those that would have come
    verdicts: Verdicts
    decisions: list[float]  # milliseconds of each call of ``due``


def replayed(record: Record, seed: int, rates: Sequence[float] = (), **options: Any) -> Replay:
    """Replay ``Validation`` on a record, whose points are its steps.

    Args:
        record: The run.
        seed: Seed of the order of the examples.
        rates: Rates of false stops: the replay notes where each would have stopped, and goes on.
        options: Options of ``Validation``.
    """
    clock, last = Clock(), len(record.losses) - 1
    examples = record.losses.shape[-1]
    validation = Validation(examples=examples, steps=last, seed=seed, clock=clock, **options)
    decisions: list[float] = []
    verdicts: list[tuple[str, bool]] = []
    stops: dict[float, Stop] = {}
    for point in range(last + 1):
        clock.now += record.seconds
        began = time.perf_counter()
        is_due = validation.due(point, train_loss=record.training[point])
        decisions.append(1e3 * (time.perf_counter() - began))
        if not is_due:
            continue
        before = validation.best
        while wanted := validation.examples:
            clock.now += record.price(len(wanted))
            validation.tell(record.losses[point, wanted])
        if before is not None:
            is_better = bool(record.means[point] < record.means[before.step])
            verdicts.append((validation.verdict, is_better))
        for rate in sorted(set(rates) - set(stops), reverse=True):
            validation.options = replace(validation.options, false_stop=rate)
            if validation.best is None or not validation.should_stop:
                break
            spent = clock.now - (point + 1) * record.seconds
            stops[rate] = Stop(point, validation.best.step, spent)
    best, summary = validation.best, validation.counts
    assert best is not None
    return Replay(
        best.step,
        summary["examples"],
        summary["readings"],
        summary["share"],
        clock.now - (last + 1) * record.seconds,
        stops,
        _counted(verdicts),
        decisions,
    )


def _counted(verdicts: Sequence[tuple[str, bool]]) -> Verdicts:
    decided = [(verdict, better) for verdict, better in verdicts if verdict in ("better", "worse")]
    wrong = sum((verdict == "better") != better for verdict, better in decided)
    return Verdicts(len(decided), wrong, len(verdicts) - len(decided))


def checkpoints(record: Record, seed: int) -> dict[str, dict[str, Any]]:
    """Return the checkpoint that each policy keeps, and what it paid."""
    epochs, means = list(record.epochs), record.means
    reference = _least(epochs, means.tolist())
    found = {
        f"every {k} epochs" if k > 1 else REFERENCE: _read(record, epochs[k - 1 :: k], reference)
        for k in INTERVALS
    }
    found["x 1.1 in time"] = _read(record, _growing(record), reference)
    found["subset of 20 %"] = _subset(record, seed, reference)
    for share in SHARES:
        replay = replayed(record, seed, overhead=share)
        ms = replay.decisions
        found[f"Validation {100 * share:.0f} %"] = {
            **_judged(record, replay.chosen, reference, replay.examples, replay.share),
            "readings": replay.readings,
            **replay.verdicts._asdict(),
            "median_ms": round(median(ms), 4),
            "mean_ms": round(fmean(ms), 4),
        }
    return found


def _least(points: Sequence[int], values: Sequence[float]) -> int:
    return min(points, key=lambda point: values[point])


def _growing(record: Record) -> list[int]:
    """Return points at equal ratios, from the end of the first epoch on."""
    points, last = [record.points - 1], len(record.losses) - 1
    while points[-1] < last:
        points.append(min(max(round(points[-1] * _RATIO), points[-1] + 1), last))
    return points


def _read(record: Record, points: Sequence[int], reference: int) -> dict[str, Any]:
    """Return what reading everything at some points, and at the last one, keeps and pays."""
    last = len(record.losses) - 1
    points = sorted({*points, last})
    examples = record.losses.shape[-1]
    spent = len(points) * record.price(examples)
    chosen = _least(points, record.means.tolist())
    share = spent / (spent + (last + 1) * record.seconds)
    return _judged(record, chosen, reference, len(points) * examples, share)


def _subset(record: Record, seed: int, reference: int) -> dict[str, Any]:
    examples = record.losses.shape[-1]
    size = round(_SUBSET * examples)
    rows = torch.randperm(examples, generator=torch.Generator().manual_seed(seed))[:size]
    chosen = _least(record.epochs, record.losses[:, rows].mean(-1).tolist())
    spent = len(record.epochs) * record.price(size)
    share = spent / (spent + len(record.losses) * record.seconds)
    return _judged(record, chosen, reference, len(record.epochs) * size, share)


def _judged(
    record: Record, chosen: int, reference: int, examples: int, share: float
) -> dict[str, Any]:
    """Compare a checkpoint with that of reading everything at each epoch.

    It is within noise if its mean on the whole set is at most two paired standard errors higher.
    ``regret`` is the difference by the improvement of the run, from its first epoch to the reference.
    """
    differences = (record.losses[chosen] - record.losses[reference]).double()
    difference = float(differences.mean())
    error = float(differences.std()) / len(differences) ** 0.5
    improved = float(record.means[record.points - 1] - record.means[reference])
    return {
        "same": chosen == reference,
        "within": chosen == reference or difference <= 2 * error,
        "regret": round(difference / improved, 6),
        "examples": round(examples / (len(record.epochs) * record.losses.shape[-1]), 4),
        "share": round(share, 5),
    }
