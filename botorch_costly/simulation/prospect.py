"""What a query promises on a grid, and where it promises most."""

import torch
from torch import Tensor

from botorch_costly.models import DriftingGrid
from botorch_costly.numerics.drift import retention_float
from botorch_costly.numerics.knowledge_gradient import knowledge_gradient, rough_rise, slopes
from botorch_costly.numerics.lookahead import lookahead_value
from botorch_costly.optim import chain_local_maxima
from botorch_costly.query import Outlook, Prospect

_CANDIDATES = 200  # grid points at which a query is weighed roughly,
_PEAKS = 4  # and local maxima of that at which it is weighed exactly
_TOLERANCE = 1e-3  # of the knowledge gradient, in prior standard deviations
_LINES = 100  # grid points that may turn out to be the best
_NEXT_LINES = 34  # and those of them that the next query may be at
_TIE = 1e-6  # promises of a round that differ by less are equal: gains are of single precision


def grid_prospect(
    belief: DriftingGrid,
    best: Tensor,  # shape: (m,)
    outlook: Outlook,
    forgetting: float,
) -> tuple[Tensor, Prospect]:
    """Return where a query promises most, and what.

    What a query promises is worked out roughly at many grid points, then exactly at the highest local
    maxima of that and at the maximizer of the mean. The knowledge gradient is taken over about
    ``_LINES`` points, which on grids much finer than the lengthscale is that over all points, and in
    single precision, far finer than its tolerance.

    Args:
        belief: Of ``m`` trials.
        best: The maximizer of the mean.
        outlook: How the rule weighs what a query would earn.
        forgetting: As believed, per round.
    """
    lines, candidates = _evenly(belief, _LINES), _evenly(belief, _CANDIDATES)
    means, terms = belief.mean, (outlook.effective_horizon, outlook.price)
    effective_horizon, price = (
        torch.as_tensor(v, dtype=torch.float64).to(means).expand(len(best)) for v in terms
    )
    level = means[:, lines].float()
    slope = slopes(*_seen(belief, candidates.expand(len(best), -1), lines), belief.noise)
    rough = rough_rise(level.unsqueeze(1), slope).to(means)
    at = torch.cat(
        [
            best[:, None],
            candidates[_peaks(means[:, candidates] + effective_horizon[:, None] * rough)],
        ],
        -1,
    )
    seen = _seen(belief, at, lines)
    gain = knowledge_gradient(level, *seen, belief.noise, _TOLERANCE).to(means)
    mean = means.gather(-1, at)
    lookahead = torch.zeros_like(mean)
    if outlook.lookahead_weight > 0:
        keep = retention_float(forgetting, 1)
        lookahead = _lookahead(belief, means, at, effective_horizon, price, keep).to(mean)
    promise = mean + effective_horizon[:, None] * gain + outlook.lookahead_weight * lookahead
    pick = _first(at, promise, _TIE * (1 + effective_horizon[:, None]))
    prospect = Prospect(*(part.gather(-1, pick)[:, 0] for part in (mean, gain, lookahead)))
    return at.gather(-1, pick)[:, 0], prospect


def _first(at: Tensor, promise: Tensor, tie: Tensor) -> Tensor:
    """Return the place of the point that promises most, of equals the first on the grid, ``(m, 1)``."""
    good = promise >= promise.amax(-1, keepdim=True) - tie
    return at.masked_fill(~good, torch.iinfo(at.dtype).max).argmin(-1, keepdim=True)


def _seen(belief: DriftingGrid, at: Tensor, lines: Tensor) -> tuple[Tensor, Tensor]:
    """Return the covariances of points (``m x k``) with the lines, ``(m, k, l)``, and variances."""
    cov = belief.covariance_between(at, lines)
    return cov.float(), belief.variance.gather(-1, at).float()


def _peaks(promises: Tensor) -> Tensor:
    """Return the highest local maxima, the best of them again where there are few, ``(m, k)``."""
    heights = promises.masked_fill(~chain_local_maxima(promises), -torch.inf)
    found = heights.topk(min(_PEAKS, promises.shape[-1]), -1)
    return torch.where(found.values.isfinite(), found.indices, promises.argmax(-1, keepdim=True))


def _lookahead(
    belief: DriftingGrid,
    means: Tensor,
    at: Tensor,
    effective_horizon: Tensor,
    price: Tensor,
    keep: float,
) -> Tensor:
    """Return what the next query would earn more after a query at each point, ``(m, k)``."""
    points = _evenly(belief, _NEXT_LINES)
    everywhere = points.expand(len(at), -1)
    return lookahead_value(
        means[:, points].float(),
        belief.covariance_between(everywhere, points).float(),
        belief.prior_cov[points][:, points].float(),
        slopes(*_seen(belief, at, points), belief.noise),
        belief.noise,
        keep,
        effective_horizon.float(),
        price.float(),
    )


def _evenly(belief: DriftingGrid, number: int) -> Tensor:
    """Return about as many points, evenly spread over the grid."""
    n = belief.num_points
    return torch.arange(0, n, max(n // number, 1), device=belief.prior_cov.device)
