r"""Walkers that drew from one density are carried over to a density close to it, by their weights.

A walker at ``x`` has the weight ``p_new(x) / p_old(x)``, and is copied about so many times; steps of the
walk then tell the copies apart. Where few walkers would have all of the weight, a power of the weights is
taken, of 1/2, 1/4, ... the first by which half of the walkers count: what is left is up to the walk.

References:
    - N. Chopin. A sequential particle filter method for static models. Biometrika 89, 2002.
    - P. Del Moral, A. Doucet, A. Jasra. Sequential Monte Carlo samplers. JRSS B 68, 2006: tempering.
    - G. Kitagawa. Monte Carlo filter and smoother for non-Gaussian nonlinear state space models. JCGS 5,
      1996: systematic resampling.
"""

import torch
from torch import Tensor

_COUNTED = 0.5  # share of the walkers that the weights leave


def resample(
    log_weight: Tensor,  # finite, or the walker does not survive, shape: (k,)
    coin: Tensor,  # uniform in [0, 1), shape: ()
) -> Tensor:  # shape: (k,)
    """Return which walker each place goes to, in ascending order; all keep theirs if all are to go."""
    places = torch.arange(len(log_weight), device=log_weight.device)
    able = log_weight.isfinite()
    if not able.any():
        return places
    known = torch.where(able, log_weight, -torch.inf)
    ends = _tempered(known, _COUNTED * float(able.sum())).cumsum(0)
    teeth = (places + coin) / len(places) * ends[-1]
    return torch.searchsorted(ends, teeth, right=True).clamp_max(places[able][-1])


def _tempered(log_weight: Tensor, counted: float) -> Tensor:
    """Return weights by which so many walkers count, of the largest power 1, 1/2, 1/4, ..."""
    while True:
        weight = log_weight.softmax(0)
        if 1 / float(weight.square().sum()) >= counted:
            return weight
        log_weight = log_weight / 2
