"""Recorded evaluations: language models of many sizes, trained on more or less of the data."""

from collections.abc import Callable, Mapping
from functools import cache, partial

import numpy as np

from benchmarks.suite.data import arrays_of
from botorch_costly import Real, SearchSpace
from botorch_costly.problems import SubsetProblem

_NEAR = 1.01  # sizes within a hundredth are one
_SIZES = {"1.07b-20b": (1.073741824e9, 2e10), "429m-100b": (4.2926e8, 1e11)}  # parameters, tokens
_LEAST = 5.9e7, 2e9


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


TABLES: Mapping[str, Callable[[], SubsetProblem]] = {
    name: partial(language_models, name) for name in _SIZES
}
