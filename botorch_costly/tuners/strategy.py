"""One decision: what would be played, what else might be, and what the query rule says to that."""

import math
from collections.abc import Mapping
from typing import Literal, NamedTuple

import torch
from botorch.acquisition import AcquisitionFunction
from torch import Tensor

from botorch_costly.acquisition import (
    BetaSchedule,
    TimeVaryingLogEI,
    TimeVaryingPI,
    TimeVaryingUCB,
    at_round,
    best_mean,
)
from botorch_costly.models import StreamingGP
from botorch_costly.models.streaming import Anchors
from botorch_costly.numerics.stationary import Stationary, covariance, coverage
from botorch_costly.query import RECENT, BlindPlay, Contest, Progress, QueryRule, Verdict
from botorch_costly.tuners.domain import Domain
from botorch_costly.tuners.following import Ahead, Contenders
from botorch_costly.tuners.look import best_look, best_play, weigh

AcquisitionName = Literal["ucb", "ei", "pi"]


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
        self,
        belief: StreamingGP,
        progress: Progress,
        may_look: bool,
        generator: torch.Generator,
        again: bool = False,
    ) -> Move:
        """Decide on a round.

        Args:
            belief: In units of the prior.
            progress: How far the run has come.
            may_look: Whether there is a budget left; without one the rule is still asked.
            generator: Source of starts and coins.
            again: Whether nothing was learnt since the last decision.
        """
        now, beta = progress.round - 1, self._beta(progress.round)
        if self._query.outlook(progress) is not None:
            return self._weigh(belief, self._informed(belief, progress), beta, generator)
        found = self._waiting(belief, now, progress.horizon) if again else None
        if found is None:
            rivals = self._query.needs_rivals
            found = Contenders(self._contenders(belief, now, beta, rivals, generator))
        points, contest = found.points, self._contest(belief, found, now, beta)
        verdict = self._query(contest, progress, generator)
        blind = not (bool(verdict.look) and may_look)
        play_blind = points[0]
        if blind and self._blind_play == "mean" and belief.num_rows > 0:
            play_blind = best_play(belief, self._domain, now)
        return Move(points[0], play_blind, verdict)

    def _weigh(
        self, belief: StreamingGP, progress: Progress, beta: float, generator: torch.Generator
    ) -> Move:
        """Decide by what a look would earn: the rule hears of the best look and of the best play."""
        now, outlook = progress.round - 1, self._query.outlook(progress)
        assert outlook is not None
        if belief.num_rows:
            best = best_look(belief, self._domain, now, outlook, beta)
        else:  # every point is as good as any
            opening = self._contenders(belief, now, beta, False, generator)[:1]
            anchors = self._domain.anchors(torch.cat([opening, self._domain.spread()]))
            best = weigh(belief, opening, anchors, now, outlook)
        points = best.play.unsqueeze(0)
        if self._query.needs_rivals:
            found = self._contenders(belief, now, beta, True, generator)
            points = torch.cat([points, found[(found != best.play).any(-1)]])
        # Look and play are compared as they were worked out together, to the last bit.
        contest = contest_of(belief, points, now, beta, self._query.reads_covariances)
        contest = contest._replace(mean=best.mean, prospect=best.prospect)
        verdict = self._query(contest, progress, generator)
        if verdict.rate is not None:
            self._worths = [*self._worths, float(verdict.rate)][-RECENT:]
        return Move(best.look_at, best.play, verdict)

    def _informed(self, belief: StreamingGP, progress: Progress) -> Progress:
        """Return the progress with what belief and history say of looks."""
        live = float(belief.remembered(progress.round - 1).sum())
        worths = torch.tensor([*self._worths, math.nan], dtype=torch.float64)
        share = self._coverage_of(belief.kernel)
        return progress._replace(live=live, coverage=share, worths=worths)

    def state_dict(self) -> dict[str, list[float]]:
        """Return what a look was worth in each of recent rounds, over its reach."""
        return {"worths": list(self._worths)}

    def load_state_dict(self, state: Mapping[str, list[float]]) -> None:
        """Continue from ``state_dict``."""
        self._worths = list(state["worths"])

    def _contenders(
        self,
        belief: StreamingGP,
        now: int,
        beta: float,
        rivals: bool,
        generator: torch.Generator,
    ) -> Tensor:
        """Return what the acquisition function would play, and rivals if anybody asks for them."""
        acquisition = self._acquisition_at(belief, now, beta)
        return self._domain.contenders(acquisition, rivals, generator)

    def _waiting(self, belief: StreamingGP, now: int, end: int | None) -> Contenders | None:
        """Return the contenders if they can be told without a search."""
        if self._acquisition != "ucb":
            return None
        ahead = Ahead(now, lambda t: self._beta(t + 1), end)
        return self._domain.waiting(belief, ahead, self._query.needs_rivals)

    def _contest(self, belief: StreamingGP, found: Contenders, now: int, beta: float) -> Contest:
        covariances = self._query.reads_covariances
        if found.mean is None or found.variance is None or covariances:
            return contest_of(belief, found.points, now, beta, covariances)
        return _contest(found.mean, found.variance, None, beta)

    def _acquisition_at(self, belief: StreamingGP, now: int, beta: float) -> AcquisitionFunction:
        if self._acquisition == "ucb" or not belief.num_rows:
            return TimeVaryingUCB(belief, beta, now)
        improvement = {"ei": TimeVaryingLogEI, "pi": TimeVaryingPI}[self._acquisition]
        return improvement(belief, best_mean(belief, belief.inputs[:, :-1], now), now)

    def _coverage_of(self, kernel: Stationary) -> float:
        """Return what a look tells of what tells configurations apart, computed once for a kernel."""
        if self._coverage is None or not _alike(self._coverage[0], kernel):
            points = self._domain.spread()
            self._coverage = kernel, coverage(covariance(kernel, points, points))
        return self._coverage[1]


def contest_of(
    belief: StreamingGP, points: Tensor, now: int, beta: float, covariances: bool = True
) -> Contest:
    """Return the contest of the first of the points (``(1 + m) x d``) against the others.

    Args:
        belief: In units of the prior.
        points: Incumbent and rivals.
        now: The round, from 0.
        beta: Of the confidence bounds.
        covariances: Whether the rule reads them.
    """
    cov: Tensor | None = None
    with torch.no_grad():
        if covariances:
            # Each beside the incumbent: nobody needs the covariance of two rivals, and arms have many.
            prepared = belief.anchor(at_round(points, points.new_tensor(float(now))))
            incumbent = Anchors(prepared.rows[:1], prepared.projected[:1])
            mean, variance, cov = belief.beside(prepared, incumbent)
        else:
            mean, variance = belief.in_round(points, now)
    return _contest(mean, variance, None if cov is None else cov[1:, 0], beta)


def _contest(mean: Tensor, variance: Tensor, covariance: Tensor | None, beta: float) -> Contest:
    """Return the contest of the first against the others."""
    return Contest(
        mean=mean[0],
        variance=variance[0],
        rival_mean=mean[1:],
        rival_variance=variance[1:],
        rival_covariance=covariance,
        present=torch.ones_like(variance[1:], dtype=torch.bool),
        beta=mean.new_tensor(beta),
    )


def _alike(one: Stationary, other: Stationary) -> bool:
    """Return whether two kernels are the same up to their scale."""
    return one.family == other.family and torch.equal(one.lengthscale, other.lengthscale)
