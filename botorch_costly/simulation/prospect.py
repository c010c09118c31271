"""The value of a query on a grid, for many trials at once.

Points are indices; "lines" are the points over which the largest mean is taken. Gains and lookaheads are
computed in single precision, whose error is far below their tolerance.
"""

import torch
from torch import Tensor

from botorch_costly.device import moved
from botorch_costly.models import DriftingGrid
from botorch_costly.numerics.drift import retention_float
from botorch_costly.numerics.knowledge_gradient import (
    FAR_OUTCOMES,
    knowledge_gradient,
    rough_rise,
    slopes,
)
from botorch_costly.optim import chain_local_maxima
from botorch_costly.query import Outlook, Prospect
from botorch_costly.query.weighing import NEXT_POINTS, TOLERANCE, NextQuery, weigh

_CANDIDATES = 200  # grid points at which the value of a query is approximated
_PEAKS = 4  # highest local maxima of the approximation, at which the value is computed exactly
_LINES = 100  # grid points over which the largest mean is taken


def grid_prospect(
    belief: DriftingGrid,
    best: Tensor,  # shape: (m,)
    outlook: Outlook,
    forgetting: float,
) -> tuple[Tensor, Prospect]:
    """Return the best point to query in each of ``m`` trials, shape ``(m,)``, and its prospect.

    The value of a query is approximated at many grid points, then computed exactly at the highest local
    maxima of the approximation and at the maximizer of the mean. The discretization of the knowledge
    gradient has about ``_LINES`` points; on grids much finer than the lengthscale, more points would not
    change it.

    Args:
        belief: Posterior of ``m`` trials.
        best: Maximizer of the posterior mean.
        outlook: Effective horizon, price and weight of the lookahead, from the query rule.
        forgetting: Forgetting rate of the model, per round.
    """
    lines, candidates = _evenly(belief, _LINES), _evenly(belief, _CANDIDATES)
    means, trials = belief.mean, len(best)
    effective_horizon = moved(torch.as_tensor(outlook.effective_horizon), means).expand(trials)
    level = means[:, lines].float()
    slope = slopes(*_moments(belief, candidates.expand(trials, -1), lines), belief.noise)
    rough = rough_rise(level.unsqueeze(1), slope, FAR_OUTCOMES).to(means)
    promises = means[:, candidates] + effective_horizon[:, None] * rough
    # Ascending, so that the first of several equal points on the grid is chosen.
    points = torch.cat([best[:, None], candidates[_peaks(promises)]], -1).sort(-1).values
    gain = knowledge_gradient(level, *_moments(belief, points, lines), belief.noise, TOLERANCE)

    def next_query(picks: Tensor) -> NextQuery:
        others = _evenly(belief, NEXT_POINTS)
        return NextQuery(
            means[:, others].float(),
            belief.covariance_between(others.expand(trials, -1), others).float(),
            belief.prior_cov[others][:, others].float(),
            *_moments(belief, points.gather(-1, picks), others),
            belief.noise,
            retention_float(forgetting, 1),
        )

    weighed = weigh(means.gather(-1, points), gain.to(means), outlook, next_query)
    return points.gather(-1, weighed.pick[:, None])[:, 0], weighed.prospect


def _moments(belief: DriftingGrid, points: Tensor, lines: Tensor) -> tuple[Tensor, Tensor]:
    """Return the covariances of points (``m x k``) with lines, ``(m, k, l)``, and their variances."""
    cov = belief.covariance_between(points, lines)
    return cov.float(), belief.variance.gather(-1, points).float()


def _peaks(promises: Tensor) -> Tensor:
    """Return the highest local maxima, padded with the highest of them, ``(m, k)``."""
    heights = promises.masked_fill(~chain_local_maxima(promises), -torch.inf)
    top = heights.topk(min(_PEAKS, promises.shape[-1]), -1)
    return torch.where(top.values.isfinite(), top.indices, promises.argmax(-1, keepdim=True))


def _evenly(belief: DriftingGrid, number: int) -> Tensor:
    """Return about ``number`` points, evenly spread over the grid."""
    n = belief.num_points
    return torch.arange(0, n, max(n // number, 1), device=belief.prior_cov.device)
