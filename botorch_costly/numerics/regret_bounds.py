r"""Bounds of regret, and of the loss, which is regret plus queries, under CE-GP-UCB.

They hold for functions drawn from the Gaussian process, with the ``beta`` of the theorems. With ``T``
rounds, ``B`` queries on average and ``beta = beta_T``,

    E regret <= T sqrt(8 beta gamma / (B log(1 + 1 / noise))),                      Theorem 4, (31)
    gamma <= (B / N + 1)(gamma_N + (T / B) N^3 forgetting),   N = 1, .., B,          Lemma 5, (33)

with the maximum information gain ``gamma`` of ``B`` queries of the drifting function, and ``gamma_N`` of
``N`` queries of a function that does not drift; see ``numerics.information_gain``. Variances are in units
of the prior variance. Numbers of equations are those of version 2 of the paper.

The proof of Theorem 4 uses Lemma 1, which is false in general, and takes the mean of a product for the
product of means in (28). So the formula is not proved; ``python -m benchmarks regret-bounds`` compares it
with runs.

References:
    J. Wang, M. Ren, I. Bogunovic, Y. Xiong, R. Urtasun. Cost-efficient online hyperparameter
    optimization. 2021, appendices B.3 and D.
"""

import math

import torch
from torch import Tensor

from botorch_costly.errors import (
    InvalidShapeError,
    check,
    check_count,
    check_nonnegative,
    check_positive,
    check_probability,
    check_rate,
)


def regret_bound(horizon: int, queries: float, beta: float, noise: float, gain: float) -> float:
    """Return the bound of the expected sum of regrets, Theorem 4.

    Args:
        horizon: Number of rounds ``T``.
        queries: Number of queries ``B`` on average, in [1, horizon].
        beta: Squared width of the confidence bounds in the last round.
        noise: Noise variance of a query, positive.
        gain: Maximum information gain of the queries, in nats.

    Raises:
        InvalidArgumentError: If a number is out of range.
    """
    _check_queries(horizon, queries)
    check_nonnegative("beta", beta)
    check_nonnegative("gain", gain)
    check_positive("noise", noise)
    return horizon * math.sqrt(8 * beta * gain / (queries * math.log1p(1 / noise)))


def drifting_gain_bound(gains: Tensor, horizon: int, forgetting: float) -> float:
    """Return the bound of the maximum information gain of ``B`` queries of a drifting function, Lemma 5.

    Args:
        gains: Maximum information gains ``gamma_1, .., gamma_B`` without drift, in nats, shape ``(B,)``.
        horizon: Number of rounds ``T``, at least ``B``.
        forgetting: Forgetting rate per round, in [0, 1].

    Returns:
        The least of the bounds for ``N = 1, .., B``.

    Raises:
        InvalidShapeError: If ``gains`` is not a vector with at least one entry.
        InvalidArgumentError: If a number is out of range.

    Example:
        >>> drifting_gain_bound(torch.tensor([0.5, 0.75]), horizon=4, forgetting=0.0)
        1.5
    """
    is_vector = gains.dim() == 1 and len(gains) > 0
    check(is_vector, "gains", "shape (B,)", tuple(gains.shape), InvalidShapeError)
    queries = len(gains)
    _check_queries(horizon, queries)
    check_rate("forgetting", forgetting)
    length = torch.arange(1, queries + 1, dtype=torch.float64)
    drift = horizon / queries * length**3 * forgetting
    bounds = (queries / length + 1) * (gains.detach().cpu().double() + drift)
    return float(bounds.min())


def balanced_queries(horizon: int, forgetting: float, exponent: float = 0.0) -> float:
    """Return the number of queries that balances the orders of regret and cost, Corollary 6.

    It is ``max(T^(2 / (3 - c)), T forgetting^((1 - c) / (7 - 3 c)))``, also the order of the loss,
    up to logarithms; the constants are unknown.

    Args:
        horizon: Number of rounds ``T``.
        forgetting: Forgetting rate per round, in [0, 1].
        exponent: Order ``c`` in [0, 1) of the maximum information gain ``N^c``: 0 for the squared
            exponential kernel, ``d (d + 1) / (2 nu + d (d + 1))`` for a Matérn kernel of ``d`` variables.

    Raises:
        InvalidArgumentError: If a number is out of range.

    Example:
        >>> round(balanced_queries(1000, forgetting=0.0), 6)
        100.0
    """
    check_count("horizon", horizon, minimum=1)
    check_rate("forgetting", forgetting)
    check(0 <= exponent < 1, "exponent", "a number in [0, 1)", exponent)
    steady = horizon ** (2 / (3 - exponent))
    return max(steady, horizon * forgetting ** ((1 - exponent) / (7 - 3 * exponent)))


def regret_without_query(beta: float, kappa: float, std: Tensor, rival_std: Tensor) -> Tensor:
    """Return the most regret that a round without a query has, within the confidence bounds, eq. (58).

    Args:
        beta: Squared width of the confidence bounds.
        kappa: Threshold of ``ConfidenceQuery``, in [0.5, 1): below 0.5 step (55) of the proof fails.
        std: Standard deviation of the candidate.
        rival_std: Standard deviations of rivals, broadcast against ``std``.

    Returns:
        ``(sqrt(beta) - Phi^{-1}(kappa) / sqrt(2)) (std + rival_std)``; a negative number means no regret.

    Raises:
        InvalidArgumentError: If a number is out of range.
    """
    check_nonnegative("beta", beta)
    check_probability("kappa", kappa)
    check(kappa >= 0.5, "kappa", "a number in [0.5, 1)", kappa)
    quantile = float(torch.special.ndtri(torch.tensor(kappa, dtype=torch.float64)))
    return (math.sqrt(beta) - quantile / math.sqrt(2)) * (std + rival_std)


def _check_queries(horizon: int, queries: float) -> None:
    check_count("horizon", horizon, minimum=1)
    check(1 <= queries <= horizon, "queries", f"a number from 1 to {horizon}", queries)
