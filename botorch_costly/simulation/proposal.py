"""What a round on a grid might play, before its rule decides whether to query."""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.device import is_near
from botorch_costly.models import DriftingGrid
from botorch_costly.optim import chain_local_maxima, highest
from botorch_costly.query import Comparison, Progress
from botorch_costly.simulation.policies import GridPolicy
from botorch_costly.simulation.prospect import grid_prospect

SEEN = -1  # no opening: a trial has queried already
# Scores that differ by less are equal: rounding does not choose between the two sides of a query.
_TIE = 1e-6


class Ground(NamedTuple):
    """The points of the domain, and which of them are near each other."""

    near: Tensor  # bool: within the bandwidth, shape: (n, n)
    isolated: Tensor  # bool: whether any point is not near, shape: (n,)

    @classmethod
    def of(cls, points: Tensor, bandwidth: float) -> "Ground":
        """Return which points, ``(n, d)``, are within ``bandwidth`` of each other."""
        # Plain differences: the expansion of the square would lose the digits that decide a tie.
        exact = "donot_use_mm_for_euclid_dist"
        near = torch.cdist(points, points, compute_mode=exact) <= bandwidth
        return cls(near, ~near.all(-1))


class GridProposal(NamedTuple):
    """What a round plays with and without a query, and what the rule is asked about."""

    query_at: Tensor  # index of a point, shape: (m,)
    play_unqueried: Tensor  # index of a point, shape: (m,)
    comparison: Comparison


def grid_proposal(
    policy: GridPolicy,
    belief: DriftingGrid,
    ground: Ground,
    progress: Progress,
    beta: float,
    opening: Tensor | None = None,  # shape: (m,): where to begin, -1 where that is past
) -> GridProposal:
    """Return what a round might play in each of ``m`` trials.

    Args:
        policy: Where and whether to query.
        belief: Of the trials in this round; it is read only.
        ground: The points of the domain.
        progress: How far the trials have come.
        beta: Of the round's confidence bounds.
        opening: Where a trial begins that has not queried yet.
    """
    mean, variance = belief.mean, belief.variance
    score = policy.score(mean, variance.sqrt(), beta)
    maxima = chain_local_maxima(score)
    outlook = policy.rule.outlook(progress)
    if outlook is None:
        # The candidate is a local maximum itself: another one next to it, higher by a rounding, would
        # be its rival otherwise.
        peak = highest(score.masked_fill(~maxima, -torch.inf), _TIE)
        candidate = at = _opened(peak, opening)
        unqueried = highest(mean, _TIE) if policy.unqueried_play == "mean" else at
        prospect = None
    else:
        candidate = unqueried = highest(mean, _TIE)
        at, prospect = grid_prospect(belief, unqueried, outlook, float(progress.forgetting))
        at = _opened(at, opening)
    place = candidate[:, None]
    comparison = Comparison(
        mean=mean.gather(-1, place).squeeze(-1),
        variance=variance.gather(-1, place).squeeze(-1),
        rival_mean=mean,
        rival_variance=variance,
        rival_covariance=belief.covariance(candidate) if policy.joint else None,
        exists=_rivals(policy, score, maxima, candidate, ground),
        beta=mean.new_full(candidate.shape, beta),
        prospect=prospect,
    )
    return GridProposal(at, unqueried, comparison)


def _opened(at: Tensor, opening: Tensor | None) -> Tensor:
    return at if opening is None else torch.where(opening == SEEN, at, opening)


def _rivals(
    policy: GridPolicy, score: Tensor, maxima: Tensor, candidate: Tensor, ground: Ground
) -> Tensor:
    """Return which grid points are rivals: the other local maxima of the score, bool, ``(m, n)``."""
    if not policy.rule.needs_rivals:
        return torch.zeros_like(score, dtype=torch.bool)
    exists = maxima.scatter(-1, candidate[:, None], False)
    if not policy.lone_rival:
        return exists
    lone = ~exists.any(-1) & ground.isolated[candidate]
    if is_near(lone) and not lone.any():  # no other device is waited for
        return exists
    far = score.masked_fill(ground.near[candidate], -torch.inf).argmax(-1, keepdim=True)
    return exists.scatter_(-1, far, exists.gather(-1, far) | lone[:, None])
