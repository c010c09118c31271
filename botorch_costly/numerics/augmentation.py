r"""Which further points of a learning curve join the data: the most uncertain, while it is well posed.

Points are added one by one, each where the predictive variance given all before is largest:

    v_j <- v_j - (k_j,new - c_j'c_new)^2 / (v_new + noise),

one row of the Cholesky factor for each, of all candidates at once. They are added while

    ln cond(K) = ln (largest / least eigenvalue of K)

stays within a bound, ``K`` the covariance *without* noise, but for a share of 1e-10 of its diagonal.
With noise a bound of 20 is never reached: the eigenvalues of ``K + noise`` lie between the noise and
``trace K + noise``, so that for 300 points, a variance of 1 and a noise of 1e-4, ``ln cond < 15``.

References:
    V. Nguyen, S. Schulze, M. A. Osborne. Bayesian optimization for iterative learning. NeurIPS 2020,
    section 3.3 and algorithm 1.
"""

import math

import torch
from torch import Tensor

from botorch_costly.numerics.cholesky import sure_root

_JITTER = 1e-10  # share of the diagonal: below it an eigenvalue is rounding


def log_condition(covariance: Tensor) -> float:  # shape: (n, n)
    """Return the natural logarithm of the condition number of a covariance, at most about 23 + ln n."""
    values = torch.linalg.eigvalsh(covariance)
    least = _JITTER * float(covariance.diagonal().amax())
    return math.log(float(values[-1]) + least) - math.log(max(float(values[0]), 0.0) + least)


def most_uncertain(
    covariance: Tensor,  # of the rows at hand, then of the candidates, shape: (n + m, n + m)
    rows: int,
    noise: float,
    most: int,
    largest_log_condition: float,
) -> Tensor:  # numbers of candidates from 0 in the order in which they are added, shape: (k,)
    """Return which candidates are added, none if the rows at hand are over the bound already."""
    added: list[int] = []
    candidates = covariance.shape[-1] - rows
    chol = sure_root(covariance[:rows, :rows] + _noise(covariance, noise, rows))
    columns = torch.linalg.solve_triangular(chol, covariance[:rows, rows:], upper=False)
    variance = covariance.diagonal()[rows:] - columns.square().sum(-2)
    while len(added) < min(most, candidates):
        new = int(variance.argmax())
        among = [*range(rows), *(rows + i for i in (*added, new))]
        if log_condition(covariance[among][:, among]) > largest_log_condition:
            break
        row = covariance[rows + new, rows:] - columns[:, new] @ columns
        row = row / (variance[new].clamp_min(0) + noise).sqrt()
        columns = torch.cat([columns, row.unsqueeze(0)])
        variance = variance - row.square()
        variance[[*added, new]] = -torch.inf
        added.append(new)
    return torch.tensor(added, dtype=torch.long, device=covariance.device)


def _noise(like: Tensor, noise: float, rows: int) -> Tensor:
    return noise * torch.eye(rows, dtype=like.dtype, device=like.device)
