"""The value of a query on a grid, for many trials at once.

Gains and lookaheads are computed in single precision, whose error is far below their tolerance. But a
covariance is the difference of the prior and what queries have explained, and a slope divides its
rounding error by the standard deviation of an observation. So covariances and slopes of the few highest
peaks have double precision, and in approximate values that deviation has a lower bound.
"""

from functools import cache

import torch
from torch import Tensor

from botorch_costly.models import DriftingGrid
from botorch_costly.numerics.drift import retention_float
from botorch_costly.optim import chain_local_maxima
from botorch_costly.query import Outlook, Prospect
from botorch_costly.query.weighing import (
    PEAKS,
    SPREAD,
    Candidates,
    lines_among,
    rough_values,
    weigh,
)

_CANDIDATES = 100  # approximate number of grid points at which a query may be
_LIKELY = 50  # approximate number of grid points that may be lines


def grid_prospect(
    belief: DriftingGrid, outlook: Outlook, forgetting: float
) -> tuple[Tensor, Prospect]:
    """Return the best point to query in each of ``m`` trials, shape ``(m,)``, and its prospect.

    The candidates are about ``_CANDIDATES`` points; on grids much finer than the lengthscale, more points
    would not change the values. Accurate are the values at the highest local maxima.

    Args:
        belief: Posterior of ``m`` trials.
        outlook: Effective horizon, price and weight of the lookahead, from the query rule.
        forgetting: Forgetting rate of the model, per round.
    """
    step = max(belief.num_points // _CANDIDATES, 1)
    mean, variance = belief.mean[:, ::step], belief.variance[:, ::step]
    lines = lines_among(mean, variance, _bonus(mean.shape[-1], mean.device))
    cov = belief.covariance_on_sublattice(lines, step)
    places, keep = step * lines, retention_float(forgetting, 1)
    prior_cov = belief.prior_cov[places.unsqueeze(-1), places.unsqueeze(-2)].float()
    candidates = Candidates(mean, variance, lines, cov, prior_cov, belief.noise, keep)
    peaks = _peaks(rough_values(candidates, outlook)).contiguous()
    # Behind the lines; a repeated peak has its first place.
    picks = lines.shape[-1] + torch.searchsorted(peaks, peaks)
    weighed = weigh(_accurate(belief, candidates, peaks, step), outlook, picks)
    pick = peaks.gather(-1, weighed.pick.unsqueeze(-1) - lines.shape[-1])
    return step * pick.squeeze(-1), weighed.prospect


def _accurate(belief: DriftingGrid, candidates: Candidates, peaks: Tensor, step: int) -> Candidates:
    """Return the posterior at the lines and then the peaks, ``(m, k)``, in double precision."""
    number, index = candidates.lines.shape[-1], torch.cat([candidates.lines, peaks], -1)
    mean, variance = (term.gather(-1, index) for term in candidates[:2])
    cov = belief.covariance_among(step * index)[..., :number, :]
    lines = torch.arange(number, device=mean.device).expand_as(candidates.lines)
    return Candidates(mean, variance, lines, cov, *candidates[4:])


@cache
@torch.inference_mode(mode=False)  # the cached tensor must work outside of inference mode, too
def _bonus(number: int, device: torch.device) -> Tensor:
    """Return which of the candidates are lines in any case (infinity) or never (minus infinity)."""
    index = torch.arange(number, device=device)
    step = max(number // _LIKELY, 1)
    apart = step * max(number // (step * SPREAD), 1)
    bonus = torch.where(index % step == 0, 0.0, -torch.inf)
    return bonus.masked_fill(index % apart == apart // 2 // step * step, torch.inf)


def _peaks(values: Tensor) -> Tensor:
    """Return the highest local maxima in order, padded with the highest of them, ``(m, k)``."""
    heights = values.masked_fill(~chain_local_maxima(values), -torch.inf)
    top = heights.topk(min(PEAKS, values.shape[-1]), -1)
    highest = values.argmax(-1, keepdim=True)
    return torch.where(top.values.isfinite(), top.indices, highest).sort(-1).values
