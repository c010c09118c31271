"""Training algorithms and their settings on the workloads of AlgoPerf, by the time to a target metric.

A task is a workload; a configuration is an algorithm with one of its settings. Its value is the negative
logarithm of the seconds of training until the validation metric reaches the workload's target, on average
over repeated trainings. A training that never reaches it counts as twice the budget of the workload, the
median length of such trainings.

With 20 to 55 settings measured, a workload is a target of the search; workloads with fewer are earlier
studies only. A seed resamples the repeated trainings of each setting.

References:
    G. E. Dahl et al. Benchmarking neural network training algorithms. 2023.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from benchmarks.meta.families import Family, Study
from benchmarks.suite.data import arrays_of

NEVER = 2.0  # budgets that a training counts as if it does not reach the target
ENCODINGS = ("hyperparameters", "names")
_FEWEST = 20  # settings of a workload that is a target
_RISING = ("accuracy", "ssim")  # metrics of which larger values are better
_LOGARITHMS = ("learning_rate", "weight_decay", "one_minus_beta1", "one_minus_beta2")
_NUMBERS = (*_LOGARITHMS, "warmup", "label_smoothing", "dropout_rate")
_LEAST = 1e-6  # of a number on a logarithmic scale


class Setting(NamedTuple):
    """An algorithm and the number of one of its settings."""

    algorithm: str
    trial: str


class Times(NamedTuple):
    """Seconds of training to the target of repeated trainings."""

    hyperparameters: Mapping[Setting, Mapping[str, Any]]
    logs: Mapping[str, Mapping[Setting, np.ndarray]]  # logarithms of seconds, by workload


@cache
def times() -> Times:
    """Return the times of all settings of the algorithms that were tuned externally, without reruns."""
    table = arrays_of("algoperf_logs.npz")
    seconds, lengths = _seconds(table)
    first = (table["ruleset"] == "external_tuning") & (table["version"] == "v05")
    logs: dict[str, dict[Setting, np.ndarray]] = {}
    settings: dict[Setting, Mapping[str, Any]] = {}
    for workload in sorted(set(table["workload"][first].tolist())):
        rows = np.flatnonzero(first & (table["workload"] == workload))
        never = rows[~np.isfinite(seconds[rows])]
        budget = float(np.median(lengths[never if len(never) else rows]))
        cells: dict[Setting, list[float]] = {}
        for row in rows.tolist():
            setting = Setting(str(table["submission"][row]), str(table["trial"][row]))
            cells.setdefault(setting, []).append(min(seconds[row], NEVER * budget))
            settings[setting] = json.loads(str(table["hyperparameters"][row]))
        logs[workload] = {setting: np.log(cells[setting]) for setting in sorted(cells)}
    return Times(settings, logs)


def _seconds(table: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the seconds of each training to its target, infinite if never reached, and of all of it."""
    targets = dict(zip(table["target_workload"], table["target_value"], strict=True))
    seconds, lengths = [], []
    bounds = zip(table["offsets"][:-1], table["offsets"][1:], strict=True)
    for row, (begin, end) in enumerate(bounds):
        metric, target = table["validation_metric"][begin:end], targets[table["workload"][row]]
        reached = metric >= target if table["metric"][row] in _RISING else metric <= target
        at = table["train_seconds"][begin:end]
        seconds.append(at[reached.argmax()] if reached.any() else np.inf)
        lengths.append(at[-1])
    return np.array(seconds, dtype=float), np.array(lengths, dtype=float)


def family(encoding: str, seed: int) -> Family:
    """Return the workloads, with the repeated trainings of each setting drawn with replacement."""
    draws = np.random.default_rng(seed)
    found = times()
    code = _encoded(found.hyperparameters, encoding)
    whole = []
    for logs in found.logs.values():
        means = [float(draws.choice(some, len(some)).mean()) for some in logs.values()]
        points = torch.stack([code[setting] for setting in logs])
        whole.append(Study(points, -torch.tensor(means, dtype=torch.float64)))
    targets = tuple(k for k, study in enumerate(whole) if len(study.values) >= _FEWEST)
    return Family(tuple(found.logs), tuple(whole), targets, lambda _: list(whole))


def _encoded(
    settings: Mapping[Setting, Mapping[str, Any]], encoding: str
) -> Mapping[Setting, Tensor]:
    """Return a point of the unit cube for each setting: its algorithm, and its numbers or its trial."""
    code = _one_hot([setting.algorithm for setting in settings])
    if encoding == "names":
        other = _one_hot([setting.trial for setting in settings])
    else:
        other = torch.stack([_numbers(values) for values in settings.values()])
        low, high = _bounds(other)
        other = ((other - low) / (high - low)).nan_to_num(
            0.5
        )  # the middle where there is no number
    return dict(zip(settings, torch.cat([code, other], -1), strict=True))


def _one_hot(names: Sequence[str]) -> Tensor:
    options = sorted(set(names))
    return torch.stack([torch.tensor([float(n == o) for o in options]).double() for n in names])


def _numbers(values: Mapping[str, Any]) -> Tensor:
    """Return the numbers that most algorithms have, NaN where this one has none."""
    known = dict(values)
    for beta in ("beta1", "beta2"):
        if beta in known:
            known[f"one_minus_{beta}"] = 1 - known[beta]
    for name in ("warmup_factor", "warmup_steps_fraction"):
        known.setdefault("warmup", known.get(name))
    row = torch.tensor([_number(known.get(name)) for name in _NUMBERS], dtype=torch.float64)
    logs = torch.tensor([name in _LOGARITHMS for name in _NUMBERS])
    return torch.where(logs, row.clamp_min(_LEAST).log(), row)


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else float("nan")


def _bounds(table: Tensor) -> tuple[Tensor, Tensor]:
    low = table.nan_to_num(torch.inf).amin(0)
    return low, table.nan_to_num(-torch.inf).amax(0)
