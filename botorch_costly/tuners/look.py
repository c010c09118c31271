"""The best look and the best play of a round, under a rule that weighs one against the other."""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.acquisition import TimeVaryingKG, TimeVaryingUCB, at_round
from botorch_costly.models import StreamingGP
from botorch_costly.models.streaming import Anchors
from botorch_costly.numerics.drift import retention_float
from botorch_costly.numerics.knowledge_gradient import slopes
from botorch_costly.numerics.next_look import option_of_next_look
from botorch_costly.numerics.stationary import covariance
from botorch_costly.query import Outlook, Prospect
from botorch_costly.tuners.domain import Domain

_CLIMBED = 8  # best of the field, from which a search climbs
_MOST_LIKELY, _MILD = 32, 0.5  # best of the field by mean + 0.5 std: one of them may be the best
_NEXT_POINTS = 64  # where a look promises most, and where the next look may be,
_FORESEEN = 12  # and best of these, for which that is worked out
_TOLERANCE = 1e-4  # of a gain, in prior standard deviations: far less than looks cost
_LEAST_VARIANCE = 1e-12  # whose root still has a slope


class BestLook(NamedTuple):
    """Where a look promises most and what, and what is played without one."""

    look_at: Tensor  # encoded, shape: (d,)
    play: Tensor  # encoded, shape: (d,)
    mean: Tensor  # of the play, shape: ()
    prospect: Prospect


def best_look(
    belief: StreamingGP, domain: Domain, now: int, outlook: Outlook, beta: float
) -> BestLook:
    """Weigh a look at some of the domain, after the first.

    Among the points of a field, the highest means, upper bounds and promises of a look are sought
    roughly. From the best of each a search climbs, all three at once. What it finds and the most
    promising of the field are then weighed exactly.

    Args:
        belief: In units of the prior.
        domain: Where the look may be.
        now: The round, from 0.
        outlook: How the rule weighs looks.
        beta: Of the upper bound.
    """
    field, today = domain.field(belief.inputs[:, :-1]), torch.tensor(float(now))
    if len(field) <= _NEXT_POINTS:
        return weigh(belief, field, domain.anchors(field), now, outlook)
    prepared = belief.anchor(at_round(field, today))
    likely = field[_likely(*belief.moments(prepared))]
    anchors = domain.anchors(likely)
    rough = TimeVaryingKG(belief, anchors, now, outlook.reach, belief.noise, rough=True)
    bonus = field.new_tensor([0.0, beta**0.5, 0.0]).unsqueeze(-1)
    reach = field.new_tensor([0.0, 0.0, float(outlook.reach)]).unsqueeze(-1)

    def heights(rows: Tensor | Anchors) -> Tensor:
        mean, variance, gain = rough.terms(rows)
        return mean + bonus * variance.clamp_min(_LEAST_VARIANCE).sqrt() + reach * gain

    with torch.no_grad():
        promises = heights(prepared)
    starts = field[promises.topk(_CLIMBED, -1).indices]
    peaks = domain.climb(lambda X: heights(at_round(X.squeeze(-2), today)), starts)
    promising = field[promises[-1].topk(_NEXT_POINTS).indices]
    considered = torch.cat([peaks, promising]).unique(dim=0)
    return weigh(belief, considered, domain.anchors(torch.cat([considered, likely])), now, outlook)


def weigh(
    belief: StreamingGP, considered: Tensor, anchors: Tensor, now: int, outlook: Outlook
) -> BestLook:
    """Return the best look and the best play of the points considered, ``m x d``.

    Args:
        belief: In units of the prior.
        considered: Where look and play may be.
        anchors: Where the best may turn out to be.
        now: The round, from 0.
        outlook: How the rule weighs looks.
    """
    terms = outlook.reach, belief.noise
    worth = TimeVaryingKG(belief, anchors, now, *terms, tolerance=_TOLERANCE)
    with torch.no_grad():
        mean, gain = worth.mean_and_gain(considered)
    promises = mean + worth.reach.to(mean) * gain
    option = torch.zeros_like(promises)
    if outlook.foresight > 0:
        some = promises.topk(min(_FORESEEN, len(promises))).indices
        found = _option(belief, considered, some, now, outlook)
        option = torch.full_like(option, -torch.inf).index_copy(0, some, found)
    pick, best = (promises + outlook.foresight * option).argmax(), mean.argmax()
    prospect = Prospect(mean[pick], gain[pick], option[pick])
    return BestLook(considered[pick], considered[best], mean[best], prospect)


def best_play(belief: StreamingGP, domain: Domain, now: int) -> Tensor:
    """Return the maximizer of today's mean, shape ``(d,)``, after the first look."""
    field = domain.field(belief.inputs[:, :-1])
    mean = TimeVaryingUCB(belief, 0.0, now)
    with torch.no_grad():
        best = mean(field.unsqueeze(-2)).topk(min(_CLIMBED, len(field))).indices
    return domain.climb(mean, field[best].unsqueeze(0)).squeeze(0)


def _likely(mean: Tensor, variance: Tensor) -> Tensor:
    """Return which points may well be the best, and which of them is so by the mean, ``(k,)``."""
    hopes = (mean + _MILD * variance.sqrt()).topk(_MOST_LIKELY).indices
    return torch.cat([mean.argmax().reshape(1), hopes])


def _option(
    belief: StreamingGP, points: Tensor, some: Tensor, now: int, outlook: Outlook
) -> Tensor:
    """Return what a look at some of the points would add to what one at any of them earns next."""
    with torch.no_grad():
        mean, cov = belief.mean_and_covariance(at_round(points, points.new_tensor(float(now))))
        slope = slopes(cov[some], cov.diagonal()[some], belief.noise)
        terms = (torch.as_tensor(v, dtype=torch.float64).to(mean) for v in outlook[:2])
        prior = covariance(belief.kernel, points, points)
        keep = retention_float(belief.forgetting, 1)
        return option_of_next_look(mean, cov, prior, slope, belief.noise, keep, *terms)
