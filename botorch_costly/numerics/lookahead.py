r"""The value of a query for the next query, by one-step lookahead of the knowledge gradient.

A query that finds a promising region makes later queries there more valuable, and one that answers a
question leaves less to learn for the next. The knowledge gradient of a single query counts neither. With
the price ``p`` of a query,

    lookahead(x) = E_z [max_y value(y | outcome z at x) - p]^+  -  [max_y value(y | no query) - p]^+

is the gain by a query at ``x`` in the expected net value of the best query one round later. Until then
the belief relaxes: ``mean <- a mean, cov <- a^2 cov + (1 - a^2) prior_cov``. The value of a query is

    value(y) = mean(y) - max mean + effective horizon KG(y).

Both queries and the best point are among ``n`` points. Expectations are sums over strata, more for the
next query than for this one, because the gains of the next one lie in the tails.

References:
    - D. Ginsbourger, R. Le Riche. Towards Gaussian process-based optimization with finite time horizon.
      mODa 9, 2010.
    - J. González, M. Osborne, N. D. Lawrence. GLASSES: relieving the myopia of Bayesian optimisation.
      AISTATS 2016. Both without prices and drift.
"""

import torch
from torch import Tensor

from botorch_costly.device import moved
from botorch_costly.numerics.knowledge_gradient import rough_rise, slopes, strata

OUTCOMES = (-2.0, -1.2, -0.6, 0.0, 0.6, 1.2, 2.0)  # bounds of the strata of this query
_AT_ONCE = 2_000_000  # numbers in a chunk; larger ones are limited by memory bandwidth


def lookahead_value(
    mean: Tensor,  # shape: (*batch, n)
    cov: Tensor,  # shape: (*batch, n, n)
    prior_cov: Tensor,  # shape: (*batch, n, n) or (n, n)
    slope: Tensor,  # rise of each mean by a query at each of c points, shape: (*batch, c, n)
    noise: float | Tensor,
    retained: float | Tensor,  # a, for one round, shape: (*batch,)
    effective_horizon: Tensor,  # shape: (*batch,)
    price: Tensor,  # shape: (*batch,)
) -> Tensor:  # shape: (*batch, c)
    """Return the expected gain of the next query's net value by a query at each of ``c`` points.

    Example:
        >>> import torch
        >>> mean, cov = torch.zeros(2), torch.eye(2)
        >>> slope = torch.eye(2)[:1]  # a query at the first point, without noise
        >>> number = torch.tensor
        >>> lookahead = lookahead_value(mean, cov, cov, slope, 0.0, 1.0, number(9.0), number(1.0))
        >>> round(lookahead.item(), 2)  # less is left to learn: only the second value is unknown
        -2.04
    """
    # A float stays a float: a tensor would be rounded to the precision of the means.
    keep = retained if isinstance(retained, float) else retained[..., None, None, None]
    new = 1 - retained**2
    prior_share = (new if isinstance(new, float) else new[..., None, None]) * prior_cov
    outcomes, masses = (moved(tensor, mean) for tensor in strata(OUTCOMES))
    terms = noise, effective_horizon, price

    def after(slope: Tensor) -> Tensor:  # (*batch, c, n) -> (*batch, c, z)
        means = mean[..., None, None, :] + slope.unsqueeze(-2) * outcomes.unsqueeze(-1)
        covs = cov.unsqueeze(-3) - slope.unsqueeze(-1) * slope.unsqueeze(-2)  # (*batch, c, n, n)
        return _net_value(keep * means, keep**2 * covs + prior_share.unsqueeze(-3), *terms)

    numbers = cov.numel() * len(outcomes)  # for each of the c points
    size = max(_AT_ONCE // max(numbers, 1), 1)
    queried = torch.cat([after(chunk) for chunk in slope.split(size, -2)], -2)
    covs = keep**2 * cov.unsqueeze(-3) + prior_share.unsqueeze(-3)
    waiting = _net_value(keep * mean[..., None, None, :], covs, *terms)
    return (queried * masses).sum(-1) - waiting.squeeze(-1)


def _net_value(
    mean: Tensor,  # shape: (*batch, c, z, n)
    cov: Tensor,  # shape: (*batch, c, n, n)
    noise: float | Tensor,
    effective_horizon: Tensor,  # shape: (*batch,)
    price: Tensor,  # shape: (*batch,)
) -> Tensor:  # shape: (*batch, c, z)
    """Return the value of the best query above its price, 0 if no query is worth it."""
    best = mean.amax(-1, keepdim=True)
    slope = slopes(cov, cov.diagonal(dim1=-2, dim2=-1), noise).unsqueeze(-3)
    gain = rough_rise(mean.unsqueeze(-2), slope)
    value = (mean - best + effective_horizon[..., None, None, None] * gain).amax(-1)
    return (value - price[..., None, None]).clamp_min(0)
