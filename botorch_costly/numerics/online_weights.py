r"""How far earlier tasks are from the target, and what each is worth: gaps, weights and their share.

With ``U, L = mean +- beta std`` of the target's belief at the inputs of task ``i``,

    d_i = mean_j max(|y_ij - U_j|, |y_ij - L_j|)                           (5), Lemma 1
    w_i = exp(-eta sum_s d_is) / sum_k exp(-eta sum_s d_ks)                (7)
    nu_t = nu_{t-1} min(decay, (sum_i w_i d_i)^(-power))                   section 5.2

``(7)`` is what follow-the-regularized-leader plays against linear losses on the simplex, with the entropy
as regularizer. Lemma 1 has the maximum over ``j``; the paper's experiments have the mean.

Convention: gaps are in units of the target's standard deviation. In the units of an accuracy all gaps
are below 1, and ``nu`` would be ``decay^t`` whatever the tasks are.

References:
    Z. Dai, Y. Chen, H. Yu, B. K. H. Low, P. Jaillet. On provably robust meta-Bayesian optimization.
    UAI 2022.
"""

import torch
from torch import Tensor


def function_gaps(
    values: Tensor,  # of the tasks, shape: (b, n)
    seen: Tensor,  # bool, which of them are there, shape: (b, n)
    mean: Tensor,  # of the target at their inputs, shape: (b, n)
    std: Tensor,  # shape: (b, n)
    *,
    beta: float,  # factor of the standard deviation
    largest: bool = False,
) -> Tensor:  # shape: (b,)
    """Return upper bounds of how far the tasks are from the target, on average or at most."""
    # max(|y - U|, |y - L|) with U, L = mean +- beta std
    apart = (values - mean).abs() + beta * std
    if largest:
        return torch.where(seen, apart, 0.0).amax(-1)
    return torch.where(seen, apart, 0.0).sum(-1) / seen.sum(-1)


def entropic_weights(
    losses: Tensor,  # cumulated, shape: (*batch, b)
    rate: float,
) -> Tensor:  # shape: (*batch, b)
    """Return the weights that follow the regularized leader (7)."""
    return torch.softmax(-rate * losses, -1)


def decayed(
    share: float,
    weights: Tensor,  # shape: (b,)
    gaps: Tensor,  # shape: (b,)
    *,
    decay: float,
    power: float,
) -> float:
    """Return the next share of all tasks, which is never larger than the last."""
    gap = float((weights * gaps).sum())
    return share * (min(decay, gap**-power) if gap > 0 else decay)
