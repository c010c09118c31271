r"""Selects further points of a learning curve as data: the most uncertain, up to a condition number.

Points are added one by one, each where the predictive variance given all earlier ones is largest:

    v_j <- v_j - (k_j,new - c_j'c_new)^2 / (v_new + noise).

Each adds a row to the Cholesky factor, for all candidates at once. Points are added while

    ln cond(K) = ln (largest / least eigenvalue of K)

stays within a bound, where ``K`` is the covariance *without* noise (with a jitter of 1e-10 of its
diagonal). With noise a bound of 20 would never be reached: the eigenvalues of ``K + noise`` lie between
the noise and ``trace K + noise``: for 300 points of variance 1 and a noise of 1e-4, ``ln cond < 15``.

References:
    V. Nguyen, S. Schulze, M. A. Osborne. Bayesian optimization for iterative learning. NeurIPS 2020,
    section 3.3 and algorithm 1.
"""

import math

import torch
from torch import Tensor

from botorch_costly.numerics.cholesky import sure_root

_JITTER = 1e-10  # relative to the diagonal; smaller eigenvalues are rounding errors


def log_condition(covariance: Tensor) -> float:  # shape: (n, n)
    """Return the natural logarithm of the condition number of a covariance, at most about 23 + ln n."""
    values = torch.linalg.eigvalsh(covariance)
    least = _JITTER * float(covariance.diagonal().amax())
    return math.log(float(values[-1]) + least) - math.log(max(float(values[0]), 0.0) + least)


def most_uncertain(
    covariance: Tensor,  # of the n rows of the data and then of the m candidates, (n + m, n + m)
    rows: int,
    noise: float,
    most: int,
    largest_log_condition: float,
) -> Tensor:  # shape: (k,)
    """Return the indices of the candidates to add, in order; none if the data exceed the bound."""
    added: list[int] = []
    candidates = covariance.shape[-1] - rows
    eye = torch.eye(rows, dtype=covariance.dtype, device=covariance.device)
    chol = sure_root(covariance[:rows, :rows] + noise * eye)
    columns = torch.linalg.solve_triangular(chol, covariance[:rows, rows:], upper=False)
    variance = covariance.diagonal()[rows:] - columns.square().sum(-2)
    while len(added) < min(most, candidates):
        new = int(variance.argmax())
        enlarged = [*range(rows), *(rows + i for i in (*added, new))]
        if log_condition(covariance[enlarged][:, enlarged]) > largest_log_condition:
            break
        row = covariance[rows + new, rows:] - columns[:, new] @ columns
        row = row / (variance[new].clamp_min(0) + noise).sqrt()
        columns = torch.cat([columns, row.unsqueeze(0)])
        variance = variance - row.square()
        variance[[*added, new]] = -torch.inf
        added.append(new)
    return torch.tensor(added, dtype=torch.long, device=covariance.device)
