"""Can tuning help this run? What its rewards say about that, in numbers and in words."""

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from botorch_costly.acquisition import at_round
from botorch_costly.ask_tell.ledger import Ledger
from botorch_costly.ask_tell.search import SpaceSearch
from botorch_costly.numerics.drift import retention
from botorch_costly.numerics.radial import ARMS
from botorch_costly.numerics.robust import normal_scores
from botorch_costly.numerics.signal import Explained, contrasts, explained
from botorch_costly.numerics.stationary import Stationary, covariance
from botorch_costly.records import Decision, Observation, Plain
from botorch_costly.rewards.scale import RewardScale
from botorch_costly.tuners.online.intervals import Intervals
from botorch_costly.tuners.online.learner import Learner
from botorch_costly.tuners.online.priced_play import best_play

FEWEST = 10  # rewards below which nothing is said
_LATEST = 300  # rewards that are gone through
_LENGTHSCALES = (0.5, 1.0, 2.0)  # times that of the belief
_ROUND_LENGTHS = (1, 2, 3, 5, 10, 20, 50)  # that are weighed, in current ones
_WORTHWHILE = 1.5  # times the information, for which rounds of another length are recommended
_SURE = 0.95  # probability
_LEVELS = 0.5  # share of the rewards that time explains, from which they look like levels
_RANDOM = 2 / 3  # of the queries that fail, or of the rewards that are negative: something is wrong


@dataclass(frozen=True)
class Diagnosis:
    """What the queries of a run tell about its configurations; ``str`` says it in words.

    Args:
        queries: Paid for so far.
        failed: Of these, how many had no finite reward.
        rewards: Finite ones among them; the latest 300 are gone through.
        negative: Share of the rewards that are negative, or positive where less is better.
        signal: Share of the variance of the rewards that configurations explain, in [0, 1]; NaN if
            it cannot be known, as are the next five.
        trend: Share that time alone explains, whatever is played.
        drift: Share of what configurations explain that is another one an interval later, in [0, 1].
        level_noise: Minus the correlation of the noise of neighbours, in [0, 0.5]; 0.5 where rewards are
            gains and the noise is that of the metric.
        nothing: Probability that configurations explain nothing.
        bits: Information on configurations that is remembered, per hyperparameter.
        longer: Rounds of so many times the length would be remembered best; 1 if these are fine.
        advantage: Of the best configuration known over that of the first interval (the start, or an
            arbitrary one), expected, in units of the reward.
        sure: Probability that it is better at all.
        constant: What all rewards are, if they are all alike.
        configurations: Different ones among those that were queried.
        told: Queries that were told, with or without a reward.
    """

    queries: int
    failed: int
    rewards: int
    negative: float = math.nan
    signal: float = math.nan
    trend: float = math.nan
    drift: float = math.nan
    level_noise: float = math.nan
    nothing: float = math.nan
    bits: float = math.nan
    longer: int = 1
    advantage: float = math.nan
    sure: float = math.nan
    constant: float | None = None
    configurations: int = 0
    told: int = 0

    @property
    def pays(self) -> bool | None:
        """Whether tuning pays as far as the queries tell; None if they do not."""
        if math.isnan(self.signal):
            return None
        return self.nothing < 0.5 and self.bits >= 1 and self.sure >= _SURE

    def __str__(self) -> str:
        return "\n".join([self._verdict(), *self._numbers(), *self._warnings()])

    def _verdict(self) -> str:
        if self.rewards < FEWEST:
            return f"Too early to say: {self.rewards} rewards, and {FEWEST} are the fewest."
        if self.constant is not None:
            return self._of_constant_rewards(self.constant)
        if self.configurations < 2:
            return "Nothing can be said: only one configuration has been queried."
        if self.nothing >= 0.5:
            return (
                "Tuning cannot help at this round length: configurations cannot be told apart. "
                + self._advice()
            )
        if self.bits < 1:
            return (
                "Tuning can hardly help: configurations differ, but too little is remembered of it. "
                + self._advice()
            )
        if self.sure < _SURE:
            return (
                "Tuning has found nothing better than the first configuration, which may be good."
            )
        if self.negative > _RANDOM:
            return "Tuning pays if the rewards have the right sign, which most of them deny."
        return "Tuning pays: a configuration is known that earns more than the first one."

    def _of_constant_rewards(self, constant: float) -> str:
        if constant == 0:
            return "Tuning cannot help: all rewards are 0, so the metric does not move."
        return (
            f"All rewards are {constant:g}: whatever is played does the same, or all of it is clipped, "
            "as gains of a network that every query finds ruined."
        )

    def _advice(self) -> str:
        if self.longer == 1:
            return "Validate on more examples, or keep what you have."
        return f"Rounds {self.longer} times as long, or more validation examples, would tell more."

    def _numbers(self) -> list[str]:
        if math.isnan(self.signal):
            return []
        return [
            f"Of the spread of {self.rewards} rewards configurations explain {self.signal:.0%} "
            f"(nothing with probability {self.nothing:.2f}), the progress of training {self.trend:.0%}.",
            f"Remembered are {self.bits:.1f} bits a hyperparameter; what is best changes by "
            f"{self.drift:.1%} an interval.",
            f"The best known is expected to earn {self.advantage:+.3g} an interval more than the first "
            f"configuration, and is better with a probability of {self.sure:.2f}.",
        ]

    def _warnings(self) -> list[str]:
        found, untold = [], self.queries - self.told
        if untold > _RANDOM * self.queries and self.queries >= FEWEST:
            found.append(
                f"{untold} of {self.queries} queries were never told: call tell after them."
            )
        if self.trend > _LEVELS and self.negative in (0.0, 1.0):
            found.append(
                f"The progress of training explains {self.trend:.0%} of the rewards, all of one sign: a "
                "loss or an accuracy as it is credits the latest configuration. Tell its gain "
                "(GainReward)."
            )
        if self.failed > _RANDOM * self.queries:
            found.append(f"Most queries fail ({self.failed} of {self.queries}): training diverges.")
        if self.rewards >= FEWEST and self.negative > _RANDOM:
            found.append(
                f"{self.negative:.0%} of the rewards are negative (positive, where less is better): if "
                "they are gains, the metric gets worse, or its sign is reversed."
            )
        return found


def diagnosis_of(
    ledger: Ledger[Decision, Observation],
    learner: Learner,
    search: SpaceSearch,
    intervals: Intervals,
    encode: Callable[[Mapping[str, Plain]], Tensor],
    sign: float,
) -> Diagnosis:
    """Return what can be said of a run.

    Args:
        ledger: Of the run.
        learner: What its queries taught.
        search: Where the best is sought.
        intervals: Of the run.
        encode: From configurations to rows of the unit cube.
        sign: 1, or -1 where less is better.
    """
    told = [o for o in ledger.outcomes if o.reward is not None]
    rewards = sign * torch.tensor([o.reward for o in told], dtype=torch.float64)
    found: dict[str, Any] = {}
    if told:
        points = torch.stack([encode(o.config) for o in told])
        when = [intervals.at(o.round).number for o in told]
        found = decompose(rewards, points, when, learner.model.kernel)
    if "signal" in found and ledger.first is not None:
        now = intervals.at(len(ledger)).number
        found |= advantage(learner, search, encode(ledger.first.config), now)
    found["told"] = len(ledger.outcomes)
    negative = float((rewards < 0).double().mean())
    return Diagnosis(ledger.queries, ledger.failed_queries, len(told), negative, **found)


def decompose(
    rewards: Tensor, points: Tensor, intervals: Sequence[int], kernel: Stationary
) -> dict[str, float | int]:
    """Return what explains the rewards: the fields of ``Diagnosis`` that they alone decide.

    Args:
        rewards: Finite, by interval, shape ``(n,)``.
        points: Encoded, ``n x d``.
        intervals: In which they were earned, ascending.
        kernel: Of the belief.

    Returns:
        Those that can be known: the rest needs rewards and configurations that differ.
    """
    values, points = rewards[-_LATEST:], points[-_LATEST:].double().cpu()
    different = len(points.unique(dim=0))
    if len(values) < FEWEST or different < 2:
        return {"configurations": different}
    if bool((values == values[0]).all()):
        return {"configurations": different, "constant": float(values[0])}
    times = torch.tensor(intervals[-_LATEST:], dtype=torch.float64)
    factors = (1.0,) if kernel.family == ARMS else _LENGTHSCALES
    one = torch.ones((), dtype=torch.float64)
    base = kernel.lengthscale.double().cpu()
    alike = [
        covariance(Stationary(kernel.family, base * factor, one), points, points)
        for factor in factors
    ]
    found = explained(normal_scores(values), torch.stack(alike), times)
    dim = 1 if kernel.family == ARMS else points.shape[-1]
    apart = contrasts(torch.stack(alike))[len(alike) // 2]
    moving = apart * retention(found.forgetting, (times.unsqueeze(-1) - times).abs())
    return {
        "configurations": different,
        "signal": float(found.signal),
        "trend": float(found.trend),
        "drift": float(found.forgetting),
        "level_noise": float(found.level_noise),
        "nothing": float(found.nothing),
        "bits": _bits(moving, _ratio(found)) / dim,
        "longer": _longer(found, times),
    }


def advantage(learner: Learner, search: SpaceSearch, first: Tensor, now: int) -> dict[str, float]:
    """Return by how much the best known configuration is believed better than the first one.

    How surely is a matter of the belief that decides, on ranks perhaps, but on all of them, for the
    first may be among the lowest; by how much is one of rewards.

    Args:
        learner: With a reward at least.
        search: Where the best is sought.
        first: Encoded, shape ``(d,)``.
        now: The current interval.
    """
    # Of a copy: where a search ends is where the next one starts, and the run goes on as if not
    # diagnosed.
    best = best_play(learner.belief, copy.copy(search), now)
    rows = at_round(torch.stack([best, first]), first.new_tensor(float(now)))
    surely = learner.rescaled_by(replace(learner.scale, winsorize_lower=0.0)).in_prior_units()
    mean, cov = surely.mean_and_covariance(rows)
    variance = (cov[0, 0] + cov[1, 1] - 2 * cov[0, 1]).clamp_min(torch.finfo(cov.dtype).tiny)
    plain = learner.rescaled_by(RewardScale(clip=math.inf))
    values, _ = plain.in_prior_units().mean_and_covariance(rows)
    return {
        "advantage": float(values[0] - values[1]) * plain.scale,
        "sure": float(torch.special.ndtr((mean[0] - mean[1]) / variance.sqrt())),
    }


def _ratio(found: Explained) -> float:
    """Return signal over noise."""
    return float(found.signal / (1 - found.signal - found.trend).clamp_min(0.01))


def _bits(moving: Tensor, ratio: float) -> float:
    """Return what the queries tell of the configurations, in bits."""
    eye = torch.eye(len(moving)).to(moving)
    return float(torch.logdet(eye + ratio * moving)) / 2 / math.log(2)


def _longer(found: Explained, times: Tensor) -> int:
    """Return how many times as long rounds should be to learn most, if that is worthwhile.

    The mean of ``k`` rounds has a k-th of the variance of white noise, and of noise of the level,
    which cancels in between, a k-th of that.
    """
    live = float(retention(found.forgetting, times[-1] - times).square().sum())
    power = 1 + 2 * float(found.level_noise)
    told = {
        k: live / k * math.log2(1 + _ratio(found) * k**power)
        for k in _ROUND_LENGTHS
        if live / k >= 1
    }
    best = max(told, key=lambda k: told[k])
    return best if told[best] > _WORTHWHILE * told[1] else 1
