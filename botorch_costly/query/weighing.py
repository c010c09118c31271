r"""The priced decision: the point where a query is worth most, and the prospect of a query there.

For points ``x`` with posterior means and knowledge gradients, a query is worth

    mean(x) + H gain(x) + w lookahead(x),

with the effective horizon ``H`` and the lookahead weight ``w`` of the rule's outlook. Mean and gain are
given; the lookahead, the most expensive term, is computed for the ``FORESEEN`` points with the largest
``mean(x) + H gain(x)``. Among values that differ by less than ``TIE (1 + H)`` the first point is chosen,
so that rounding does not decide between the two sides of a symmetric hill.

Simulations on a grid and tuners on any search space choose their points in different ways: a grid
enumerates local maxima, a continuous search optimizes. They share the steps and tolerances here.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.device import moved
from botorch_costly.numerics.knowledge_gradient import slopes
from botorch_costly.numerics.lookahead import lookahead_value
from botorch_costly.query.rule import Outlook, Prospect

TOLERANCE = 1e-4  # of a gain, in prior standard deviations; far less than a query costs
FORESEEN = 12  # points whose lookahead is computed
NEXT_POINTS = 64  # approximate number of points where the next query may be
TIE = 1e-6  # difference of equal values, so that rounding does not choose a side of a query


class NextQuery(NamedTuple):
    """The posterior at ``n`` points where the next query may be, and at ``k`` points for this query.

    All tensors refer to the current round and are in prior units.
    """

    mean: Tensor  # of the n points, shape: (*batch, n)
    cov: Tensor  # shape: (*batch, n, n)
    prior_cov: Tensor  # shape: (*batch, n, n) or (n, n)
    cov_with: Tensor  # of the k points with the n points, shape: (*batch, k, n)
    variance: Tensor  # of the k points, shape: (*batch, k)
    noise: float | Tensor  # variance
    keep: float | Tensor  # factor by which a mean decays in a round, shape: (*batch,)


class Weighed(NamedTuple):
    """The point where a query is worth most, and the prospect of a query there."""

    pick: Tensor  # index of the point, long, shape: (*batch,)
    prospect: Prospect


def weigh(
    mean: Tensor,  # shape: (*batch, c)
    gain: Tensor,  # knowledge gradients, shape: (*batch, c)
    outlook: Outlook,
    next_query: Callable[[Tensor], NextQuery],
) -> Weighed:
    """Return the point where a query is worth most, and its prospect.

    Args:
        mean: Posterior means of ``c`` points, in prior units.
        gain: Knowledge gradients of the points.
        outlook: Weights of gain and lookahead, and the price of the next query.
        next_query: Function from indices of points, long, ``(*batch, k)``, to the posterior at these and
            at the points of the next query. Called only for a positive lookahead weight.

    Example:
        >>> mean, gain = torch.tensor([0.0, 0.1, 0.0]), torch.tensor([0.3, 0.1, 0.3])
        >>> weighed = weigh(mean, gain, Outlook(effective_horizon=10.0), lambda indices: None)
        >>> int(weighed.pick), round(float(weighed.prospect.gain), 2)  # 3 = 3 > 1.1: the first of equals
        (0, 0.3)
    """
    batch = mean.shape[:-1]
    effective_horizon = moved(torch.as_tensor(outlook.effective_horizon), mean).expand(batch)
    value = mean + effective_horizon.unsqueeze(-1) * gain
    lookahead = torch.zeros_like(value)
    if outlook.lookahead_weight > 0:
        indices = value.topk(min(FORESEEN, value.shape[-1]), -1).indices
        computed = _lookahead(next_query(indices), effective_horizon, outlook.price)
        lookahead = torch.full_like(value, -torch.inf).scatter(-1, indices, computed.to(value))
        value = value + outlook.lookahead_weight * lookahead
    tie = TIE * (1 + effective_horizon.unsqueeze(-1))
    equal = value >= value.amax(-1, keepdim=True) - tie
    pick = equal.to(torch.uint8).argmax(-1, keepdim=True)
    prospect = (term.gather(-1, pick).squeeze(-1) for term in (mean, gain, lookahead))
    return Weighed(pick.squeeze(-1), Prospect(*prospect))


def _lookahead(
    next_query: NextQuery,
    effective_horizon: Tensor,  # shape: (*batch,)
    price: Tensor | float,
) -> Tensor:  # shape: (*batch, k)
    """Return the expected increase of the next query's value by a query at each of ``k`` points."""
    mean, cov, prior_cov, cov_with, variance, noise, keep = next_query
    slope = slopes(cov_with, variance, noise)
    price = moved(torch.as_tensor(price, dtype=torch.float64), mean)
    terms = effective_horizon.to(mean), price.expand(effective_horizon.shape)
    return lookahead_value(mean, cov, prior_cov, slope, noise, keep, *terms)
