"""The points of a grid at which a query is weighed, in many trials at once.

Points are indices, lines the points that may turn out to be the best. Gains and lookaheads are worked
out in single precision, which is far finer than their tolerance.
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

_CANDIDATES = 200  # grid points at which a query is weighed roughly
_PEAKS = 4  # local maxima of that at which it is weighed exactly, the highest
_LINES = 100  # grid points that may turn out to be the best


def grid_prospect(
    belief: DriftingGrid,
    best: Tensor,  # shape: (m,)
    outlook: Outlook,
    forgetting: float,
) -> tuple[Tensor, Prospect]:
    """Return where a query promises most in each of ``m`` trials, shape ``(m,)``, and what.

    What a query promises is worked out roughly at many grid points, then exactly at the highest local
    maxima of that and at the maximizer of the mean. The knowledge gradient is taken over about
    ``_LINES`` points, which on grids much finer than the lengthscale is that over all points.

    Args:
        belief: Of ``m`` trials.
        best: The maximizer of the mean.
        outlook: How the rule weighs what a query would earn.
        forgetting: Rate as believed, per round.
    """
    lines, candidates = _evenly(belief, _LINES), _evenly(belief, _CANDIDATES)
    means, trials = belief.mean, len(best)
    effective_horizon = moved(torch.as_tensor(outlook.effective_horizon), means).expand(trials)
    level = means[:, lines].float()
    slope = slopes(*_seen(belief, candidates.expand(trials, -1), lines), belief.noise)
    rough = rough_rise(level.unsqueeze(1), slope, FAR_OUTCOMES).to(means)
    promises = means[:, candidates] + effective_horizon[:, None] * rough
    # In ascending order: of equal promises the first point on the grid counts.
    points = torch.cat([best[:, None], candidates[_peaks(promises)]], -1).sort(-1).values
    gain = knowledge_gradient(level, *_seen(belief, points, lines), belief.noise, TOLERANCE)

    def next_query(places: Tensor) -> NextQuery:
        others = _evenly(belief, NEXT_POINTS)
        return NextQuery(
            means[:, others].float(),
            belief.covariance_between(others.expand(trials, -1), others).float(),
            belief.prior_cov[others][:, others].float(),
            *_seen(belief, points.gather(-1, places), others),
            belief.noise,
            retention_float(forgetting, 1),
        )

    found = weigh(means.gather(-1, points), gain.to(means), outlook, next_query)
    return points.gather(-1, found.pick[:, None])[:, 0], found.prospect


def _seen(belief: DriftingGrid, points: Tensor, lines: Tensor) -> tuple[Tensor, Tensor]:
    """Return the covariances of points (``m x k``) with the lines, ``(m, k, l)``, and variances."""
    cov = belief.covariance_between(points, lines)
    return cov.float(), belief.variance.gather(-1, points).float()


def _peaks(promises: Tensor) -> Tensor:
    """Return the highest local maxima, the best of them again where there are few, ``(m, k)``."""
    heights = promises.masked_fill(~chain_local_maxima(promises), -torch.inf)
    found = heights.topk(min(_PEAKS, promises.shape[-1]), -1)
    return torch.where(found.values.isfinite(), found.indices, promises.argmax(-1, keepdim=True))


def _evenly(belief: DriftingGrid, number: int) -> Tensor:
    """Return about as many points, evenly spread over the grid."""
    n = belief.num_points
    return torch.arange(0, n, max(n // number, 1), device=belief.prior_cov.device)
