"""The best query and the best play of a round, under a rule that weighs them against each other."""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.acquisition import TimeVaryingKG, TimeVaryingUCB, at_round
from botorch_costly.ask_tell.search import SpaceSearch
from botorch_costly.device import moved
from botorch_costly.models import StreamingGP
from botorch_costly.models.covariance import ProjectedRows
from botorch_costly.numerics.distinct_rows import sorted_rows
from botorch_costly.numerics.drift import retention_float
from botorch_costly.numerics.stationary import covariance
from botorch_costly.query import Outlook, Prospect
from botorch_costly.query.weighing import NEXT_POINTS, TOLERANCE, NextQuery, weigh

_CLIMBED = 8  # best candidates that a search climbs from
_LIKELY = 32  # best candidates by mean + _MILD std, one of which may be the optimum
_MILD = 0.5
_PROMISING = 64  # best candidates, at which the value of a query is computed exactly
_LEAST_VARIANCE = 1e-12  # its root still has a finite gradient


class BestQuery(NamedTuple):
    """The most promising query with its prospect, and the play without a query."""

    query_at: Tensor  # encoded, shape: (d,)
    play: Tensor  # encoded, shape: (d,)
    mean: Tensor  # mean of the play, shape: ()
    prospect: Prospect


def best_query(
    belief: StreamingGP, search: SpaceSearch, now: int, outlook: Outlook, beta: float
) -> BestQuery:
    """Return the best query and the best play of a round after the first query.

    Three scores of the candidates of the search are approximated: mean, upper bound, and promise of a
    query. A search climbs from the best candidates of each score, in one batch. Its results and the most
    promising candidates are then compared exactly.

    Args:
        belief: Belief in prior units.
        search: Search over the space.
        now: Current round, from 0.
        outlook: Effective horizon and price of a query under the rule.
        beta: Squared width of the upper bound, in standard deviations.
    """
    candidates, today = search.candidates(belief.near[:, :-2]), torch.tensor(float(now))
    if len(candidates) <= _PROMISING:
        return best_among(belief, candidates, search.discretization(candidates), now, outlook)
    prepared = belief.project(at_round(candidates, today))
    likely = candidates[_likely(*belief.mean_and_variance(prepared))]
    discretization = search.discretization(likely)
    horizon = outlook.effective_horizon
    rough = TimeVaryingKG(belief, discretization, now, horizon, belief.noise, rough=True)
    weights = torch.tensor([[0.0, beta**0.5, 0.0], [0.0, 0.0, float(horizon)]], dtype=torch.float64)
    bonus, effective_horizon = moved(weights, candidates).unsqueeze(-1)

    def heights(rows: Tensor | ProjectedRows) -> Tensor:
        mean, variance, gain = rough.terms(rows)
        return mean + bonus * variance.clamp_min(_LEAST_VARIANCE).sqrt() + effective_horizon * gain

    with torch.no_grad():
        promises = heights(prepared)
    starts = candidates[promises.topk(_CLIMBED, -1).indices]
    peaks = search.climb(lambda X: heights(at_round(X.squeeze(-2), today)), starts)
    promising = candidates[promises[-1].topk(_PROMISING).indices]
    considered = sorted_rows(torch.cat([peaks, promising]))
    discretization = search.discretization(torch.cat([considered.rows, likely]))
    return best_among(belief, considered.rows, discretization, now, outlook, considered.repeated)


def best_among(
    belief: StreamingGP,
    considered: Tensor,
    discretization: Tensor,
    now: int,
    outlook: Outlook,
    repeated: Tensor | None = None,
) -> BestQuery:
    """Return the best query and the best play of the points considered.

    Args:
        belief: Belief in prior units.
        considered: Possible points of query and play, encoded, ``m x d``; the first wins a tie.
        discretization: Points over which the largest posterior mean is taken, encoded, ``k x d``.
        now: Current round, from 0.
        outlook: Effective horizon and price of a query under the rule.
        repeated: Considered points to leave out, bool, ``m``; none if omitted.
    """
    terms = outlook.effective_horizon, belief.noise
    exact = TimeVaryingKG(belief, discretization, now, *terms, tolerance=TOLERANCE)
    with torch.no_grad():
        mean, gain = exact.mean_and_gain(considered)
    if repeated is not None:
        mean = mean.masked_fill(repeated, -torch.inf)

    def next_query(places: Tensor) -> NextQuery:
        """Return the belief about the most promising points, at which the next query may be as well."""
        promises = mean + moved(exact.effective_horizon, mean) * gain
        promising = promises.topk(min(NEXT_POINTS, len(promises))).indices
        return _next_query(belief, considered, places, promising, now)

    result = weigh(mean, gain, outlook, next_query)
    best = mean.argmax()
    # A scalar index would wait for the device, a tensor of indices does not.
    query_at, play = considered[torch.stack([result.pick, best])]
    return BestQuery(query_at, play, mean.amax(), result.prospect)


def best_play(belief: StreamingGP, search: SpaceSearch, now: int) -> Tensor:
    """Return the maximizer of the mean in a round after the first query, encoded, shape ``(d,)``."""
    candidates = search.candidates(belief.near[:, :-2])
    mean = TimeVaryingUCB(belief, 0.0, now)
    with torch.no_grad():
        best = mean(candidates.unsqueeze(-2)).topk(min(_CLIMBED, len(candidates))).indices
    return search.climb(mean, candidates[best].unsqueeze(0)).squeeze(0)


def _likely(mean: Tensor, variance: Tensor) -> Tensor:
    """Return the indices of the highest mean and of likely optima, shape ``(k,)``."""
    bounds = (mean + _MILD * variance.sqrt()).topk(_LIKELY).indices
    return torch.cat([mean.argmax().reshape(1), bounds])


def _next_query(
    belief: StreamingGP, points: Tensor, places: Tensor, indices: Tensor, now: int
) -> NextQuery:
    """Return the belief about the points at ``n`` indices and at ``k`` places."""
    num_places, others = len(places), points[indices]
    together = torch.cat([points[places], others])
    with torch.no_grad():
        mean, cov = belief.mean_and_covariance(at_round(together, points.new_full((), float(now))))
        return NextQuery(
            mean[num_places:],
            cov[num_places:, num_places:],
            covariance(belief.kernel, others, others),
            cov[:num_places, num_places:],
            cov.diagonal()[:num_places],
            belief.noise,
            retention_float(belief.forgetting, 1),
        )
