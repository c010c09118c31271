r"""The Gittins index of a box with a Gaussian reward and a price for opening it (Pandora's box).

The index is the reward ``g`` at which the expected improvement over ``g`` equals the price:

    E max(y - g, 0) = price,    y ~ N(mean, sd^2).

With ``g = mean + sd v`` this is ``h(-v) = price / sd`` with the excess ``h`` of ``numerics.improvement``,
which decreases in ``v``. Because ``h(u) >= u``, the root is at least ``-price / sd``; because
``h(-v) <= phi(v)`` for ``v >= 0``, it is at most ``sqrt(-2 log(sqrt(2 pi) price / sd))`` or 0.

*Derivative.* ``dg = dmean + phi(v) / Phi(-v) dsd - dprice / Phi(-v)``.

References:
    - M. L. Weitzman. Optimal search for the best alternative. Econometrica 47, 1979.
    - Q. Xie, R. Astudillo, P. Frazier, Z. Scully, A. Terenin. Cost-aware Bayesian optimization via the
      Pandora's box Gittins index. NeurIPS 2024.
"""

import math

import torch
from torch import Tensor

from botorch_costly.numerics.improvement import log_excess, mills_ratio

_BISECTIONS = 60
_LEAST = 1e-300  # least price / sd, so that its logarithm is finite


def gittins_index(
    mean: Tensor,  # shape: (*batch,)
    sd: Tensor,  # > 0, shape: (*batch,)
    price: Tensor,  # > 0, shape: (*batch,)
) -> Tensor:  # shape: (*batch,)
    """Return the index by bisection in float64, with exact first derivatives."""
    mean, sd, price = torch.broadcast_tensors(mean, sd, price)
    v = _root((price / sd).detach().double()).to(mean)
    with torch.no_grad():
        ratio = 1 / mills_ratio(v)  # phi(v) / Phi(-v)
        by_price = 1 / torch.special.ndtr(-v).clamp_min(torch.finfo(v.dtype).tiny)  # 1 / Phi(-v)
    # The changes are zero; they carry the derivatives through the root, which bisection lacks.
    changes = ratio * (sd - sd.detach()) - by_price * (price - price.detach())
    return mean + sd.detach() * v + changes


@torch.no_grad()
def _root(wanted: Tensor) -> Tensor:
    """Return ``v`` with ``h(-v) = wanted``."""
    wanted = wanted.clamp_min(_LEAST)
    target = wanted.log()
    low = -wanted
    high = (-2 * (target + 0.5 * math.log(2 * math.pi))).clamp_min(0).sqrt()
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        above = log_excess(-middle) > target
        low, high = torch.where(above, middle, low), torch.where(above, high, middle)
    return (low + high) / 2
