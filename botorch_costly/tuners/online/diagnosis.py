"""A diagnosis from the rewards of a run: whether tuning can help, in numbers and in words."""

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
from botorch_costly.tuners.online.hindsight import (
    PERHAPS_AHEAD,
    SURELY_AHEAD,
    projected,
    run_of,
    surpassed,
)
from botorch_costly.tuners.online.intervals import Intervals
from botorch_costly.tuners.online.learner import Learner
from botorch_costly.tuners.online.priced_play import best_play

FEWEST = 10  # rewards; with fewer there is no verdict
_LATEST = 300  # rewards that are analysed
_LENGTHSCALES = (0.5, 1.0, 2.0)  # factors of the belief's lengthscale
_ROUND_LENGTHS = (1, 2, 3, 5, 10, 20, 50)  # compared lengths of a round, in current rounds
_WORTHWHILE = 1.5  # factor of information from which another round length is recommended
_SURE = 0.95  # probability
# Probabilities that configurations explain nothing from which chance may and does explain the rewards
_MAYBE_CHANCE, _CHANCE = 2 / 3, 0.8
_LEVELS = 0.5  # share of the variance explained by time from which rewards look like levels
_SUSPICIOUS = 2 / 3  # share of failed queries or negative rewards that suggests a mistake


@dataclass(frozen=True)
class Diagnosis:
    """A diagnosis of a run from its queries; ``str`` puts it into words.

    Args:
        queries: Number of queries so far.
        failed: Number of queries without a finite reward.
        rewards: Number of finite rewards; the latest 300 are analysed.
        negative: Share of negative rewards (positive, if smaller is better).
        signal: Share of the variance of the rewards that configurations explain, in [0, 1]. This field
            and the next five are NaN if they cannot be estimated.
        trend: Share of the variance that time alone explains, for any configuration.
        drift: Share of the signal that is replaced in each interval, in [0, 1].
        level_noise: Minus the correlation of the noise of neighbours, in [0, 0.5]; 0.5 if rewards are
            gains and the noise is that of the metric.
        nothing: Probability that configurations explain nothing.
        bits: Remembered information on configurations, per hyperparameter.
        longer: Factor of the round length that would yield the most information; 1 if the present length
            is fine.
        advantage: Expected advantage of the best known configuration over the first one (the start, or an
            arbitrary one), in units of the reward.
        sure: Probability that it is better than the first one.
        earned: Sum of the rewards, without falls that were rolled back or made up for.
        ahead: Share of it that the first configuration would have missed, if it had gone on as it began.
        later: Whether others have earned clearly more than it did at the beginning.
        surpassed: Expected sum by which the configurations played surpassed the first one, if it had been
            played in their rounds, in units of the reward.
        sure_surpassed: Probability that this sum is more than 30 % of what was earned.
        constant: Value of all rewards if they are equal.
        configurations: Number of different configurations among the queries.
        told: Number of queries that were told, with or without a reward.
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
    earned: float = math.nan
    ahead: float = math.nan
    later: bool = False
    surpassed: float = math.nan
    sure_surpassed: float = math.nan
    constant: float | None = None
    configurations: int = 0
    told: int = 0

    @property
    def pays(self) -> bool | None:
        """Whether a configuration is known that is better now; None if queries are too few."""
        if math.isnan(self.signal):
            return None
        return self.nothing < 0.5 and self.bits >= 1 and self.sure >= _SURE

    @property
    def has_paid(self) -> bool | None:
        """Whether the first configuration would have earned clearly less; None if it cannot be told."""
        if math.isnan(self.signal):
            return None
        by_its_curve = self.later and self.ahead > SURELY_AHEAD
        if self.nothing >= _MAYBE_CHANCE:
            return None if by_its_curve and self.nothing < _CHANCE else False
        if by_its_curve or self.sure_surpassed >= _SURE:
            return True
        return None if self.ahead > PERHAPS_AHEAD else False

    def __str__(self) -> str:
        return "\n".join([self._verdict(), *self._numbers(), *self._warnings()])

    def _verdict(self) -> str:
        if self.rewards < FEWEST:
            rewards = "1 reward" if self.rewards == 1 else f"{self.rewards} rewards"
            return f"Too early to say: {rewards}, and {FEWEST} are the fewest."
        if self.constant is not None:
            return self._constant_verdict(self.constant)
        if self.configurations < 2:
            return "Nothing can be said: only one configuration has been queried."
        if self.has_paid:
            return self._has_paid_verdict()
        if self.has_paid is None and not self.pays:
            return (
                "Whether tuning has paid cannot be told: the first configuration, as it began, may have "
                "become as good."
            )
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
                "Tuning has found nothing clearly better than the first configuration, which may be "
                "good."
            )
        if self.negative > _SUSPICIOUS:
            return "Tuning pays if the rewards have the right sign, which most of them deny."
        so_far = " So far it has not paid." if self.has_paid is False else ""
        return f"Tuning pays: a configuration is known that earns more than the first one.{so_far}"

    def _has_paid_verdict(self) -> str:
        if self.negative > _SUSPICIOUS:
            return "Tuning has paid if the rewards have the right sign, which most of them deny."
        better = " One that earns more now is known." if self.pays else ""
        return f"Tuning has paid: the first configuration alone would have earned less.{better}"

    def _constant_verdict(self, constant: float) -> str:
        if constant == 0:
            return "Tuning cannot help: all rewards are 0, so the metric does not move."
        return (
            f"All rewards are {constant:g}: all configurations do the same, or all rewards are clipped, "
            "such as the gains of a network that has diverged."
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
            f"The run remembers {self.bits:.1f} bits of information a hyperparameter (below 1 is too "
            f"little); what is best changes by {self.drift:.1%} an interval.",
            f"The best known is expected to earn {self.advantage:+.3g} an interval more than the first "
            f"configuration, and is better with a probability of {self.sure:.2f}.",
            *self._hindsight(),
        ]

    def _hindsight(self) -> list[str]:
        """Return lines on what the first configuration would have earned in the same rounds."""
        lines = []
        if not math.isnan(self.ahead):
            began = (1 - self.ahead) * self.earned
            lines.append(
                f"{self._but(began < self.earned)}The rewards sum to {self.earned:.3g}; those of the "
                f"first configuration, had it gone on as it began, to {began:.3g}."
            )
        if not math.isnan(self.surpassed):
            is_less = self.surpassed >= 0
            which, clearly = ("less", "clearly") if is_less else ("more", "and clearly less")
            lines.append(
                f"{self._but(is_less)}In the rounds of the others it would have earned "
                f"{abs(self.surpassed):.3g} {which} than they did, {clearly} with a probability of "
                f"{self.sure_surpassed:.2f}."
            )
        return lines

    def _but(self, is_less: bool) -> str:
        """Return a sentence before an estimate that denies the verdict, which rests on the other one."""
        return "By one estimate it has not paid. " if self.has_paid and not is_less else ""

    def _warnings(self) -> list[str]:
        messages, untold = [], self.queries - self.told
        if untold > _SUSPICIOUS * self.queries and self.queries >= FEWEST:
            messages.append(
                f"{untold} of {self.queries} queries were never told: call tell after them."
            )
        if self.trend > _LEVELS and self.negative in (0.0, 1.0):
            messages.append(
                f"The progress of training explains {self.trend:.0%} of the rewards, all of one sign: a "
                "plain loss or accuracy credits the latest configuration. Tell its gain (GainReward)."
            )
        if self.failed > _SUSPICIOUS * self.queries:
            messages.append(
                f"Most queries fail ({self.failed} of {self.queries}): training diverges."
            )
        if self.rewards >= FEWEST and self.negative > _SUSPICIOUS:
            messages.append(
                f"{self.negative:.0%} of the rewards are negative (positive, where less is better): if "
                "they are gains, the metric gets worse, or its sign is reversed."
            )
        return messages


def diagnosis_of(
    ledger: Ledger[Decision, Observation],
    learner: Learner,
    search: SpaceSearch,
    intervals: Intervals,
    encode: Callable[[Mapping[str, Plain]], Tensor],
    sign: float,
) -> Diagnosis:
    """Return the diagnosis of a run.

    Args:
        ledger: Ledger of the run.
        learner: Belief after its queries.
        search: Search over the space.
        intervals: Intervals of the run.
        encode: Function from configurations to rows of the unit cube.
        sign: 1, or -1 if smaller is better.
    """
    outcomes = [o for o in ledger.outcomes if o.reward is not None]
    rewards = sign * torch.tensor([o.reward for o in outcomes], dtype=torch.float64)
    fields: dict[str, Any] = {}
    if outcomes:
        points = torch.stack([encode(o.config) for o in outcomes])
        when = [intervals.at(o.round).number for o in outcomes]
        fields = decompose(rewards, points, when, learner.model.kernel)
    if "signal" in fields and ledger.first is not None:
        now, first = intervals.at(len(ledger)).number, encode(ledger.first.config)
        fields |= advantage(learner, search, first, now)
        found = projected(run_of(ledger.outcomes, sign))
        by, sure = surpassed(learner, points, first, when, found.earned)
        fields |= {**found._asdict(), "surpassed": by, "sure_surpassed": sure}
    fields["told"] = len(ledger.outcomes)
    negative = float((rewards < 0).double().mean())
    return Diagnosis(ledger.queries, ledger.failed_queries, len(outcomes), negative, **fields)


def decompose(
    rewards: Tensor, points: Tensor, intervals: Sequence[int], kernel: Stationary
) -> dict[str, float | int]:
    """Return the fields of ``Diagnosis`` that follow from the rewards alone.

    Args:
        rewards: Finite rewards by interval, shape ``(n,)``.
        points: Encoded configurations, ``n x d``.
        intervals: Intervals of the rewards, ascending.
        kernel: Kernel of the belief.

    Returns:
        Fields that can be estimated; most of them need rewards and configurations that differ.
    """
    values, points = rewards[-_LATEST:], points[-_LATEST:].double().cpu()
    different = len(points.unique(dim=0))
    if len(values) < FEWEST or different < 2:
        return {"configurations": different}
    if bool((values == values[0]).all()):
        return {"configurations": different, "constant": float(values[0])}
    times = torch.tensor(intervals[-_LATEST:], dtype=torch.float64)
    factors = (1.0,) if kernel.family == ARMS else _LENGTHSCALES
    unit = torch.ones((), dtype=torch.float64)
    base = kernel.lengthscale.double().cpu()
    covariances = torch.stack(
        [
            covariance(Stationary(kernel.family, base * factor, unit), points, points)
            for factor in factors
        ]
    )
    share = explained(normal_scores(values), covariances, times)
    dim = 1 if kernel.family == ARMS else points.shape[-1]
    differences = contrasts(covariances)[len(factors) // 2]
    moving = differences * retention(share.forgetting, (times.unsqueeze(-1) - times).abs())
    return {
        "configurations": different,
        "signal": float(share.signal),
        "trend": float(share.trend),
        "drift": float(share.forgetting),
        "level_noise": float(share.level_noise),
        "nothing": float(share.nothing),
        "bits": _bits(moving, _ratio(share)) / dim,
        "longer": _longer(share, times),
    }


def advantage(learner: Learner, search: SpaceSearch, first: Tensor, now: int) -> dict[str, float]:
    """Return the advantage of the best known configuration over the first, and its probability.

    The probability is that of the belief that decides, which may be about ranks, but without winsorizing,
    because the first configuration may be among the lowest. The advantage is in units of the reward.

    Args:
        learner: Belief with at least one reward.
        search: Search over the space.
        first: Encoded first configuration, shape ``(d,)``.
        now: Current interval.
    """
    # A copy, because a search starts where the last one ended, and a diagnosis must not change the run.
    best = best_play(learner.belief, copy.copy(search), now)
    rows = at_round(torch.stack([best, first]), first.new_tensor(float(now)))
    belief = learner.rescaled_by(replace(learner.scale, winsorize_lower=0.0)).in_prior_units()
    mean, cov = belief.mean_and_covariance(rows)
    variance = (cov[0, 0] + cov[1, 1] - 2 * cov[0, 1]).clamp_min(torch.finfo(cov.dtype).tiny)
    plain = learner.rescaled_by(RewardScale(clip=math.inf))
    values, _ = plain.in_prior_units().mean_and_covariance(rows)
    return {
        "advantage": float(values[0] - values[1]) * plain.scale,
        "sure": float(torch.special.ndtr((mean[0] - mean[1]) / variance.sqrt())),
    }


def _ratio(share: Explained) -> float:
    """Return signal over noise."""
    return float(share.signal / (1 - share.signal - share.trend).clamp_min(0.01))


def _bits(moving: Tensor, ratio: float) -> float:
    """Return the information of the queries on the configurations, in bits."""
    eye = torch.eye(len(moving)).to(moving)
    return float(torch.logdet(eye + ratio * moving)) / 2 / math.log(2)


def _longer(share: Explained, times: Tensor) -> int:
    """Return the factor of the round length that yields the most information; 1 if it is not worthwhile.

    In the mean of ``k`` rounds the variance of white noise is divided by ``k``, and that of noise of the
    level, most of which cancels, by ``k ** 2``.
    """
    effective = float(retention(share.forgetting, times[-1] - times).square().sum())
    power = 1 + 2 * float(share.level_noise)
    information = {
        k: effective / k * math.log2(1 + _ratio(share) * k**power)
        for k in _ROUND_LENGTHS
        if effective / k >= 1
    }
    best = max(information, key=lambda k: information[k])
    return best if information[best] > _WORTHWHILE * information[1] else 1
