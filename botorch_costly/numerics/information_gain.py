r"""The information that queries give about a function, in nats, and its maximum over their points.

    I = log det(1 + K / noise) / 2                                                           (15)
      = sum_i log(1 + var_i / noise) / 2                                                     (17)

with the covariance ``K`` of the queries and the variance ``var_i`` at query ``i`` given those before it.
The maximum information gain ``gamma`` is the maximum of ``I`` over the points of the queries (16). It is
NP-hard to compute; the greedy choice takes the point with the largest variance at every query. Since
``I`` is submodular, the choice reaches at least ``1 - 1/e`` of the maximum for queries of one round
(Nemhauser, Wolsey & Fisher 1978), and at least a half for one query in each of given rounds, between
which the function drifts (Fisher, Nemhauser & Wolsey 1978).

Numbers of equations are those of version 2 of the paper.

References:
    - J. Wang, M. Ren, I. Bogunovic, Y. Xiong, R. Urtasun. Cost-efficient online hyperparameter
      optimization. 2021, appendix B.2.
    - N. Srinivas, A. Krause, S. Kakade, M. Seeger. Gaussian process optimization in the bandit setting.
      ICML 2010.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor

from botorch_costly.errors import InvalidShapeError, check, check_positive, check_rate

GREEDY_SHARE = 1 - 1 / math.e  # least share of the maximum that greedy choices reach in one round
GREEDY_SHARE_OVER_ROUNDS = 0.5  # and with one query in each of given rounds


def information_gain(cov: Tensor, noise: float) -> Tensor:
    """Return the information of queries about the function, equation 15.

    Args:
        cov: Prior covariance of the function values at the queries, ``(*batch, n, n)``.
        noise: Noise variance of a query, positive.

    Returns:
        Information in nats, shape ``batch``.

    Raises:
        InvalidShapeError: If the covariance is not square.
        InvalidArgumentError: If ``noise`` is not positive.

    Example:
        >>> information_gain(torch.eye(2), noise=1.0)  # log 2
        tensor(0.6931)
    """
    _check_square(cov)
    check_positive("noise", noise)
    eye = torch.eye(cov.shape[-1], dtype=cov.dtype, device=cov.device)
    root = torch.linalg.cholesky(eye + cov / noise)
    return root.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def greedy_information_gain(
    cov: Tensor, noise: float, rounds: Sequence[int], forgetting: float = 0.0
) -> Tensor:
    """Return the information of the first 1, 2, .. greedily chosen queries.

    Args:
        cov: Prior covariance of the points that may be queried, ``n x n``.
        noise: Noise variance of a query, positive.
        rounds: Rounds of the queries, ascending; a point may be queried repeatedly.
        forgetting: Forgetting rate of the function per round, in [0, 1].

    Returns:
        Information in nats, one number for each query, not decreasing.

    Raises:
        InvalidShapeError: If the covariance is not a square matrix.
        InvalidArgumentError: If a number is out of range, or the rounds descend.

    Example:
        >>> greedy_information_gain(torch.eye(3), noise=1.0, rounds=range(4))
        tensor([0.3466, 0.6931, 1.0397, 1.2425])
    """
    _check_square(cov)
    check(cov.dim() == 2, "cov", "n x n", tuple(cov.shape), InvalidShapeError)
    check_positive("noise", noise)
    check_rate("forgetting", forgetting)
    steps = [later - now for now, later in pairwise(rounds)]
    check(min(steps, default=0) >= 0, "rounds", "ascending rounds", rounds)
    projected = cov.new_zeros(len(rounds), len(cov))  # of all points on the queries so far
    prior, gain, total = cov.diagonal(), cov.new_zeros(()), []
    for number, step in enumerate([0, *steps][: len(rounds)]):
        # All earlier queries are equally much older: their share in every point shrinks alike.
        rows = projected[:number].mul_((1 - forgetting) ** (step / 2))
        variance = (prior - rows.square().sum(0)).clamp_min(0)
        pick = variance.argmax()
        gain = gain + 0.5 * torch.log1p(variance[pick] / noise)
        total.append(gain)
        own = cov[pick] - rows[:, pick] @ rows
        projected[number] = own / (variance[pick] + noise).sqrt()
    return torch.stack(total) if total else cov.new_zeros(0)


def _check_square(cov: Tensor) -> None:
    is_square = cov.dim() >= 2 and cov.shape[-1] == cov.shape[-2]
    check(is_square, "cov", "(*batch, n, n)", tuple(cov.shape), InvalidShapeError)
