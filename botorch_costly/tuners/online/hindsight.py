"""Whether tuning has paid: what the first configuration would have earned in place of those played.

Rewards are gains, and the gains of all configurations fall as a network learns. So one that was the
first one is not judged by what the others earn now, nor by a lead that it would have made up for. There
are two kinds of evidence.

    1. Its own rewards, at the beginning. Learning curves are about linear in the logarithm of the rounds,
       and are continued so. What the run earned in as many rewards later is compared as well: a good
       configuration earns most at the beginning, when there is most to gain.
    2. The belief about the rewards that it would have had in the rounds of the others.
"""

import math
from collections.abc import Sequence
from itertools import takewhile
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.models import StreamingGP
from botorch_costly.records import Observation
from botorch_costly.rewards.scale import RewardScale
from botorch_costly.tuners.online.learner import Learner

# Shares of what was earned that the first configuration would have missed
SURELY_AHEAD = 0.5
PERHAPS_AHEAD = 0.3  # down to here a few rewards at the beginning tell too little
_MORE = 1.2  # factor by which later rewards exceed the first ones of a bad start
_LASTING = 1.5  # factor by which they exceed late ones
_NOISES = 2.0  # standard deviations of the noise that a sum of rewards exceeds
_FALL = (
    5.0  # standard deviations of the noise; a deeper fall has been rolled back, or is made up for
)
_UPPER = 0.84  # quantile of a normal distribution, one standard deviation above its median
_ROWS = 300  # rewards of which the belief is asked


class Run(NamedTuple):
    """Finite rewards by interval, larger being better."""

    rewards: Sequence[float]  # length n
    rounds: Sequence[int]  # rounds trained at the end of each, ascending
    before: int  # rounds trained before the first of them
    first: int  # number of rewards at the beginning that the first configuration earned


def run_of(outcomes: Sequence[Observation], sign: float) -> Run:
    """Return the run of outcomes in order, at least one of them with a reward.

    Args:
        outcomes: All outcomes that are kept; those without a reward count as time that has passed.
        sign: 1, or -1 if smaller is better.
    """
    known = [o for o in outcomes if o.reward is not None]
    same = takewhile(lambda o: o.config == outcomes[0].config, outcomes)
    return Run(
        rewards=[sign * o.reward for o in known if o.reward is not None],
        rounds=[o.round + 1 for o in known],
        before=max((o.round + 1 for o in outcomes if o.round < known[0].round), default=0),
        first=sum(o.reward is not None for o in same),
    )


class Projection(NamedTuple):
    """The rewards of a run, compared with the learning curve of its first configuration."""

    earned: float  # sum of the rewards, without falls that were rolled back
    ahead: float  # share of it that the first configuration would have missed; NaN if not known
    later: bool  # whether others have earned clearly more later than it did at first


def projected(run: Run) -> Projection:
    """Compare the rewards of a run with the learning curve of its first configuration."""
    noise = _noise(run.rewards)
    levels, gains = _levels(run.rewards, _FALL * noise)
    first, earned = run.first, levels[-1]
    windows = [sum(gains[i : i + first]) for i in range(first, len(gains) - first + 1)]
    if not windows or first == 0 or earned <= 0:
        return Projection(earned, math.nan, later=False)
    own = sum(run.rewards[:first])
    steep = max(_slope(run, 0), _slope(run, first // 2))
    would = own + steep * math.log(run.rounds[-1] / run.rounds[first - 1])
    # Gains fade. Rewards of other kinds are as large late as early, also for equal configurations.
    late = run.rewards[len(run.rewards) // 2 :]
    lasting = first * max(sum(late) / len(late), 0.0)
    least = max(_MORE * own, _LASTING * lasting, _NOISES * math.sqrt(first) * noise)
    return Projection(earned, 1 - would / earned, later=max(windows) > least)


def surpassed(
    learner: Learner, points: Tensor, first: Tensor, intervals: Sequence[int], earned: float
) -> tuple[float, float]:
    """Return by how much the configurations played surpassed the first one, and how sure it is.

    Args:
        learner: Belief with at least one reward.
        points: Encoded configurations of the rewards, ``n x d``.
        first: Encoded first configuration, shape ``(d,)``.
        intervals: Intervals of the rewards, ascending.
        earned: Sum of the rewards.

    Returns:
        Expected sum of the differences, in units of the reward; probability that it exceeds a share of
        what was earned.
    """
    chosen = torch.linspace(0, len(points) - 1, min(_ROWS, len(points))).long()
    times = torch.tensor(intervals, dtype=points.dtype)[chosen].to(points).unsqueeze(-1)
    rows = points[chosen]
    both = torch.cat([rows, first.expand_as(rows)])
    belief = learner.rescaled_by(RewardScale())
    mean, deviation = _difference(belief, torch.cat([both, times.repeat(2, 1)], -1))
    times_rows = len(points) / len(chosen)
    mean, deviation = times_rows * mean, times_rows * deviation
    least = PERHAPS_AHEAD * max(earned, 0.0) / belief.scale
    sure = float(torch.special.ndtr(torch.tensor((mean - least) / deviation)))
    return mean * belief.scale, sure


def _difference(belief: StreamingGP, rows: Tensor) -> tuple[float, float]:
    """Return mean and deviation of the summed first half of rows minus the second, in prior units."""
    mean, cov = belief.in_prior_units().mean_and_covariance(rows)
    mean, cov, half = mean.double(), cov.double(), len(rows) // 2
    signs = torch.cat([mean.new_ones(half), -mean.new_ones(half)])
    variance = (signs @ cov @ signs).clamp_min(torch.finfo(torch.float32).eps)
    return float(signs @ mean), float(variance.sqrt())


def _noise(values: Sequence[float]) -> float:
    """Return the standard deviation of late values, by those above their median: falls are no noise."""
    late = torch.tensor(values[len(values) // 2 :], dtype=torch.float64)
    return float(late.quantile(_UPPER) - late.median())


def _levels(rewards: Sequence[float], margin: float) -> tuple[list[float], list[float]]:
    """Return the sum of the rewards after each, and by how much each raised the highest sum.

    A sum that falls by more than the margin is set to the highest.
    """
    levels, gains, highest = [0.0], list[float](), 0.0
    for reward in rewards:
        level = levels[-1] + reward
        if level < highest - margin:
            level = highest
        gains.append(max(level - highest, 0.0))
        highest = max(highest, level)
        levels.append(level)
    return levels, gains


def _slope(run: Run, begin: int) -> float:
    """Return the reward of the first configuration per unit of log-time, from one of its rewards on."""
    before = run.rounds[begin - 1] if begin else run.before
    span = math.log(run.rounds[run.first - 1] / max(before, 0.5))
    return sum(run.rewards[begin : run.first]) / span
