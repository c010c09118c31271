"""Recorded trainings of AlgoPerf, whose readings a policy picks from, and what the picked ones are worth.

A log holds a reading at each of ``n`` candidates, which are numbered from 0. Nearly all logs that reach
their target end there, so lateness is censored. Hence two protocols:

- ``planned``: the last candidate is the planned end of the run, and every policy reads it;
- ``open``: the end is unknown. A log that reaches its target goes on beyond its end, at its median
  interval and with its last values, until a policy reads a value at the target.
"""

import math
from collections.abc import Sequence
from functools import cache, cached_property
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.suite.data import arrays_of

Protocol = Literal["planned", "open"]
PROTOCOLS: tuple[Protocol, ...] = ("planned", "open")
HALVES: dict[str, tuple[str, ...]] = {
    "choosing": (
        "criteo1tb",
        "criteo1tb_embed_init",
        "fastmri_tanh",
        "imagenet_resnet_large_bn_init",
        "librispeech_conformer",
    ),
    "confirming": (
        "fastmri",
        "fastmri_model_size",
        "imagenet_resnet",
        "imagenet_vit",
        "librispeech_conformer_layernorm",
    ),
}
"""Workloads on which rules were chosen, and those on which they are judged."""

LENGTH = 3  # an open log is at most this many times as long as its readings
_LEAST_READINGS = 16
_LEAST_FINITE = 8
_SIGNS = {"loss": 1.0, "wer": 1.0, "ssim": -1.0, "accuracy": -1.0}  # that make lower values better
_ARRAYS = (
    "offsets",
    "workload",
    "metric",
    "target_workload",
    "target_value",
    "train_seconds",
    "eval_seconds",
    "train_loss",
    "validation_metric",
)

Floats = NDArray[np.float64]


class Log:
    """The readings of one training; lower values are better.

    Args:
        workload: Name of the workload.
        target: Value that ends the run.
        values: Values, infinite where a reading failed, shape ``(n,)``.
        losses: Training losses, NaN where unknown, shape ``(n,)``.
        training: Seconds of training up to each reading, shape ``(n,)``.
        reading: Seconds of each reading, shape ``(n,)``.
    """

    def __init__(
        self,
        workload: str,
        target: float,
        values: Floats,
        losses: Floats,
        training: Floats,
        reading: Floats,
    ) -> None:
        self.workload, self.target = workload, target
        self.values, self.losses = values, losses
        self._training, self._reading = training, reading

    def __len__(self) -> int:
        return len(self.values)

    @cached_property
    def crossing(self) -> int | None:
        """First candidate at the target; None if the log does not reach it."""
        return int(np.argmax(self.values <= self.target)) if self.reaches_target else None

    @property
    def reaches_target(self) -> bool:
        """Whether a value is at the target."""
        return bool(self.values.min() <= self.target)

    @cached_property
    def _medians(self) -> tuple[float, float]:
        """Medians of the seconds of training between two readings, and of those of a reading."""
        return float(np.median(np.diff(self._training))), float(np.median(self._reading))

    def value(self, candidate: int) -> float:
        """Return the value at a candidate, the last one beyond the end."""
        return float(self.values[min(candidate, len(self) - 1)])

    def loss(self, candidate: int) -> float | None:
        """Return the training loss at a candidate; None if it is unknown."""
        loss = float(self.losses[min(candidate, len(self) - 1)])
        return loss if math.isfinite(loss) else None

    def seconds(self, candidate: int) -> float:
        """Return the seconds of training up to a candidate, perhaps beyond the end."""
        beyond = max(candidate - len(self) + 1, 0)
        return float(self._training[min(candidate, len(self) - 1)]) + beyond * self._medians[0]

    def price(self, candidates: Sequence[int]) -> float:
        """Return the seconds of the readings of some candidates."""
        last = len(self) - 1
        return sum(float(self._reading[k]) if k <= last else self._medians[1] for k in candidates)

    def limit(self, protocol: Protocol) -> int:
        """Return the number of candidates that a policy may see."""
        return LENGTH * len(self) if protocol == "open" and self.reaches_target else len(self)


class Score(NamedTuple):
    """The worth of the readings of one run; the last three are NaN without a crossing."""

    missed: float  # best value, as a share of the improvement of the run
    share: float  # of the candidates that were read
    late: float  # share of the run's training between the crossing and its reading
    clock: float  # until the target was seen, as a share of that of reading every candidate
    oracle: float  # the same of the oracle, which reads once, at the crossing


def score(log: Log, readings: Sequence[int], protocol: Protocol) -> Score:
    """Return the worth of the readings of one run.

    Args:
        log: The run.
        readings: Candidates that are read, in their order; those after a reading at the target are
            left out in the ``open`` protocol, and in the other one the last candidate is added.
        protocol: How the run ends.
    """
    if protocol == "planned" or not log.reaches_target:
        readings = sorted({*readings, len(log) - 1})
    seen = next((k for k in readings if log.value(k) <= log.target), None)
    if protocol == "open" and seen is not None:
        readings = [k for k in readings if k <= seen]
    share = len(readings) / (readings[-1] + 1)
    missed = _missed(log, [k for k in readings if k < len(log)] or [len(log) - 1])
    if log.crossing is None:
        return Score(missed, share, math.nan, math.nan, math.nan)
    crossing = log.crossing
    everything = log.seconds(crossing) + log.price(range(crossing + 1))
    end = seen if seen is not None else log.limit(protocol) - 1
    late = (log.seconds(end) - log.seconds(crossing)) / log.seconds(len(log) - 1)
    clock = log.seconds(end) + log.price([k for k in readings if k <= end])
    oracle = log.seconds(crossing) + log.price([crossing])
    is_censored = protocol == "planned" and seen is None
    return Score(
        missed, share, 1.0 if is_censored else late, clock / everything, oracle / everything
    )


def _missed(log: Log, readings: Sequence[int]) -> float:
    """Return by how much the best value is missed, as a share of the improvement of the run."""
    best, finite = float(log.values.min()), log.values[np.isfinite(log.values)]
    first = log.value(0) if math.isfinite(log.value(0)) else float(finite.max())
    read = min(log.value(k) for k in readings)
    return min((read - best) / max(first - best, 1e-12), 1.0)


@cache
def logs_of(workloads: Sequence[str]) -> list[Log]:
    """Return the logs of some workloads that have at least 16 readings.

    Raises:
        MissingDataError: If ``algoperf_logs.npz`` is not in the folder of the data.
    """
    table = arrays_of("algoperf_logs.npz", _ARRAYS)
    targets = dict(zip(table["target_workload"], table["target_value"], strict=True))
    training, loss, metric = (
        table[name].astype(float) for name in ("train_seconds", "train_loss", "validation_metric")
    )
    logs = []
    for index, workload in enumerate(map(str, table["workload"])):
        span = slice(*table["offsets"][index : index + 2])
        sign = _SIGNS[str(table["metric"][index])]
        values = sign * metric[span]
        values = np.where(np.isfinite(values), values, np.inf)
        is_long = len(values) >= _LEAST_READINGS and np.isfinite(values).sum() >= _LEAST_FINITE
        if workload in workloads and is_long:
            reading = np.diff(table["eval_seconds"][span].astype(float), prepend=0)
            target = sign * float(targets[workload])
            parts = values, loss[span], training[span], reading
            logs.append(Log(workload, target, *parts))
    return logs
