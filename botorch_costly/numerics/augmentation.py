r"""Selects further points of a learning curve as data: the most uncertain, up to a condition number.

Points are added one by one, each where the predictive variance given all earlier ones is largest:

    v_j <- v_j - (k_j,new - c_j'c_new)^2 / (v_new + noise).

Each adds a row to the Cholesky factor, for all candidates at once. Points are added while

    ln cond(K + s^2 v I) = ln (largest / least eigenvalue)

stays within a bound, where ``v`` is the largest variance and ``s^2`` is small and *fixed*. It decides how
many points fit: ``cond <= n / s^2 + 1``, so a bound of 20 holds for all of up to ``s^2 e^20`` points (48
for 1e-7), and beyond that acts on points that are close to each other. Without ``s^2`` the rows of a few
curves exceed it; with a fitted noise none ever would: for 300 points, a variance of 1 and a noise of
1e-4, ``ln cond < 15``.

Eigenvalues interlace, so that no further point makes the condition number smaller, and the order of the
points does not depend on the bound. Therefore all are ordered first, and their number is found by
bisection.

References:
    V. Nguyen, S. Schulze, M. A. Osborne. Bayesian optimization for iterative learning. NeurIPS 2020,
    section 3.3 and algorithm 1.
"""

import torch
from torch import Tensor

from botorch_costly.numerics.cholesky import sure_root

FIXED_NOISE = 1e-7  # s^2, a share of the variance


def log_condition(covariance: Tensor) -> Tensor:  # shapes: (*batch, n, n), (*batch,)
    """Return the natural logarithm of the condition number of a covariance with the fixed noise."""
    values = torch.linalg.eigvalsh(covariance).clamp_min(0)
    noise = FIXED_NOISE * covariance.diagonal(dim1=-2, dim2=-1).amax(-1)
    return (values[..., -1] + noise).log() - (values[..., 0] + noise).log()


def most_uncertain(
    covariance: Tensor,  # of the n rows of the data and then of the m candidates, (n + m, n + m)
    rows: int,
    noise: Tensor | float,
    most: int,
    largest_log_condition: float,
) -> Tensor:  # shape: (k,)
    """Return the indices of the candidates to add, in order; none if the data exceed the bound."""
    order = _by_uncertainty(covariance, rows, noise, min(most, covariance.shape[-1] - rows))
    data = torch.arange(rows, device=covariance.device)

    def fits(number: int) -> bool:
        enlarged = torch.cat([data, rows + order[:number]])
        kept = covariance.index_select(0, enlarged).index_select(1, enlarged)
        return bool(log_condition(kept) <= largest_log_condition)

    least, greatest = 0, len(order)
    probe = min(1, greatest)  # late in a run the data are at the bound, and nothing fits
    while least < greatest:
        least, greatest = (probe, greatest) if fits(probe) else (least, probe - 1)
        probe = (least + greatest + 1) // 2
    return order[:least]


def _by_uncertainty(
    covariance: Tensor, rows: int, noise: Tensor | float, number: int
) -> Tensor:  # shape: (number,)
    """Return the candidates of largest predictive variance, each given those before it."""
    eye = torch.eye(rows, dtype=covariance.dtype, device=covariance.device)
    chol = sure_root(covariance[:rows, :rows] + noise * eye)
    columns = torch.linalg.solve_triangular(chol, covariance[:rows, rows:], upper=False)
    variance = covariance.diagonal()[rows:] - columns.square().sum(-2)
    order = torch.empty(0, dtype=torch.long, device=covariance.device)
    for _ in range(number):
        new = variance.argmax(keepdim=True)  # an index of shape (1,) is read without waiting
        order = torch.cat([order, new])
        row = covariance[rows:, rows:][new] - columns[:, new].mT @ columns
        row = row / (variance[new].clamp_min(0) + noise).sqrt()
        columns = torch.cat([columns, row])
        variance = (variance - row.squeeze(0).square()).index_fill(0, order, -torch.inf)
    return order
