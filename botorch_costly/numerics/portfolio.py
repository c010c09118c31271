r"""Greedy portfolios: configurations that together are good on all earlier tasks, most useful first.

Values of a task are normalized to regrets ``r = (max - value) / (max - min)`` in [0, 1] by their range
over the candidates. Each step takes the candidate that minimizes

    mean over tasks of min(best regret so far, r).

The reduction is submodular, so that the first ``k`` candidates achieve at least ``1 - 1/e`` of the
reduction by the best ``k``.

References:
    - M. Feurer, J. T. Springenberg, F. Hutter. Initializing Bayesian hyperparameter optimization via
      meta-learning. AAAI 2015.
    - F. Pfisterer, J. N. van Rijn, P. Probst, A. Müller, B. Bischl. Learning multiple defaults for
      machine learning algorithms. GECCO 2021.
    - G. L. Nemhauser, L. A. Wolsey, M. L. Fisher. An analysis of approximations for maximizing submodular
      set functions. Mathematical Programming 14, 1978.
"""

import torch
from torch import Tensor

from botorch_costly.errors import InvalidShapeError, check, check_count


def greedy_portfolio(values: Tensor, count: int) -> Tensor:
    """Return the indices of a portfolio, in the order in which they are to be evaluated.

    Once every task has its best candidate, those of least mean regret follow.

    Args:
        values: Larger is better, ``tasks x m``, such as posterior means at ``m`` candidates.
        count: Size of the portfolio, at most ``m``.

    Returns:
        Different indices, shape ``(count,)``; ties are broken by the lowest index.

    Raises:
        InvalidShapeError: If there is no task, or fewer candidates than ``count``.
        InvalidArgumentError: If a value is not finite, or ``count`` is not an integer >= 0.

    Example:
        >>> greedy_portfolio(torch.tensor([[1.0, 0.6, 0.0], [0.0, 0.7, 1.0]]), 3).tolist()
        [1, 0, 2]
    """
    count = check_count("count", count)
    fits = values.dim() == 2 and len(values) > 0 and values.shape[-1] >= count
    shape = tuple(values.shape)
    check(fits, "values", f"tasks x at least {count} candidates", shape, InvalidShapeError)
    check(bool(values.isfinite().all()), "values", "finite numbers", "NaN or infinite ones")
    regret = normalized_regret(values)
    best, penalty = torch.ones_like(regret[:, 0]), torch.zeros_like(regret[0])
    chosen = []
    for _ in range(count):
        after = torch.minimum(best.unsqueeze(-1), regret).mean(0) + penalty
        # Candidates that tie (once nothing is gained, all do) are ranked by their own mean regret.
        tied = after <= after.amin() + 1e-6
        pick = torch.where(tied, regret.mean(0), torch.inf).argmin()
        best = torch.minimum(best, regret[:, pick])
        penalty[pick] = torch.inf
        chosen.append(pick)
    return torch.stack(chosen) if chosen else torch.empty(0, dtype=torch.long, device=values.device)


def normalized_regret(values: Tensor) -> Tensor:
    """Return regrets normalized to [0, 1] by task, ``tasks x m``; 0 where a task is constant."""
    top, bottom = values.amax(-1, keepdim=True), values.amin(-1, keepdim=True)
    width = top - bottom
    return (top - values) / torch.where(width > 0, width, 1.0)
