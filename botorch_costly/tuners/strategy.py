"""One decision: what would be played, what else might be, and what the query rule says to that."""

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple

import torch
from botorch.acquisition import AcquisitionFunction
from torch import Tensor

from botorch_costly.acquisition import (
    BetaSchedule,
    TimeVaryingKG,
    TimeVaryingLogEI,
    TimeVaryingPI,
    TimeVaryingUCB,
    at_round,
    best_mean,
)
from botorch_costly.models import StreamingGP
from botorch_costly.numerics.drift import retention_float
from botorch_costly.numerics.knowledge_gradient import slopes
from botorch_costly.numerics.next_look import option_of_next_look
from botorch_costly.numerics.stationary import Stationary, covariance, coverage
from botorch_costly.query import Contest, Outlook, Progress, Prospect, QueryRule, Verdict
from botorch_costly.tuners.domain import Domain

AcquisitionName = Literal["ucb", "ei", "pi"]
BlindPlay = Literal["acquisition", "mean"]
RECENT = 30  # rounds whose worths of a look are kept
_MOST_CANDIDATES = 50  # contenders, best first, at which a look is weighed
_MOST_LIKELY, _MILD = 16, 0.5  # best of the spread by mean + 0.5 std, also weighed
_NEXT_POINTS = 64  # best of them and of the spread, at which the next look may be,
_FORESEEN = 12  # and best of these, for which that is worked out
_STARTS_FROM_SEEN = 10  # of the search for the maximizer of the mean


class Move(NamedTuple):
    """What a round plays, by whether it is looked at, and what the rule said."""

    look_at: Tensor  # encoded, shape: (d,)
    play_blind: Tensor  # encoded, shape: (d,)
    verdict: Verdict


class Strategy:
    """Decides on one round from a belief; of the past it knows what looks were worth lately.

    Args:
        domain: Where it may go.
        query: Whether to look.
        acquisition: ``"ucb"``, ``"ei"`` or ``"pi"``: where a round goes under a rule without an outlook.
        beta: Exploration by round.
        blind_play: What a round without a look plays under such a rule.
    """

    def __init__(
        self,
        domain: Domain,
        query: QueryRule,
        acquisition: AcquisitionName,
        beta: BetaSchedule,
        blind_play: BlindPlay,
    ) -> None:
        self._domain, self._query = domain, query
        self._acquisition, self._beta, self._blind_play = acquisition, beta, blind_play
        self._coverage: tuple[Stationary, float] | None = None
        self._worths: list[float] = []

    def decide(
        self, belief: StreamingGP, progress: Progress, may_look: bool, generator: torch.Generator
    ) -> Move:
        """Decide on a round.

        Args:
            belief: In units of the prior.
            progress: How far the run has come.
            may_look: Whether there is a budget left; without one the rule is still asked.
            generator: Source of starts and coins.
        """
        now, beta = progress.round - 1, self._beta(progress.round)
        acquisition = self._acquisition_at(belief, now, beta)
        if self._query.outlook(progress) is not None:
            return self._weigh(belief, progress, acquisition, beta, generator)
        points = self._domain.contenders(acquisition, self._query.needs_rivals, generator)
        contest = contest_of(belief, points, now, beta)
        verdict = self._query(contest, progress, generator)
        blind = not (bool(verdict.look) and may_look)
        play_blind = points[0]
        if blind and self._blind_play == "mean" and belief.num_rows > 0:
            play_blind = self._best_mean(belief, points, now)
        return Move(points[0], play_blind, verdict)

    def _weigh(
        self,
        belief: StreamingGP,
        progress: Progress,
        acquisition: AcquisitionFunction,
        beta: float,
        generator: torch.Generator,
    ) -> Move:
        """Decide by what a look would earn: the rule hears of the best look and of the best play."""
        now = progress.round - 1
        live, share = float(belief.remembered(now).sum()), self._coverage_of(belief.kernel)
        worths = torch.tensor([*self._worths, math.nan], dtype=torch.float64)
        progress = progress._replace(live=live, coverage=share, worths=worths)
        outlook = self._query.outlook(progress)
        assert outlook is not None
        points = self._domain.contenders(acquisition, True, generator)[:_MOST_CANDIDATES]
        look_at, play, best, prospect = self._best_look(belief, points, now, outlook)
        rivals = points[(points != play).any(-1)]
        contest = contest_of(belief, torch.cat([play.unsqueeze(0), rivals]), now, beta)
        # Look and play are compared as they were worked out together, to the last bit.
        contest = contest._replace(mean=best, prospect=prospect)
        verdict = self._query(contest, progress, generator)
        if verdict.worth is not None:
            self._worths = [*self._worths, float(verdict.worth)][-RECENT:]
        return Move(look_at, play, verdict)

    def _best_look(
        self, belief: StreamingGP, points: Tensor, now: int, outlook: Outlook
    ) -> tuple[Tensor, Tensor, Tensor, Prospect]:
        """Return where a look promises most, the maximizer of the mean, its mean, and the prospect."""
        play, known = points[:1], belief.num_rows > 0  # before that, every point is as good as any
        if known:
            play = self._best_mean(belief, points, now).unsqueeze(0)
            points = torch.cat([play, points, self._likely(belief, now)])
        anchors = self._domain.anchors(points)
        worth = TimeVaryingKG(belief, anchors, now, outlook.reach, belief.noise)
        considered = self._considered(worth, points) if known else play
        with torch.no_grad():
            mean, gain = worth.mean_and_gain(considered)
        promises = mean + worth.reach * gain
        option = torch.zeros_like(promises)
        if outlook.foresight > 0:
            some = promises.topk(min(_FORESEEN, len(promises))).indices
            found = _option(belief, considered, some, now, outlook)
            option = torch.full_like(option, -torch.inf).index_copy(0, some, found)
        pick = (promises + outlook.foresight * option).argmax()
        # The search for the best look may have found a better play.
        best = mean.argmax()
        prospect = Prospect(mean[pick], gain[pick], option[pick])
        return considered[pick], considered[best], mean[best], prospect

    def _considered(self, worth: TimeVaryingKG, points: Tensor) -> Tensor:
        """Return the first of the points, the best found from them, and where a look promises most."""
        everywhere = torch.cat([points, self._domain.spread()])
        with torch.no_grad():
            promises = worth(everywhere.unsqueeze(-2))
        promising = everywhere[promises.topk(min(_NEXT_POINTS, len(promises))).indices]
        found = self._domain.maximize(worth, promising).unsqueeze(0)
        return torch.cat([points[:1], found, promising]).unique(dim=0)

    def state_dict(self) -> dict[str, list[float]]:
        """Return what looks were worth in recent rounds."""
        return {"worths": list(self._worths)}

    def load_state_dict(self, state: Mapping[str, list[float]]) -> None:
        """Continue from ``state_dict``."""
        self._worths = list(state["worths"])

    def _acquisition_at(self, belief: StreamingGP, now: int, beta: float) -> AcquisitionFunction:
        if self._acquisition == "ucb" or not belief.num_rows:
            return TimeVaryingUCB(belief, beta, now)
        improvement = {"ei": TimeVaryingLogEI, "pi": TimeVaryingPI}[self._acquisition]
        return improvement(belief, best_mean(belief, belief.inputs[:, :-1], now), now)

    def _best_mean(self, belief: StreamingGP, points: Tensor, now: int) -> Tensor:
        """Return the maximizer of today's mean, searched from contenders, best seen and spread."""
        seen = belief.inputs[:, :-1]
        mean, _ = belief.mean_and_variance(at_round(seen, seen.new_tensor(float(now))))
        best = mean.topk(min(_STARTS_FROM_SEEN, len(mean))).indices
        starts = torch.cat([points, seen[best], self._domain.spread()])
        return self._domain.maximize(TimeVaryingUCB(belief, 0.0, now), starts)

    def _likely(self, belief: StreamingGP, now: int) -> Tensor:
        """Return points that may well be good, where the upper bound has no optimum but near which."""
        points = self._domain.spread()
        mean, variance = belief.mean_and_variance(at_round(points, points.new_tensor(float(now))))
        number = min(_MOST_LIKELY, len(points))
        return points[(mean + _MILD * variance.sqrt()).topk(number).indices]

    def _coverage_of(self, kernel: Stationary) -> float:
        """Return what a look tells of what tells configurations apart, computed once for a kernel."""
        if self._coverage is None or self._coverage[0] is not kernel:
            points = self._domain.spread()
            self._coverage = kernel, coverage(covariance(kernel, points, points))
        return self._coverage[1]


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


def contest_of(belief: StreamingGP, points: Tensor, now: int, beta: float) -> Contest:
    """Return the contest of the first of the points (``(1 + m) x d``) against the others."""
    # Each beside the incumbent: nobody needs the covariance of two rivals, and arms have many.
    pairs = torch.stack([points[:1].expand_as(points), points], 1)
    rows = at_round(pairs, points.new_tensor(float(now)))
    with torch.no_grad():
        mean, cov = belief.mean_and_covariance(rows)
    variance = cov[:, 1, 1].clamp_min(0)
    return Contest(
        mean=mean[0, 1],
        variance=variance[0],
        rival_mean=mean[1:, 1],
        rival_variance=variance[1:],
        rival_covariance=cov[1:, 0, 1],
        present=torch.ones_like(variance[1:], dtype=torch.bool),
        beta=mean.new_tensor(beta),
    )
