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

from botorch_costly.device import is_near, moved
from botorch_costly.numerics.knowledge_gradient import mean_maximum, slopes, strata

OUTCOMES = (-2.0, -1.2, -0.6, 0.0, 0.6, 1.2, 2.0)  # bounds of the strata of this query
_AT_ONCE = 100_000  # numbers in a tensor that fits the cache of a CPU
_AT_ONCE_ELSEWHERE = 10_000_000


def lookahead_value(
    mean: Tensor,  # shape: (*batch, n)
    cov: Tensor,  # shape: (*batch, n, n)
    prior_cov: Tensor,  # shape: (*batch, n, n) or (n, n)
    slope: Tensor,  # rise of each mean by a query at each of c points, shape: (*batch, c, n)
    noise: float | Tensor,
    retained: float | Tensor,  # a, for one round, shape: (*batch,)
    effective_horizon: Tensor,  # shape: (*batch,)
    price: Tensor,  # shape: (*batch,)
    counts: Tensor | None = None,  # bool, shape: (*batch, c)
) -> Tensor:  # shape: (*batch, c)
    """Return the expected gain of the next query's net value by a query at each of ``c`` points.

    Where ``counts`` is false the result may be any number; on a CPU it then takes no time.

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
    aged = keep**2 * cov.unsqueeze(-3) + prior_share.unsqueeze(-3)  # (*batch, 1, n, n)
    # The last of the c + 1 queries changes nothing.
    rise = keep * torch.cat([slope, torch.zeros_like(slope[..., :1, :])], -2).unsqueeze(-1)
    if counts is not None:
        counts = torch.cat([counts, torch.ones_like(counts[..., :1])], -1)
    level = keep * mean[..., None, :, None] + rise * outcomes  # (*batch, c + 1, n, z)
    terms = noise, effective_horizon, price, counts
    net = _net_value(level, aged - rise * rise.mT, *terms) @ masses
    return net[..., :-1] - net[..., -1:]


def _net_value(
    mean: Tensor,  # shape: (*batch, c, n, z)
    cov: Tensor,  # shape: (*batch, c, n, n)
    noise: float | Tensor,
    effective_horizon: Tensor,  # shape: (*batch,)
    price: Tensor,  # shape: (*batch,)
    counts: Tensor | None = None,  # shape: (*batch, c)
) -> Tensor:  # shape: (*batch, c, z)
    """Return the value of the best query above its price, 0 if no query is worth it."""
    slope = slopes(
        cov, cov.diagonal(dim1=-2, dim2=-1), noise
    ).mT  # of line j by a query at y: (j, y)
    gain = _expected_maximum(mean, slope, counts)  # (*batch, c, z, y)
    gain = (gain - mean.amax(-2).unsqueeze(-1)).clamp_min(0)
    rows, lasting = mean.mT, effective_horizon[..., None, None, None]
    value = (rows + lasting * gain).amax(-1) - rows.amax(-1)
    return (value - price[..., None, None]).clamp_min(0)


def _expected_maximum(
    mean: Tensor,  # shape: (*batch, n, z)
    slope: Tensor,  # shape: (*batch, n, y)
    counts: Tensor | None,  # shape: (*batch,)
) -> Tensor:  # shape: (*batch, z, y)
    """Return the expected maximum of ``n`` means in ``z`` cases after a query at each of ``y`` points."""
    shape, (n, z, y) = mean.shape[:-2], (*mean.shape[-2:], slope.shape[-1])
    mean, slope = mean.reshape(-1, n, z, 1), slope.reshape(-1, n, 1, y)
    if counts is None or not is_near(mean):  # another device would have to be waited for
        return _in_chunks(mean, slope, z * y).view(*shape, z, y)
    which = counts.flatten().nonzero().squeeze(-1)
    maxima = mean.new_zeros(len(mean), z * y)
    maxima.index_copy_(0, which, _in_chunks(mean[which], slope[which], z * y))
    return maxima.view(*shape, z, y)


def _in_chunks(
    mean: Tensor,  # shape: (b, n, z, 1)
    slope: Tensor,  # shape: (b, n, 1, y)
    cases: int,  # z y
) -> Tensor:  # shape: (b, z y)
    """Return the expected maxima, from tensors that fit the cache of a CPU."""
    n = mean.shape[1]
    size = max((_AT_ONCE if is_near(mean) else _AT_ONCE_ELSEWHERE) // (n * cases), 1)
    z, y = mean.shape[2], slope.shape[3]
    wide = [
        mean_maximum(*(part.expand(-1, n, z, y).reshape(-1, n, cases) for part in chunk))
        for chunk in zip(mean.split(size), slope.split(size), strict=True)
    ]
    return torch.cat(wide)
