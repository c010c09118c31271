"""What a query rule is asked about a bandit: the arm about to be played, its rivals, and a prospect.

Every other arm is a rival. For a rule with an outlook the candidate is the arm with the best mean, and
the query is weighed at one of the arms that the strategy offers.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.bandits.strategy import Advice, ArmBelief
from botorch_costly.numerics.knowledge_gradient import knowledge_gradient
from botorch_costly.query.rule import Comparison, Outlook, Prospect
from botorch_costly.query.weighing import TOLERANCE, NextQuery, weigh


class ArmProposal(NamedTuple):
    """What a round plays with and without a query, and what the rule is asked about."""

    query_at: Tensor  # long, shape: (m,)
    play_unqueried: Tensor  # long, shape: (m,)
    comparison: Comparison


def arm_proposal(
    advice: Advice, outlook: Outlook | None, beta: float, *, plays_mean: bool, chooses: bool
) -> ArmProposal:
    """Return what a round might play in each of ``m`` trials.

    Args:
        advice: Of the strategy.
        outlook: Of the query rule, if it has one.
        beta: Of the round's confidence bounds.
        plays_mean: Whether a round without a query plays the arm with the best mean.
        chooses: Whether a rule with an outlook chooses where to query; the strategy's arm otherwise.
    """
    belief = advice.belief
    best = belief.mean.argmax(-1)
    at, prospect, candidate = advice.arm, None, advice.arm
    if outlook is not None:
        at, prospect = _prospect(belief, None if chooses else advice.arm, outlook)
        candidate = best
    unqueried = best if plays_mean or outlook is not None else advice.arm
    return ArmProposal(at, unqueried, _comparison(belief, candidate, beta, prospect))


def _comparison(
    belief: ArmBelief, candidate: Tensor, beta: float, prospect: Prospect | None
) -> Comparison:
    place = candidate[:, None]
    variance = belief.cov.diagonal(dim1=-2, dim2=-1)
    line = belief.cov.gather(-2, place[..., None].expand(-1, 1, belief.mean.shape[-1]))
    return Comparison(
        mean=belief.mean.gather(-1, place).squeeze(-1),
        variance=variance.gather(-1, place).squeeze(-1),
        rival_mean=belief.mean,
        rival_variance=variance,
        rival_covariance=line.squeeze(-2),
        exists=torch.ones_like(variance, dtype=torch.bool).scatter(-1, place, False),
        beta=torch.full_like(belief.noise, beta),
        prospect=prospect,
    )


def _prospect(belief: ArmBelief, only: Tensor | None, outlook: Outlook) -> tuple[Tensor, Prospect]:
    """Return where a query promises most, and what; of one arm alone if it is given.

    Beliefs are weighed in units of the noise, so that its variance is 1 in every trial.
    """
    unit = belief.noise.sqrt()
    mean = belief.mean / unit[:, None]
    cov, prior_cov = (part / belief.noise[:, None, None] for part in belief[1:3])
    n = mean.shape[-1]
    points = torch.arange(n, device=mean.device).expand_as(mean)
    points = points if only is None else only[:, None]
    lines = cov.gather(-2, points[..., None].expand(-1, -1, n))
    variance = cov.diagonal(dim1=-2, dim2=-1).gather(-1, points)
    gain = knowledge_gradient(mean, lines, variance, 1.0, TOLERANCE)
    keep = (1 - belief.forgetting).sqrt()

    def next_query(places: Tensor) -> NextQuery:
        chosen = places[..., None].expand(-1, -1, n)
        return NextQuery(
            mean, cov, prior_cov, lines.gather(-2, chosen), variance.gather(-1, places), 1.0, keep
        )

    price = torch.as_tensor(outlook.price, dtype=mean.dtype, device=mean.device) / unit
    found = weigh(mean.gather(-1, points), gain, outlook._replace(price=price), next_query)
    at = points.gather(-1, found.pick[:, None]).squeeze(-1)
    return at, Prospect(*(unit * torch.as_tensor(part) for part in found.prospect))
