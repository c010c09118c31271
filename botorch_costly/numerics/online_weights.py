r"""Function gaps between earlier tasks and the target, the weights of the tasks and their total share.

With ``U, L = mean +- beta std`` of the target's posterior at the inputs of task ``i``,

    d_i = mean_j max(|y_ij - U_j|, |y_ij - L_j|)                           (5), Lemma 1
    w_i = exp(-eta sum_s d_is) / sum_k exp(-eta sum_s d_ks)                (7)
    nu_t = nu_{t-1} min(decay, (sum_i w_i d_i)^(-power))                   section 5.2

``(7)`` is follow-the-regularized-leader with an entropic regularizer for linear losses on the simplex.
Lemma 1 uses the maximum over ``j``, the paper's experiments the mean.

Convention: gaps are in units of the target's standard deviation. In the units of an accuracy all gaps
would be below 1, and ``nu`` would be ``decay^t`` for any tasks.

References:
    Z. Dai, Y. Chen, H. Yu, B. K. H. Low, P. Jaillet. On provably robust meta-Bayesian optimization.
    UAI 2022.
"""

import torch
from torch import Tensor

_FEW = 1e-3  # share of the largest weight below which a task is left out


def function_gaps(
    values: Tensor,  # values of the tasks, shape: (b, n)
    seen: Tensor,  # bool, false for padding, shape: (b, n)
    mean: Tensor,  # posterior mean of the target at the inputs of the tasks, shape: (b, n)
    std: Tensor,  # shape: (b, n)
    *,
    beta: float,  # factor of the standard deviation
    largest: bool = False,
) -> Tensor:  # shape: (b,)
    """Return upper bounds of the mean (or ``largest``) distance of each task from the target."""
    distance = (values - mean).abs() + beta * std  # max(|y - U|, |y - L|)
    if largest:
        return torch.where(seen, distance, 0.0).amax(-1)
    return torch.where(seen, distance, 0.0).sum(-1) / seen.sum(-1)


def entropic_weights(
    losses: Tensor,  # cumulative, shape: (*batch, b)
    rate: float,
) -> Tensor:  # shape: (*batch, b)
    """Return the weights (7) of the tasks."""
    return torch.softmax(-rate * losses, -1)


def without_small(weights: Tensor) -> Tensor:
    """Return weights, ``(b,)``, without those below a thousandth of the largest, with the sum 1."""
    kept = torch.where(weights >= _FEW * weights.max(), weights, 0.0)
    return kept / kept.sum()


def decayed(
    share: float,
    weights: Tensor,  # shape: (b,)
    gaps: Tensor,  # shape: (b,)
    *,
    decay: float,
    power: float,
) -> float:
    """Return the next total share ``nu`` of the tasks, which never increases."""
    gap = float((weights * gaps).sum())
    return share * (min(decay, gap**-power) if gap > 0 else decay)
