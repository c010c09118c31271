"""One decision: what would be played, what else might be, and what the query rule says to that."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from botorch_costly.acquisition import (
    AcquisitionFactory,
    TimeVaryingUCB,
    at_round,
)
from botorch_costly.device import read
from botorch_costly.models import StreamingGP
from botorch_costly.models.covariance import ProjectedRows
from botorch_costly.numerics.stationary import Stationary, covariance, information_share
from botorch_costly.query import RECENT, Comparison, Progress, QueryRule, UnqueriedPlay, Verdict
from botorch_costly.tuners.online.path_following import CandidateAndRivals, RoundsAhead
from botorch_costly.tuners.online.priced_play import best_play, best_query, weigh
from botorch_costly.tuners.online.rivals import Rivals


class Play(NamedTuple):
    """What a round plays, by whether it is queried, and what the rule said, all of it on the CPU."""

    query_at: Tensor  # encoded, shape: (d,)
    play_unqueried: Tensor  # encoded, shape: (d,)
    verdict: Verdict


class Decider:
    """Decides on one round from a belief; of the past it knows what queries were worth lately.

    Args:
        rivals: Finds the candidate and its rivals.
        query: Whether to query.
        acquisition: Where a round goes under a rule without an outlook, and how wide bounds are.
        unqueried_play: What a round without a query plays under such a rule.
    """

    def __init__(
        self,
        rivals: Rivals,
        query: QueryRule,
        acquisition: AcquisitionFactory,
        unqueried_play: UnqueriedPlay,
    ) -> None:
        self._rivals, self._search, self._query = rivals, rivals.search, query
        self._acquisition, self._beta = acquisition, acquisition.schedule
        self._unqueried_play = unqueried_play
        self._information_share: tuple[Stationary, float] | None = None
        self._query_values: list[float] = []

    def decide(
        self,
        belief: StreamingGP,
        progress: Progress,
        may_query: bool,
        generator: torch.Generator,
        again: bool = False,
    ) -> Play:
        """Decide on a round.

        Args:
            belief: In units of the prior.
            progress: How far the run has come.
            may_query: Whether there is a budget left; without one the rule is still asked.
            generator: Source of starts and coins.
            again: Whether nothing was learnt since the last decision.
        """
        now, beta = progress.round - 1, self._beta(progress.round)
        if self._query.outlook(progress) is not None:
            return self._weigh(belief, self._informed(belief, progress), beta, generator)
        found = self._waiting(belief, now, progress.horizon) if again else None
        if found is None:
            rivals = self._query.needs_rivals
            points = self._candidate_and_rivals(belief, now, beta, generator, rivals=rivals)
            found = CandidateAndRivals(points)
        points, comparison = found.points, self._comparison(belief, found, now, beta)
        verdict = self._query(comparison, progress, generator)
        decided = _read(Play(points[0], points[0], verdict))
        unqueried = not (bool(decided.verdict.query) and may_query)
        if unqueried and self._unqueried_play == "mean" and belief.num_rows > 0:
            (play,) = read(best_play(belief, self._search, now))
            return decided._replace(play_unqueried=play)
        return decided

    def _weigh(
        self, belief: StreamingGP, progress: Progress, beta: float, generator: torch.Generator
    ) -> Play:
        """Decide by what a query would earn: the rule hears of the best query and of the best play."""
        now, outlook = progress.round - 1, self._query.outlook(progress)
        assert outlook is not None
        if belief.num_rows:
            best = best_query(belief, self._search, now, outlook, beta)
        else:  # every point is as good as any
            opening = self._candidate_and_rivals(belief, now, beta, generator, rivals=False)[:1]
            discretization = self._search.discretization(
                torch.cat([opening, self._search.representatives()])
            )
            best = weigh(belief, opening, discretization, now, outlook)
        points = best.play.unsqueeze(0)
        if self._query.needs_rivals:
            found = self._candidate_and_rivals(belief, now, beta, generator, rivals=True)
            points = torch.cat([points, found[(found != best.play).any(-1)]])
        # Query and play are compared as they were worked out together, to the last bit.
        comparison = comparison_of(belief, points, now, beta, self._query.reads_covariances)
        comparison = comparison._replace(mean=best.mean, prospect=best.prospect)
        verdict = self._query(comparison, progress, generator)
        decided = _read(Play(best.query_at, best.play, verdict))
        if decided.verdict.rate is not None:
            self._query_values = [*self._query_values, float(decided.verdict.rate)][-RECENT:]
        return decided

    def _informed(self, belief: StreamingGP, progress: Progress) -> Progress:
        """Return the progress with what belief and history say of queries."""
        effective = float(belief.near_weights(progress.round - 1).sum())
        query_values = torch.tensor([*self._query_values, math.nan], dtype=torch.float64)
        share = self._information_share_of(belief.kernel)
        return progress._replace(
            effective_queries=effective, information_share=share, query_values=query_values
        )

    def state_dict(self) -> dict[str, Any]:
        """Return the values of recent queries over their effective horizons, and where searches ended."""
        return {"query_values": list(self._query_values), "rivals": self._rivals.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        self._query_values = list(state["query_values"])
        self._rivals.load_state_dict(state["rivals"])

    def _candidate_and_rivals(
        self,
        belief: StreamingGP,
        now: int,
        beta: float,
        generator: torch.Generator,
        *,
        rivals: bool,
    ) -> Tensor:
        """Return what the acquisition function would play, and its rivals if the rule reads them."""
        if self._acquisition.is_bound or not belief.num_rows:
            bound = TimeVaryingUCB(belief, beta, now)
            return self._rivals.find_bound(bound, generator, rivals=rivals)
        return self._rivals.find(self._acquisition(belief, now), generator, rivals=rivals)

    def _waiting(self, belief: StreamingGP, now: int, end: int | None) -> CandidateAndRivals | None:
        """Return the candidate and rivals if they can be told without a search."""
        if not self._acquisition.is_bound:
            return None
        ahead = RoundsAhead(now, lambda t: self._beta(t + 1), end)
        return self._rivals.follow(belief, ahead, rivals=self._query.needs_rivals)

    def _comparison(
        self, belief: StreamingGP, found: CandidateAndRivals, now: int, beta: float
    ) -> Comparison:
        covariances = self._query.reads_covariances
        if found.mean is None or found.variance is None or covariances:
            return comparison_of(belief, found.points, now, beta, covariances)
        return _comparison(found.mean, found.variance, None, beta)

    def _information_share_of(self, kernel: Stationary) -> float:
        """Return what a query tells of what tells configurations apart, computed once for a kernel."""
        if self._information_share is None or not _alike(self._information_share[0], kernel):
            points = self._search.representatives()
            self._information_share = kernel, information_share(covariance(kernel, points, points))
        return self._information_share[1]


def comparison_of(
    belief: StreamingGP, points: Tensor, now: int, beta: float, covariances: bool = True
) -> Comparison:
    """Return the comparison of the first of the points (``(1 + m) x d``) against the others.

    Args:
        belief: In units of the prior.
        points: Candidate and rivals.
        now: The round, from 0.
        beta: Of the confidence bounds.
        covariances: Whether the rule reads them.
    """
    cov: Tensor | None = None
    with torch.no_grad():
        if covariances:
            # Each with the candidate: no rule needs the covariance of two rivals, and arms have many.
            prepared = belief.project(at_round(points, points.new_full((), float(now))))
            candidate = ProjectedRows(prepared.rows[:1], prepared.projected[:1])
            mean, variance, cov = belief.covariance_with(prepared, candidate)
        else:
            mean, variance = belief.in_round(points, now)
    return _comparison(mean, variance, None if cov is None else cov[1:, 0], beta)


def _comparison(
    mean: Tensor, variance: Tensor, covariance: Tensor | None, beta: float
) -> Comparison:
    """Return the comparison of the first against the others."""
    return Comparison(
        mean=mean[0],
        variance=variance[0],
        rival_mean=mean[1:],
        rival_variance=variance[1:],
        rival_covariance=covariance,
        exists=torch.ones_like(variance[1:], dtype=torch.bool),
        beta=mean.new_full((), beta),
    )


def _read(proposal: Play) -> Play:
    """Return what was decided as numbers that can be read: a device is waited for once."""
    query_at, play, verdict = proposal
    given = {name: part for name, part in verdict._asdict().items() if part is not None}
    query_at, play, *parts = read(query_at, play, *given.values())
    return Play(query_at, play, verdict._replace(**dict(zip(given, parts, strict=True))))


def _alike(one: Stationary, other: Stationary) -> bool:
    """Return whether two kernels are the same up to their scale."""
    same = one.lengthscale is other.lengthscale  # which is seen without waiting for a device
    return one.family == other.family and (same or torch.equal(one.lengthscale, other.lengthscale))
