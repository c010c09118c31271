r"""What a query does for the next one.

Queries prepare each other: one that finds a promising region gains value by the queries that will climb
from there, and one that answers a question leaves less for the next. The knowledge gradient, which
ends with the query, counts neither. Of a query at ``x`` and the price ``p`` of a query,

    lookahead(x) = E_z [max_y value(y | query at x turned out z) - p]^+  -  [max_y value(y | wait) - p]^+

is what the best next query is expected to earn more if this one is taken, a round later, when the
belief has aged by ``mean <- a mean, cov <- a^2 cov + (1 - a^2) prior_cov``, and where

    value(y) = mean(y) - max mean + effective horizon KG(y).

Both queries are at some of ``n`` points, and the best is among these. Expectations are sums over strata:
few outcomes of this query, more of the next one, whose gains lie in the tails.

The idea is the one-step lookahead of a one-step policy, as in Ginsbourger & Le Riche, "Towards
Gaussian process-based optimization with finite time horizon", mODa 9, 2010, and González, Osborne &
Lawrence, "GLASSES", AISTATS 2016; here for queries that have a price and a world that drifts.
"""

import torch
from torch import Tensor

from botorch_costly.device import moved
from botorch_costly.numerics.knowledge_gradient import rough_rise, slopes, strata

OUTCOMES = (-2.0, -1.2, -0.6, 0.0, 0.6, 1.2, 2.0)  # of the query: between the strata
_AT_ONCE = 2_000_000  # numbers that are worked out together: more of them wait for memory


def lookahead_value(
    mean: Tensor,  # shape: (*batch, n)
    cov: Tensor,  # shape: (*batch, n, n)
    prior_cov: Tensor,  # shape: (*batch, n, n) or (n, n)
    slope: Tensor,  # shape: (*batch, c, n): how far a query at each of c points raises each mean
    noise: float | Tensor,
    retained: float | Tensor,  # a, for one round, shape: (*batch,)
    effective_horizon: Tensor,  # shape: (*batch,)
    price: Tensor,  # shape: (*batch,)
) -> Tensor:  # shape: (*batch, c)
    """Return what the next query is expected to earn more after a query at each of ``c`` points.

    Example:
        >>> import torch
        >>> mean, cov = torch.zeros(2), torch.eye(2)
        >>> slope = torch.eye(2)[:1]  # a query at the first point, without noise
        >>> number = torch.tensor
        >>> lookahead = lookahead_value(mean, cov, cov, slope, 0.0, 1.0, number(9.0), number(1.0))
        >>> round(lookahead.item(), 2)  # one of two unknowns is known now, the other is open
        -2.04
    """
    # A number stays one: as a tensor it would round in the precision of the means.
    keep = retained if isinstance(retained, float) else retained[..., None, None, None]
    new = 1 - retained**2
    fresh = (new if isinstance(new, float) else new[..., None, None]) * prior_cov
    outcomes, masses = (moved(part, mean) for part in strata(OUTCOMES))
    terms = noise, effective_horizon, price

    def after(slope: Tensor) -> Tensor:  # (*batch, c, n) -> (*batch, c, z)
        raised = mean[..., None, None, :] + slope.unsqueeze(-2) * outcomes.unsqueeze(-1)
        told = cov.unsqueeze(-3) - slope.unsqueeze(-1) * slope.unsqueeze(-2)  # (*batch, c, n, n)
        return _next_earns(keep * raised, keep**2 * told + fresh.unsqueeze(-3), *terms)

    numbers = cov.numel() * len(outcomes)  # of one of the c points
    some = max(_AT_ONCE // max(numbers, 1), 1)
    queried = torch.cat([after(part) for part in slope.split(some, -2)], -2)
    waiting = _next_earns(
        keep * mean[..., None, None, :],
        keep**2 * cov.unsqueeze(-3) + fresh.unsqueeze(-3),
        *terms,
    )
    return (queried * masses).sum(-1) - waiting.squeeze(-1)


def _next_earns(
    mean: Tensor,  # shape: (*batch, c, z, n)
    cov: Tensor,  # shape: (*batch, c, n, n)
    noise: float | Tensor,
    effective_horizon: Tensor,  # shape: (*batch,)
    price: Tensor,  # shape: (*batch,)
) -> Tensor:  # shape: (*batch, c, z)
    """Return what the best query at one of the points earns above its price, 0 if none does."""
    best = mean.amax(-1, keepdim=True)
    slope = slopes(cov, cov.diagonal(dim1=-2, dim2=-1), noise).unsqueeze(-3)
    gain = rough_rise(mean.unsqueeze(-2), slope)
    value = (mean - best + effective_horizon[..., None, None, None] * gain).amax(-1)
    return (value - price[..., None, None]).clamp_min(0)
