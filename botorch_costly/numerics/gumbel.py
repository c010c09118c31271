"""Sampling without replacement in proportion to weights, from their logarithms (Gumbel-top-k trick).

With ``g = -log(-log(coin))`` and uniform coins, the index of the largest ``log_weight + g`` is a draw in
proportion to the weights, that of the second largest a draw from the remaining ones, and so on.

References:
    W. Kool, H. van Hoof, M. Welling. Stochastic beams and where to find them: the Gumbel-top-k trick for
    sampling sequences without replacement. ICML 2019.
"""

from torch import Tensor


def without_replacement(
    log_weight: Tensor,  # shape: (*batch, n), -inf for a weight of 0
    count: int,
    coins: Tensor,  # uniform in [0, 1), shape: (*batch, n)
) -> Tensor:  # shape: (*batch, min(count, n))
    """Return the drawn indices, in the order of the draws."""
    gumbel = -(-coins.log()).log()
    return (log_weight + gumbel).topk(min(count, log_weight.shape[-1])).indices
