"""The cost of evaluations at several fidelities, row by row, one set of hyperparameters at a time."""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np


class Hyperparameters(NamedTuple):
    """One point of the grid."""

    by_studies: bool
    floor: float
    noise: float
    lengthscale: float
    level: float
    exponent: float
    curvature: float


GRID = [
    Hyperparameters(*values)
    for values in itertools.product(
        (False, True),
        (0.0, 0.5, 0.8, 0.9, 0.95),
        (0.1, 0.3),
        (0.3, 1.0),
        (0.3, 1.0),
        (0.1, 0.3),
        (0.1, 0.5),
    )
]


def _covariance(
    a: Sequence[float], b: Sequence[float], lowest: Sequence[float], h: Hyperparameters
) -> float:
    """Return the prior covariance of two evaluations, configurations followed by log shares."""
    dim = len(a) - len(lowest)
    u, v = ([row[dim + j] - low for j, low in enumerate(lowest)] for row in (a, b))
    common = sum(p * q for p, q in zip(u, v, strict=True))
    bends = sum((p**2 / low) * (q**2 / low) for p, q, low in zip(u, v, lowest, strict=True))
    linear = sum((a[k] - 0.5) * (b[k] - 0.5) for k in range(dim))
    distance = math.dist(a[:dim], b[:dim]) / (h.lengthscale * math.sqrt(dim)) * math.sqrt(5)
    matern = (1 + distance + distance**2 / 3) * math.exp(-distance)
    usual = 0.1 if h.by_studies else 1.0
    common_to_all = 100 + usual * (linear + 0.25 * common) + h.curvature**2 * bends
    return common_to_all + (h.level**2 + h.exponent**2 * common) * matern


def predicted(
    rows: Sequence[Sequence[float]],
    costs: Sequence[float],
    lowest: Sequence[float],
    fresh: Sequence[Sequence[float]],
    expected: Callable[[Sequence[float]], float] | None = None,
) -> list[float]:
    """Return costs of fresh rows, by the hyperparameters of the largest marginal likelihood.

    Args:
        rows: Configurations followed by log shares of the target.
        costs: Their costs.
        lowest: Log shares of the lowest fidelities.
        fresh: Rows whose costs are predicted.
        expected: Returns the cost of a row that earlier studies let expect.
    """
    best, answer = -math.inf, list[float]()
    dim = len(rows[0]) - len(lowest)

    def prior_mean(row: Sequence[float], h: Hyperparameters) -> float:
        return math.log(expected(row)) if expected and h.by_studies else sum(row[dim:])

    for h in GRID if expected else [h for h in GRID if not h.by_studies]:
        floor = h.floor * min(costs)
        shares = [1 - floor / cost for cost in costs]
        values = [
            math.log(cost - floor) - prior_mean(row, h)
            for row, cost in zip(rows, costs, strict=True)
        ]
        level = sorted(values)[(len(values) - 1) // 2]
        K = np.array([[_covariance(a, b, lowest, h) for b in rows] for a in rows])
        S = K + np.diag([(h.noise / share) ** 2 for share in shares])
        residual = np.array(values) - level
        solved = np.linalg.solve(S, residual)
        # The density of log(cost), which is that of log(cost - floor) divided by the share.
        evidence = (
            -0.5 * residual @ solved - 0.5 * np.linalg.slogdet(S)[1] - sum(map(math.log, shares))
        )
        evidence += math.log(1 - h.floor)  # prior
        if evidence > best:
            best = evidence
            answer = [
                floor
                + math.exp(
                    level
                    + prior_mean(z, h)
                    + sum(
                        _covariance(z, a, lowest, h) * s for a, s in zip(rows, solved, strict=True)
                    )
                )
                for z in fresh
            ]
    return answer
