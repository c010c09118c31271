r"""The priced decision: at which of some points a query promises most, and what it promises there.

Of points ``x`` with posterior means and knowledge gradients, a query promises

    mean(x) + H gain(x) + w lookahead(x),

with the effective horizon ``H`` and the lookahead weight ``w`` of the rule's outlook. Mean and gain are
given; the lookahead, which costs most, is worked out for the ``FORESEEN`` points that promise most
without it. Of promises that differ by less than ``TIE (1 + H)`` the first counts, so that rounding does
not choose between two sides of a hill.

A simulation on a grid and a tuner on any search space find their points each in their own way: a grid
has local maxima, in a cube a search climbs. What they do with the points is written here, and so is
how carefully they do it.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.device import moved
from botorch_costly.numerics.knowledge_gradient import slopes
from botorch_costly.numerics.lookahead import lookahead_value
from botorch_costly.query.rule import Outlook, Prospect

TOLERANCE = 1e-4  # of a gain, in prior standard deviations: far less than queries cost
FORESEEN = 12  # points, those that promise most, of which the lookahead is worked out
NEXT_POINTS = 64  # points, or about as many, at which the next query may be
TIE = 1e-6  # promises that differ by less are equal: gains on a grid are of single precision


class NextQuery(NamedTuple):
    """The belief about ``n`` points where the next query may be, and about ``k`` where this one may be.

    All of it is that of the current round, in units of the prior.
    """

    mean: Tensor  # of the n points, shape: (*batch, n)
    cov: Tensor  # shape: (*batch, n, n)
    prior_cov: Tensor  # shape: (*batch, n, n) or (n, n)
    cov_with: Tensor  # of the k points with the n points, shape: (*batch, k, n)
    variance: Tensor  # of the k points, shape: (*batch, k)
    noise: float | Tensor  # variance
    keep: float | Tensor  # factor by which a mean decays in a round, shape: (*batch,)


class Weighed(NamedTuple):
    """The point at which a query promises most, and what it promises there."""

    pick: Tensor  # place among the points, long, shape: (*batch,)
    prospect: Prospect


def weigh(
    mean: Tensor,  # shape: (*batch, c)
    gain: Tensor,  # knowledge gradients, shape: (*batch, c)
    outlook: Outlook,
    next_query: Callable[[Tensor], NextQuery],
) -> Weighed:
    """Return where a query promises most, and what.

    Args:
        mean: Posterior means of ``c`` points, in units of the prior.
        gain: Their knowledge gradients.
        outlook: How the rule weighs what a query would earn.
        next_query: From places among the points, long, ``(*batch, k)``, to the belief about these and
            about the points of the next query. It is called if the lookahead counts.

    Example:
        >>> mean, gain = torch.tensor([0.0, 0.1, 0.0]), torch.tensor([0.3, 0.1, 0.3])
        >>> found = weigh(mean, gain, Outlook(effective_horizon=10.0), lambda places: None)
        >>> int(found.pick), round(float(found.prospect.gain), 2)  # 3 = 3 > 1.1: the first of equals
        (0, 0.3)
    """
    batch = mean.shape[:-1]
    effective_horizon = moved(torch.as_tensor(outlook.effective_horizon), mean).expand(batch)
    promise = mean + effective_horizon.unsqueeze(-1) * gain
    lookahead = torch.zeros_like(promise)
    if outlook.lookahead_weight > 0:
        places = promise.topk(min(FORESEEN, promise.shape[-1]), -1).indices
        found = _lookahead(next_query(places), effective_horizon, outlook.price)
        lookahead = torch.full_like(promise, -torch.inf).scatter(-1, places, found.to(promise))
        promise = promise + outlook.lookahead_weight * lookahead
    tie = TIE * (1 + effective_horizon.unsqueeze(-1))
    equal = promise >= promise.amax(-1, keepdim=True) - tie
    pick = equal.to(torch.uint8).argmax(-1, keepdim=True)
    best = (part.gather(-1, pick).squeeze(-1) for part in (mean, gain, lookahead))
    return Weighed(pick.squeeze(-1), Prospect(*best))


def _lookahead(
    next_query: NextQuery,
    effective_horizon: Tensor,  # shape: (*batch,)
    price: Tensor | float,
) -> Tensor:  # shape: (*batch, k)
    """Return what the next query would earn more after a query at each of ``k`` points."""
    mean, cov, prior_cov, cov_with, variance, noise, keep = next_query
    slope = slopes(cov_with, variance, noise)
    price = moved(torch.as_tensor(price, dtype=torch.float64), mean)
    terms = effective_horizon.to(mean), price.expand(effective_horizon.shape)
    return lookahead_value(mean, cov, prior_cov, slope, noise, keep, *terms)
