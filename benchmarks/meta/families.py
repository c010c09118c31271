"""Families of recorded tasks: each in turn is the target, and all others are earlier studies."""

import math
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from benchmarks.harness.record import RESULTS
from benchmarks.meta.live import pool
from benchmarks.suite.data import arrays_of

_OBSERVED = 50  # random observations of a task of the SVM table
_KNOWN, _EVERY = 100, 5  # of LCBench in small: random networks of a task, every fifth is a target
_RANDOM_FIRST = 7  # of the seeds that draw them
_LOG = ("batch_size", "max_units", "learning_rate")  # parameters of LCBench
_LEAST_CELLS, _TARGETS = 40, 12  # of a group of language models; groups that are targets
UNRELATED = {"german-numer": 8, "colon-cancer": 4, "haberman": 9}  # numbers in the SVM table
TWISTS = ("", "negated", "shuffled", "random", "rescaled")  # of the earlier tasks
MISLEADING = TWISTS[1:4]


class Study(NamedTuple):
    """Observations of a task."""

    points: Tensor  # encoded in the unit cube, shape: (n, d)
    values: Tensor  # larger is better, shape: (n,)

    def regrets(self) -> Tensor:
        """Return how far each value is below the best, as a share of their range, ``(n,)``."""
        best, worst = self.values.max(), self.values.min()
        return (best - self.values) / (best - worst)


class Family(NamedTuple):
    """Recorded tasks over one space."""

    names: tuple[str, ...]
    whole: tuple[Study, ...]  # all that is recorded of each task, which a target is chosen from
    targets: tuple[int, ...]  # numbers of the tasks that are targets
    earlier: Callable[[int], list[Study]]  # from a seed: what is known of each as an earlier study


@cache
def svm() -> Family:
    """Return 25 data sets, 288 support vector machines each; 50 random ones are known of the others.

    References:
        M. Wistuba, N. Schilling, L. Schmidt-Thieme. Learning hyperparameter optimization
        initializations. DSAA 2015.
    """
    table = arrays_of("tst_svm_25.npz")
    points, values = _unit(table["hp_raw"]), torch.as_tensor(table["accuracy"]).double()
    whole = tuple(Study(points, row) for row in values)

    names = tuple(str(name) for name in table["names"])
    return Family(names, whole, tuple(range(len(whole))), partial(_some, whole))


def _some(whole: tuple[Study, ...], seed: int, count: int = _OBSERVED) -> list[Study]:
    """Return random observations of each task."""
    draws = torch.Generator().manual_seed(1_000 * _RANDOM_FIRST + seed)
    rows = [torch.randperm(len(one.values), generator=draws)[:count] for one in whole]
    return [Study(one.points[r], one.values[r]) for one, r in zip(whole, rows, strict=True)]


@cache
def lcbench() -> Family:
    """Return 25 tasks with the final validation accuracy of the same 2,000 networks, all known.

    References:
        L. Zimmer, M. Lindauer, F. Hutter. Auto-PyTorch tabular. TPAMI 2021.
    """
    table = arrays_of("lcbench_finals_25x2000.npz")
    configs = table["configs"].astype(float)
    for column, name in enumerate(table["names"]):
        if name in _LOG:
            configs[:, column] = np.log(configs[:, column])
    points = _unit(configs)
    values = torch.as_tensor(table["val_balanced_accuracy"]).double()
    whole = tuple(Study(points, row) for row in values)
    names = tuple(str(name) for name in table["tasks"])
    return Family(names, whole, tuple(range(len(whole))), lambda seed: list(whole))


@cache
def lcbench_small() -> Family:
    """Return five targets of LCBench after 100 random networks of each other task."""
    every = lcbench()
    earlier = partial(_some, every.whole, count=_KNOWN)
    return every._replace(targets=every.targets[::_EVERY], earlier=earlier)


@cache
def language_models() -> Family:
    """Return groups of pre-trainings by model size and tokens; the largest are targets.

    Values are negative losses. The best learning rate and batch size move from group to group.

    References:
        H. Li et al. Predictable scale: Part I, Step Law. 2025.
    """
    table = arrays_of("lm_lr_batch_scaling.npz")
    size, data = table["non_embedding_param_size"], table["data_size"]
    sorts = np.stack([np.log(size).round(1), np.log(data).round(1)], -1)
    points = _unit(np.stack([np.log(table["lr"]), np.log(table["bsz"])], -1))
    values = -torch.as_tensor(table["lm_loss"]).double()
    groups = []
    for sort in np.unique(sorts, axis=0):
        rows = np.flatnonzero((sorts == sort).all(-1))
        if len(rows) >= _LEAST_CELLS:
            name = f"{math.exp(sort[0]) / 1e6:.0f}M {math.exp(sort[1]) / 1e9:.0f}B"
            groups.append((float(sort.sum()), name, Study(points[rows], values[rows])))
    groups.sort(key=lambda group: group[0])
    whole = tuple(group[2] for group in groups)
    last = tuple(range(len(whole)))[-_TARGETS:]
    return Family(tuple(group[1] for group in groups), whole, last, lambda seed: list(whole))


def live(name: str) -> Family:
    """Return a family that was really run; 50 random configurations are known of each earlier task."""
    known, family = pool.table(name, RESULTS), pool.FAMILIES[name]
    whole = tuple(Study(known.points, known.values[task]) for task in family.tasks)

    targets = tuple(family.tasks.index(task) for task in family.targets)
    return Family(family.tasks, whole, targets, partial(_some, whole))


FAMILIES: Mapping[str, Callable[[], Family]] = {
    **{family.name: partial(live, family.name) for family in pool.SMALL},
    "svm": svm,
    "lcbench": lcbench,
    "lcbench-small": lcbench_small,
    "language-models": language_models,
}


def _unit(raw: np.ndarray) -> Tensor:
    """Return columns stretched to the unit interval."""
    low, high = raw.min(0), raw.max(0)
    return torch.as_tensor((raw - low) / (high - low)).double()


def twisted(studies: list[Study], how: str, seed: int) -> list[Study]:
    """Return studies that mislead, or are told in other units; as they are for ``""``.

    They are "negated", "shuffled", "random", or "rescaled", each by a shift and a scale of its own.
    """
    draws = torch.Generator().manual_seed(seed)

    def values(one: Study) -> Tensor:
        y = one.values
        if how == "negated":
            return 2 * y.mean() - y
        if how == "shuffled":
            return y[torch.randperm(len(y), generator=draws)]
        if how == "rescaled":
            shift, scale = torch.randn(2, generator=draws, dtype=y.dtype)
            return y.mean() + y.std(correction=0) * 3 * shift + scale.exp() * (y - y.mean())
        noise = torch.randn(len(y), generator=draws, dtype=y.dtype)
        return y.mean() + y.std(correction=0) * noise

    return [Study(one.points, values(one)) for one in studies] if how else studies
