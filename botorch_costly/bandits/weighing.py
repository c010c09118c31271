"""The inputs of a query rule for a bandit: the arm about to be played, its rivals, and a prospect.

All other arms are rivals. For a rule with an outlook the candidate is the arm with the best mean, and the
prospect is that of the arm where a query is worth most.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.bandits.strategy import Advice, ArmBelief
from botorch_costly.query.rule import Comparison, Outlook, Prospect
from botorch_costly.query.weighing import FORESEEN, Candidates, best_values, rough_values, weigh


class ArmProposal(NamedTuple):
    """The arms that a round plays with and without a query, and the comparison for the rule."""

    query_at: Tensor  # long, shape: (m,)
    play_unqueried: Tensor  # long, shape: (m,)
    comparison: Comparison


def arm_proposal(
    advice: Advice, outlook: Outlook | None, beta: float, *, plays_mean: bool, chooses: bool
) -> ArmProposal:
    """Return the arms that a round may play in each of ``m`` trials, and the comparison for the rule.

    Args:
        advice: Advice of the strategy.
        outlook: Outlook of the query rule, if it has one.
        beta: Parameter of the round's confidence bounds.
        plays_mean: Whether a round without a query plays the arm with the best mean.
        chooses: Whether a rule with an outlook queries the arm where a query is worth most, or the
            strategy's arm.
    """
    belief = advice.belief
    best = belief.mean.argmax(-1)
    query_at, prospect, candidate = advice.arm, None, advice.arm
    if outlook is not None:
        query_at, prospect = _prospect(belief, None if chooses else advice.arm, outlook)
        candidate = best
    unqueried = best if plays_mean or outlook is not None else advice.arm
    return ArmProposal(query_at, unqueried, _comparison(belief, candidate, beta, prospect))


def _comparison(
    belief: ArmBelief, candidate: Tensor, beta: float, prospect: Prospect | None
) -> Comparison:
    arm = candidate[:, None]
    variance = belief.cov.diagonal(dim1=-2, dim2=-1)
    row = belief.cov.gather(-2, arm[..., None].expand(-1, 1, belief.mean.shape[-1]))
    return Comparison(
        mean=belief.mean.gather(-1, arm).squeeze(-1),
        variance=variance.gather(-1, arm).squeeze(-1),
        rival_mean=belief.mean,
        rival_variance=variance,
        rival_covariance=row.squeeze(-2),
        exists=torch.ones_like(variance, dtype=torch.bool).scatter(-1, arm, False),
        beta=torch.full_like(belief.noise, beta),
        prospect=prospect,
    )


def _prospect(belief: ArmBelief, only: Tensor | None, outlook: Outlook) -> tuple[Tensor, Prospect]:
    """Return the arm where a query is worth most, or ``only``, and its prospect.

    The computation is in units of the noise, so that its variance is 1 in every trial.
    """
    unit = belief.noise.sqrt()
    mean = belief.mean / unit[:, None]
    cov, prior_cov = (matrix / belief.noise[:, None, None] for matrix in belief[1:3])
    variance, keep = cov.diagonal(dim1=-2, dim2=-1), (1 - belief.forgetting).sqrt()
    arms = torch.arange(mean.shape[-1], device=mean.device).expand_as(mean)
    candidates = Candidates(mean, variance, arms, cov, prior_cov, 1.0, keep)
    price = torch.as_tensor(outlook.price, dtype=mean.dtype, device=mean.device) / unit
    if only is not None:
        picks = only[:, None]
    elif mean.shape[-1] <= FORESEEN:
        picks = arms
    else:
        picks = best_values(rough_values(candidates, outlook))
    weighed = weigh(candidates, outlook._replace(price=price), picks)
    return weighed.pick, Prospect(*(unit * torch.as_tensor(term) for term in weighed.prospect))
