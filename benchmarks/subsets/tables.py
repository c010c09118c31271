"""Recorded evaluations: language models of many sizes, support vector machines on parts of MNIST."""

import math
from collections.abc import Callable, Mapping
from functools import cache
from typing import NamedTuple

import numpy as np

from benchmarks.harness.record import RESULTS, rows_of
from benchmarks.subsets import svm_grid
from benchmarks.suite.data import MissingDataError, arrays_of
from botorch_costly import Real, SearchSpace
from botorch_costly.problems import SubsetProblem

_NEAR = 1.01  # sizes within a hundredth are one
_SIZES = {"1.07b-20b": (1.073741824e9, 2e10), "429m-100b": (4.2926e8, 1e11)}  # parameters, tokens
_LEAST = 5.9e7, 2e9
# Seconds of a decision: a tenth of what it takes, for trainings worth tuning last ten times as long.
_DECIDING = 0.05


@cache
def language_models(name: str) -> SubsetProblem:
    """Return pre-trainings of at most the size and the tokens of a target; their cost is 6 N D.

    Values are negative losses: a regret is in nats for each token.

    References:
        H. Li et al. Predictable scale: Part I, Step Law. 2025.
    """
    parameters, tokens = _SIZES[name]
    table = arrays_of("lm_lr_batch_scaling.npz")
    size, data = table["non_embedding_param_size"], table["data_size"]
    rows = np.flatnonzero((size <= _NEAR * parameters) & (data <= _NEAR * tokens))
    candidates = [
        (
            {"lr": float(table["lr"][row]), "batch": float(table["bsz"][row])},
            {"parameters": _at(size[row], parameters), "tokens": _at(data[row], tokens)},
        )
        for row in rows
    ]
    space = SearchSpace({"lr": Real(2e-4, 2.5e-2, log=True), "batch": Real(16, 2048, log=True)})
    fidelities = SearchSpace(
        {
            "parameters": Real(_LEAST[0], parameters, log=True),
            "tokens": Real(_LEAST[1], tokens, log=True),
        }
    )
    costs = [at["parameters"] * at["tokens"] for _, at in candidates]
    values = -table["lm_loss"][rows]
    return SubsetProblem(space, fidelities, candidates, values.tolist(), costs)


def _at(value: float, target: float) -> float:
    """Return a fidelity, that of the target if it is within a hundredth."""
    return target if abs(value / target - 1) < _NEAR - 1 else float(value)


def support_vectors(seed: int) -> SubsetProblem:
    """Return the grid of support vector machines; the seed says which subset each evaluation drew.

    Values are negative errors, told are their logarithms. Costs are seconds, of which each evaluation has
    0.05 for deciding.

    Raises:
        MissingDataError: If ``svm-grid`` is not stored.
    """
    rows = rows_of(svm_grid.NAME, RESULTS)
    if not rows:
        raise MissingDataError(svm_grid.NAME, "stored rows", RESULTS)
    random = np.random.default_rng(seed)
    candidates, errors, seconds = [], [], []
    for row in rows:
        config = {"c": math.exp(row["log_c"]), "gamma": math.exp(row["log_gamma"])}
        for place, fraction in enumerate(svm_grid.REPEATS):
            drawn = random.integers(len(row["errors"][place]))
            candidates.append((svm_grid.SPACE.canonical(config), {"fraction": fraction}))
            errors.append(row["errors"][place][drawn])
            seconds.append(row["seconds"][place][drawn] + _DECIDING)
    least = 0.5 / rows[0]["checked"]
    told = [-math.log(max(error, least)) for error in errors]
    values = [-error for error in errors]
    return SubsetProblem(svm_grid.SPACE, svm_grid.FRACTION, candidates, values, seconds, told)


class Table(NamedTuple):
    """What is played on, and for how long."""

    make: Callable[[int], SubsetProblem]  # from a seed
    budgets: tuple[float, ...]  # in mean costs of an evaluation at the target
    goal: float  # regret that is hoped for
    without: tuple[str, ...] = ()  # methods that cannot be played on it


def _language_models(name: str) -> Table:
    budgets = (0.25, 0.5, 1, 2, 3)
    of_parts = ("MTBO, 1/64", "MTBO, 1/16")
    return Table(lambda seed: language_models(name), budgets, goal=0.005, without=of_parts)


_SVM = Table(support_vectors, (0.25, 0.5, 1, 2, 3, 5, 10, 20), goal=0.002, without=("Step Law",))

TABLES: Mapping[str, Table] = {**{name: _language_models(name) for name in _SIZES}, "svm": _SVM}
