"""Recorded learning curves: three sets that were measured, and one made by a surrogate."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

import numpy as np
import torch
from torch import Tensor

from benchmarks.suite.data import arrays_of
from botorch_costly.problems import CurveProblem

_LOGARITHMS = {"batch_size", "lr", "learning_rate", "weight_decay", "max_units", "train_batch_size"}
_NEAR_ONE = {"momentum"}  # of which the distance from 1 counts, on a logarithmic scale


@cache
def alexnet() -> CurveProblem:
    """Return 512 random trainings of AlexNet on ImageNet: top-1 accuracy, seconds; 29 % diverge.

    The number of epochs is a hyperparameter, and the learning rate falls to 0 at its end.
    """
    table = arrays_of("imagenet_alexnet_curves_512.npz")
    epochs, seconds = table["configs"][:, 0].astype(int), table["seconds"]
    at = np.arange(1, seconds.shape[1] + 1)
    typical = float(np.nanmedian(seconds / at))  # of an epoch
    inputs = _encoded(table["names"], table["configs"])
    return _problem(inputs, table["top_1"], seconds, epochs, startup=typical)


@cache
def mnli() -> CurveProblem:
    """Return 1,024 fine-tunings of DeBERTa on MNLI: accuracy every 1,000 steps; the cost is examples."""
    table = arrays_of("mnli_deberta_curves_1024.npz")
    names, configs = list(table["names"]), table["configs"]
    known = ~np.isnan(table["accuracy"])
    lengths = np.where(known.any(1), known.shape[1] - known[:, ::-1].argmax(1), 1)
    examples = table["steps"] * configs[:, names.index("train_batch_size"), None]
    return _problem(_encoded(names, configs), table["accuracy"], examples, lengths)


@cache
def reinforcement(game: str, seed: int) -> CurveProblem:
    """Return 108 trainings by PPO of one seed: mean return and seconds, at 100 times of a training.

    ``game`` is "pong" or "enduro"; seeds are counted from 0, modulo the number of those measured.
    """
    table = arrays_of("hpo_rl_bench_ppo.npz")
    axes = np.meshgrid(table["log10_lr"], table["gamma"], table["clip"], indexing="ij")
    configs = np.stack([axis.ravel() for axis in axes], -1).astype(float)
    returns, seconds = table[f"{game}_returns"], table[f"{game}_seconds"]
    which = seed % returns.shape[3]
    curves, costs = (part[:, :, :, which].reshape(len(configs), -1) for part in (returns, seconds))
    lengths = np.full(len(configs), curves.shape[1])
    return _problem(_unit(torch.from_numpy(configs)), curves, costs, lengths)


@cache
def surrogate(task: int) -> CurveProblem:
    """Return 600 configurations of a task of LCBench by a surrogate: accuracy of 52 epochs, seconds."""
    table = arrays_of("lcbench_surrogate_34x600x52.npz")
    inputs = _encoded(table["hp_names"], table["hp"])
    accuracy, seconds = table["val_accuracy"][task] / 100, table["time"][task]
    lengths = np.full(len(accuracy), accuracy.shape[1])
    return _problem(inputs, accuracy, seconds, lengths)


TASKS = 34  # of the surrogate
TABLES: dict[str, Callable[[int], CurveProblem]] = {
    "alexnet": lambda seed: alexnet(),
    "mnli": lambda seed: mnli(),
    "pong": partial(reinforcement, "pong"),
    "enduro": partial(reinforcement, "enduro"),
    "lcbench": lambda seed: surrogate(seed % TASKS),
}
"""By name; what has several seeds or tasks takes the number of the run."""


def problem_of(table: str, seed: int) -> CurveProblem:
    """Return a table by its name."""
    return TABLES[table](seed)


def _problem(
    inputs: Tensor, rewards: Any, elapsed: Any, lengths: Any, *, startup: float = 0.0
) -> CurveProblem:
    rewards, elapsed = (torch.from_numpy(part.astype(np.float64)) for part in (rewards, elapsed))
    # Clocks were not always read, and that of the surrogate steps back at times.
    latest = elapsed.nan_to_num(0.0).cummax(-1).values
    elapsed = torch.where(rewards.isnan(), torch.nan, latest)
    return CurveProblem(inputs, rewards, elapsed, torch.from_numpy(lengths), startup=startup)


def _encoded(names: Any, configs: Any) -> Tensor:
    """Return configurations in the unit cube, on the scales that a user would choose."""
    columns: Mapping[str, Tensor] = {
        str(name): torch.from_numpy(column.astype(np.float64))
        for name, column in zip(names, configs.T, strict=True)
    }
    scaled = []
    for name, column in columns.items():
        if name in _LOGARITHMS:
            column = column.log()
        elif name in _NEAR_ONE:
            column = (1 - column).log()
        scaled.append(column)
    return _unit(torch.stack(scaled, -1))


def _unit(columns: Tensor) -> Tensor:
    low, high = columns.amin(0), columns.amax(0)
    return (columns - low) / (high - low)
