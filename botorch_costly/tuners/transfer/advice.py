"""Advice among earlier studies: its units, which it lacks, and the trust in it without other studies.

The first complete proposal is evaluated first. Later evaluations near it are worth no more than those
that the target's values suggest, as far as was measured, and hostile advice costs many of them if it is
trusted as a study is: so without other studies, advice has a small share from the beginning. The
value of the proposal alone tells nothing of the rest of the space: a search that went on from a bad one
was behind a search with random first evaluations for long. So random evaluations follow it.
"""

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from botorch_costly.numerics.robust import Affine, estimate_scale, normal_scores
from botorch_costly.tuners.transfer.options import ByEvidence, Robustness

_LOG_ODDS = -3.0  # of advice alone; chosen on Branin's function and support vector machines
SPREAD = 2  # random evaluations after a proposal, chosen on both and Hartmann's function


def advice_in_units(advice: Tensor, measured: Sequence[Tensor]) -> Tensor:
    """Return the normal scores of advice, with the mean offset and scale of the other studies.

    Args:
        advice: Values of advice, of which the order counts, shape ``(n,)``.
        measured: Values of each other study; perhaps none.
    """
    scores = normal_scores(advice)
    if not measured:
        return scores
    offset = torch.stack([values.mean() for values in measured]).mean()
    spread = torch.stack([values.std(correction=0) for values in measured])
    spread = spread[spread > 0]
    scale = spread.log().mean().exp() if len(spread) else torch.ones_like(offset)
    return offset + scale * scores


def units_of_target(values: Tensor) -> Affine:
    """Return the median and the robust scale of the target's values, for studies without units."""
    return estimate_scale(values.tolist())


def cautious(robust: Robustness) -> Robustness:
    """Return the rule for the share of advice without other studies."""
    if isinstance(robust, ByEvidence):
        return replace(robust, log_odds=min(robust.log_odds, _LOG_ODDS))
    return robust
