"""The best query and the best play of a round, under a rule that weighs them against each other."""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.acquisition import TimeVaryingUCB
from botorch_costly.ask_tell.search import SpaceSearch
from botorch_costly.models import StreamingGP
from botorch_costly.models.snapshot import Snapshot
from botorch_costly.numerics.drift import retention_float
from botorch_costly.numerics.projection import Joint, Projection, prior_between, together
from botorch_costly.numerics.promise import promise_with_gradient
from botorch_costly.numerics.stationary import covariance
from botorch_costly.optim.smooth import SecondOrder, ValueAndGradient
from botorch_costly.query import Outlook, Prospect
from botorch_costly.query.weighing import (
    FORESEEN,
    Candidates,
    horizon_of,
    lines_among,
    rough_values,
    spread_bonus,
    weigh,
)

_CLIMBED = 8  # best candidates that a search climbs from
_MOST_SEEN = 128  # observed configurations that are candidates
_SAME_HILL = 0.8  # prior correlation with the best query, above which a point is on the same hill


class BestQuery(NamedTuple):
    """The most promising query with its prospect, and the play without a query."""

    query_at: Tensor  # encoded, shape: (d,)
    play: Tensor  # encoded, shape: (d,)
    mean: Tensor  # of the play, shape: ()
    variance: Tensor  # of the play, shape: ()
    prospect: Prospect


def best_query(belief: StreamingGP, search: SpaceSearch, now: int, outlook: Outlook) -> BestQuery:
    """Return the best query and the best play of a round after the first query.

    Mean and value of a query are approximated at the candidates of the search, in single precision. A
    search climbs both from their best candidates, in one batch. Its results and the best candidate on
    another hill are then compared accurately.

    Args:
        belief: Belief in prior units.
        search: Search over the space.
        now: Current round, from 0.
        outlook: Effective horizon and price of a query under the rule.
    """
    fixed, others = search.candidates(_seen(belief, now))
    if len(fixed) + len(others) <= FORESEEN:
        points = torch.cat([others, fixed])
        return best_among(belief, points, points, now, outlook)
    points = torch.cat([others, fixed]) if len(others) else fixed
    rough = belief.snapshot(now).to(torch.float32)
    here = rough.project(fixed, is_fixed=True)
    if len(others):
        here = together(rough.project(others), here)
    candidates, lines = _candidates(rough, here, _line_bonus(search, others), belief.noise)
    horizon, values = horizon_of(outlook, here.mean), rough_values(candidates, outlook)
    best = torch.stack([candidates.mean, values]).topk(min(_CLIMBED, len(points))).indices
    weights = torch.stack([torch.zeros_like(horizon), horizon])
    promise = _Promise(rough, lines, belief.noise, weights)
    peaks = search.climb(promise, points[best])
    hill = prior_between(rough.form, here.at(best[1:, 0]), here).squeeze(0)
    elsewhere = values.masked_fill(hill > _SAME_HILL * rough.form.prior, -torch.inf)
    picks = torch.cat([peaks, points[elsewhere.argmax().reshape(1)]])
    return best_among(belief, picks, points[candidates.lines], now, outlook)


def best_among(
    belief: StreamingGP, picks: Tensor, lines: Tensor, now: int, outlook: Outlook
) -> BestQuery:
    """Return the best query and the best play of a few points.

    Args:
        belief: Belief in prior units.
        picks: Possible points of query and play, encoded, ``k x d``; the first wins a tie.
        lines: Points over which the largest posterior mean is taken, and where the next query may be,
            encoded, ``n x d``.
        now: Current round, from 0.
        outlook: Effective horizon and price of a query under the rule.
    """
    n, points = len(lines), torch.cat([lines, picks])
    mean, cov, prior_cov = _joint(belief, points, now)
    index = torch.arange(len(points), device=mean.device)
    keep = retention_float(belief.forgetting, 1)
    terms = index[:n], cov[:n], prior_cov[:n, :n], belief.noise, keep
    weighed = weigh(Candidates(mean, cov.diagonal(), *terms), outlook, index[n:])
    # A scalar index would wait for the device, a tensor of indices does not.
    best = n + mean[n:].argmax(keepdim=True)
    query_at, play = points[torch.cat([weighed.pick.unsqueeze(0), best])]
    variance = cov.diagonal().clamp_min(0)[best].squeeze(0)
    return BestQuery(query_at, play, mean[best].squeeze(0), variance, weighed.prospect)


def best_play(belief: StreamingGP, search: SpaceSearch, now: int) -> Tensor:
    """Return the maximizer of the mean in a round after the first query, encoded, shape ``(d,)``."""
    candidates = torch.cat(search.candidates(_seen(belief, now))[::-1])
    mean = TimeVaryingUCB(belief, 0.0, now)
    with torch.no_grad():
        best = mean(candidates.unsqueeze(-2)).topk(min(_CLIMBED, len(candidates))).indices
    return search.climb(mean, candidates[best].unsqueeze(0)).squeeze(0)


class _Promise(NamedTuple):
    """The approximate value of a query as a smooth function, for a batch of effective horizons."""

    snapshot: Snapshot
    lines: Projection
    noise: float
    effective_horizon: Tensor  # shape: (b, 1)

    def __call__(self, X: Tensor, /) -> Tensor:
        """Return the values at ``b x n x 1 x d``, shape ``(b, n)``."""
        return self.with_gradient(X)(X.squeeze(-2))[0]

    def with_gradient(self, like: Tensor, *, sign: float = 1.0) -> ValueAndGradient:
        """Return the function with its gradient, in single precision."""
        form, retained = self.snapshot.form, self.snapshot.retained
        promise = promise_with_gradient(
            form, self.lines, retained, self.noise, self.effective_horizon
        )

        def value_and_gradient(X: Tensor) -> tuple[Tensor, Tensor]:
            value, gradient = promise(X.to(form.rows))
            return sign * value.to(like), sign * gradient.to(like)

        return value_and_gradient

    @property
    def second_order(self) -> SecondOrder | None:
        """None: there is no Hessian."""
        return None


def _seen(belief: StreamingGP, now: int) -> Tensor:
    """Return the configurations observed, encoded, ``(m, d)``; if they are many, recent good ones."""
    near = belief.near
    if len(near) > _MOST_SEEN:
        rewards = near[:, -1] - near[:, -1].mean()
        score = rewards * belief.near_weights(now).sqrt()
        near = near[score.topk(_MOST_SEEN).indices]
    return near[:, :-2]


def _line_bonus(search: SpaceSearch, others: Tensor) -> Tensor:
    """Return the ``bonus`` of the candidates for ``lines_among``, others first, ``(c,)``."""
    last = search.order.new_full(others.shape[:1], len(search.order))
    return spread_bonus(torch.cat([last, search.order]), others.shape[-1])


def _candidates(
    rough: Snapshot, here: Projection, bonus: Tensor, noise: float
) -> tuple[Candidates, Projection]:
    """Return the posterior at all candidates, for approximate values, and the projected lines."""
    form, retained = rough.form, rough.retained
    explained = retained**2 * here.explained
    mean, variance = retained * here.mean, (form.prior - explained).clamp_min(rough.least_variance)
    index = lines_among(mean, variance, bonus, form.rows.shape[-1])
    lines = here.at(index)
    prior_cov = prior_between(form, lines, here)
    cov = torch.addmm(prior_cov, lines.projected, here.projected.mT, alpha=-(retained**2))
    keep = 1.0  # not read by an approximate value
    return Candidates(mean, variance, index, cov, prior_cov[:, index], noise, keep), lines


def _joint(belief: StreamingGP, points: Tensor, now: int) -> Joint:
    """Return the joint moments at points of the space in a round."""
    if belief.num_rows:
        return belief.snapshot(now).joint(points)
    prior_cov = covariance(belief.kernel, points, points)
    return Joint(torch.zeros_like(prior_cov[0]), prior_cov, prior_cov)
