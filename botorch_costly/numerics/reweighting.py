r"""Resampling of MCMC walkers when their density changes a little, by importance weights.

A walker at ``x`` has the weight ``p_new(x) / p_old(x)``, and is copied in proportion to it; later steps
of the walk separate the copies. If a few walkers would have most of the weight, the weights are tempered
by the first power 1/2, 1/4, ... whose effective sample size is at least half of the walkers; the walk has
to correct the remaining difference.

References:
    - N. Chopin. A sequential particle filter method for static models. Biometrika 89, 2002.
    - P. Del Moral, A. Doucet, A. Jasra. Sequential Monte Carlo samplers. JRSS B 68, 2006: tempering.
    - G. Kitagawa. Monte Carlo filter and smoother for non-Gaussian nonlinear state space models. JCGS 5,
      1996: systematic resampling.
"""

import torch
from torch import Tensor

_LEAST_SHARE = 0.5  # effective sample size, relative to the number of walkers


def resample(
    log_weight: Tensor,  # walkers without a finite weight are dropped, shape: (k,)
    coin: Tensor,  # uniform in [0, 1), shape: ()
) -> Tensor:  # shape: (k,)
    """Return the indices of the resampled walkers, ascending; all of them if no weight is finite."""
    index = torch.arange(len(log_weight), device=log_weight.device)
    valid = log_weight.isfinite()
    if not valid.any():
        return index
    log_weight = torch.where(valid, log_weight, -torch.inf)
    ends = _tempered(log_weight, _LEAST_SHARE * float(valid.sum())).cumsum(0)
    points = (index + coin) / len(index) * ends[-1]
    return torch.searchsorted(ends, points, right=True).clamp_max(index[valid][-1])


def _tempered(log_weight: Tensor, least_size: float) -> Tensor:
    """Return the weights of the largest power 1, 1/2, ... with at least this effective sample size."""
    while True:
        weight = log_weight.softmax(0)
        if 1 / float(weight.square().sum()) >= least_size:
            return weight
        log_weight = log_weight / 2
