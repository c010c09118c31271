"""The proposal of a round on a grid, on which the query rule then decides."""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.device import is_near
from botorch_costly.models import DriftingGrid
from botorch_costly.optim import chain_local_maxima, highest
from botorch_costly.query import Comparison, Progress
from botorch_costly.query.weighing import TIE
from botorch_costly.simulation.policies import GridPolicy
from botorch_costly.simulation.prospect import grid_prospect

SEEN = -1  # in place of an opening, for trials that have queried


class Ground(NamedTuple):
    """Which points of the domain are within the bandwidth of each other."""

    near: Tensor  # bool: within the bandwidth, shape: (n, n)
    isolated: Tensor  # bool: whether some point is beyond the bandwidth, shape: (n,)

    @classmethod
    def from_points(cls, points: Tensor, bandwidth: float) -> "Ground":
        """Return which of the ``points``, ``(n, d)``, are within ``bandwidth`` of each other."""
        # The expansion of the square would cancel the digits that decide a tie.
        exact = "donot_use_mm_for_euclid_dist"
        near = torch.cdist(points, points, compute_mode=exact) <= bandwidth
        return cls(near, ~near.all(-1))


class GridProposal(NamedTuple):
    """Points that a round plays with and without a query, and the comparison for the query rule."""

    query_at: Tensor  # index of a point, shape: (m,)
    play_unqueried: Tensor  # index of a point, shape: (m,)
    comparison: Comparison


def grid_proposal(
    policy: GridPolicy,
    belief: DriftingGrid,
    ground: Ground,
    progress: Progress,
    beta: float,
    opening: Tensor | None = None,  # shape: (m,)
) -> GridProposal:
    """Return the proposal of a round for each of ``m`` trials.

    Args:
        policy: Policy that scores the points.
        belief: Posterior of the trials in this round; it is not changed.
        ground: Points of the domain that are near each other.
        progress: Progress of the trials.
        beta: Beta of the round's confidence bounds.
        opening: Index of the point that a trial plays until it has queried, and -1 from then on.
    """
    mean, variance = belief.mean, belief.variance
    outlook = policy.rule.outlook(progress)
    if outlook is None or policy.rule.needs_rivals:
        score = policy.score(mean, variance.sqrt(), beta)
        maxima = chain_local_maxima(score)
    if outlook is None:
        # Only a local maximum is a candidate: its neighbour, were it higher by a rounding error, would
        # otherwise become its rival.
        peak = highest(score.masked_fill(~maxima, -torch.inf), TIE)
        candidate = query_at = _opened(peak, opening)
        unqueried = highest(mean, TIE) if policy.unqueried_play == "mean" else query_at
        prospect = None
    else:
        candidate = unqueried = highest(mean, TIE)
        query_at, prospect = grid_prospect(belief, outlook, float(progress.forgetting))
        query_at = _opened(query_at, opening)
    index = candidate[:, None]
    if policy.rule.needs_rivals:
        exists = _rivals(policy, score, maxima, candidate, ground)
    else:
        exists = torch.zeros_like(mean, dtype=torch.bool)
    comparison = Comparison(
        mean=mean.gather(-1, index).squeeze(-1),
        variance=variance.gather(-1, index).squeeze(-1),
        rival_mean=mean,
        rival_variance=variance,
        rival_covariance=belief.covariance(candidate) if policy.joint else None,
        exists=exists,
        beta=mean.new_full(candidate.shape, beta),
        prospect=prospect,
    )
    return GridProposal(query_at, unqueried, comparison)


def _opened(index: Tensor, opening: Tensor | None) -> Tensor:
    return index if opening is None else torch.where(opening == SEEN, index, opening)


def _rivals(
    policy: GridPolicy, score: Tensor, maxima: Tensor, candidate: Tensor, ground: Ground
) -> Tensor:
    """Return which points are rivals: the other local maxima of the score, bool, ``(m, n)``."""
    exists = maxima.scatter(-1, candidate[:, None], False)
    if policy.merges:
        exists &= ~ground.near[candidate]
    if not policy.lone_rival:
        return exists
    lone = ~exists.any(-1) & ground.isolated[candidate]
    if is_near(lone) and not lone.any():  # on the CPU only: a GPU would have to be synchronized
        return exists
    rival = score.masked_fill(ground.near[candidate], -torch.inf).argmax(-1, keepdim=True)
    return exists.scatter_(-1, rival, exists.gather(-1, rival) | lone[:, None])
