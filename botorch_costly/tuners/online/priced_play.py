"""The best query and the best play of a round, under a rule that weighs one against the other."""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.acquisition import TimeVaryingKG, TimeVaryingUCB, at_round
from botorch_costly.ask_tell.search import SpaceSearch
from botorch_costly.models import StreamingGP
from botorch_costly.models.streaming import ProjectedRows
from botorch_costly.numerics.drift import retention_float
from botorch_costly.numerics.knowledge_gradient import slopes
from botorch_costly.numerics.lookahead import lookahead_value
from botorch_costly.numerics.stationary import covariance
from botorch_costly.query import Outlook, Prospect

_CLIMBED = 8  # best of the candidates, from which a search climbs
_MOST_LIKELY, _MILD = (
    32,
    0.5,
)  # best of the candidates by mean + 0.5 std: one of them may be the best
_NEXT_POINTS = 64  # where a query promises most, and where the next query may be,
_FORESEEN = 12  # and best of these, for which that is worked out
_TOLERANCE = 1e-4  # of a gain, in prior standard deviations: far less than queries cost
_LEAST_VARIANCE = 1e-12  # whose root still has a slope


class BestQuery(NamedTuple):
    """Where a query promises most and what, and what is played without one."""

    query_at: Tensor  # encoded, shape: (d,)
    play: Tensor  # encoded, shape: (d,)
    mean: Tensor  # of the play, shape: ()
    prospect: Prospect


def best_query(
    belief: StreamingGP, search: SpaceSearch, now: int, outlook: Outlook, beta: float
) -> BestQuery:
    """Weigh a query at some of the search, after the first.

    Among the points of a candidates, the highest means, upper bounds and promises of a query are sought
    roughly. From the best of each a search climbs, all three at once. What it finds and the most
    promising of the candidates are then weighed exactly.

    Args:
        belief: In units of the prior.
        search: Where the query may be.
        now: The round, from 0.
        outlook: How the rule weighs queries.
        beta: Of the upper bound.
    """
    candidates, today = search.candidates(belief.inputs[:, :-1]), torch.tensor(float(now))
    if len(candidates) <= _NEXT_POINTS:
        return weigh(belief, candidates, search.discretization(candidates), now, outlook)
    prepared = belief.project(at_round(candidates, today))
    likely = candidates[_likely(*belief.moments(prepared))]
    discretization = search.discretization(likely)
    rough = TimeVaryingKG(
        belief, discretization, now, outlook.effective_horizon, belief.noise, rough=True
    )
    bonus = candidates.new_tensor([0.0, beta**0.5, 0.0]).unsqueeze(-1)
    effective_horizon = candidates.new_tensor(
        [0.0, 0.0, float(outlook.effective_horizon)]
    ).unsqueeze(-1)

    def heights(rows: Tensor | ProjectedRows) -> Tensor:
        mean, variance, gain = rough.terms(rows)
        return mean + bonus * variance.clamp_min(_LEAST_VARIANCE).sqrt() + effective_horizon * gain

    with torch.no_grad():
        promises = heights(prepared)
    starts = candidates[promises.topk(_CLIMBED, -1).indices]
    peaks = search.climb(lambda X: heights(at_round(X.squeeze(-2), today)), starts)
    promising = candidates[promises[-1].topk(_NEXT_POINTS).indices]
    considered = torch.cat([peaks, promising]).unique(dim=0)
    return weigh(
        belief, considered, search.discretization(torch.cat([considered, likely])), now, outlook
    )


def weigh(
    belief: StreamingGP, considered: Tensor, discretization: Tensor, now: int, outlook: Outlook
) -> BestQuery:
    """Return the best query and the best play of the points considered, ``m x d``.

    Args:
        belief: In units of the prior.
        considered: Where query and play may be.
        discretization: Where the best may turn out to be.
        now: The round, from 0.
        outlook: How the rule weighs queries.
    """
    terms = outlook.effective_horizon, belief.noise
    worth = TimeVaryingKG(belief, discretization, now, *terms, tolerance=_TOLERANCE)
    with torch.no_grad():
        mean, gain = worth.mean_and_gain(considered)
    promises = mean + worth.effective_horizon.to(mean) * gain
    lookahead = torch.zeros_like(promises)
    if outlook.lookahead_weight > 0:
        some = promises.topk(min(_FORESEEN, len(promises))).indices
        found = _lookahead(belief, considered, some, now, outlook)
        lookahead = torch.full_like(lookahead, -torch.inf).index_copy(0, some, found)
    pick, best = (promises + outlook.lookahead_weight * lookahead).argmax(), mean.argmax()
    prospect = Prospect(mean[pick], gain[pick], lookahead[pick])
    return BestQuery(considered[pick], considered[best], mean[best], prospect)


def best_play(belief: StreamingGP, search: SpaceSearch, now: int) -> Tensor:
    """Return the maximizer of today's mean, shape ``(d,)``, after the first query."""
    candidates = search.candidates(belief.inputs[:, :-1])
    mean = TimeVaryingUCB(belief, 0.0, now)
    with torch.no_grad():
        best = mean(candidates.unsqueeze(-2)).topk(min(_CLIMBED, len(candidates))).indices
    return search.climb(mean, candidates[best].unsqueeze(0)).squeeze(0)


def _likely(mean: Tensor, variance: Tensor) -> Tensor:
    """Return which points may well be the best, and which of them is so by the mean, ``(k,)``."""
    hopes = (mean + _MILD * variance.sqrt()).topk(_MOST_LIKELY).indices
    return torch.cat([mean.argmax().reshape(1), hopes])


def _lookahead(
    belief: StreamingGP, points: Tensor, some: Tensor, now: int, outlook: Outlook
) -> Tensor:
    """Return what a query at some of the points would add to what one at any of them earns next."""
    with torch.no_grad():
        mean, cov = belief.mean_and_covariance(at_round(points, points.new_tensor(float(now))))
        slope = slopes(cov[some], cov.diagonal()[some], belief.noise)
        terms = (torch.as_tensor(v, dtype=torch.float64).to(mean) for v in outlook[:2])
        prior = covariance(belief.kernel, points, points)
        keep = retention_float(belief.forgetting, 1)
        return lookahead_value(mean, cov, prior, slope, belief.noise, keep, *terms)
