"""The decision of one round: candidate, rivals, and the verdict of the query rule."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from botorch_costly.acquisition import AcquisitionFactory, TimeVaryingUCB, at_round
from botorch_costly.device import is_near, read
from botorch_costly.models import StreamingGP
from botorch_costly.models.covariance import ProjectedRows
from botorch_costly.numerics.stationary import Stationary, covariance, information_share
from botorch_costly.query import (
    RECENT,
    Comparison,
    Outlook,
    Progress,
    QueryRule,
    UnqueriedPlay,
    Verdict,
)
from botorch_costly.query.weighing import LINES
from botorch_costly.tuners.online.path_following import CandidateAndRivals, RoundsAhead
from botorch_costly.tuners.online.priced_play import best_among, best_play, best_query
from botorch_costly.tuners.online.rivals import Rivals


class Play(NamedTuple):
    """The configurations of a round with and without a query, and the verdict, all on the CPU."""

    query_at: Tensor  # encoded, shape: (d,)
    play_unqueried: Tensor  # encoded, shape: (d,)
    verdict: Verdict


class Decider:
    """Decides on one round from a belief and the values of recent queries.

    Args:
        rivals: Search for the candidate and its rivals.
        query: Query rule.
        acquisition: Acquisition function under a rule without an outlook; its schedule sets the width of
            confidence bounds.
        unqueried_play: Configuration of a round without a query under such a rule.
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
        *,
        explores: bool = True,
    ) -> Play:
        """Decide on a round.

        Args:
            belief: Belief in prior units.
            progress: Progress of the run.
            may_query: Whether the budget allows a query; the rule is evaluated in any case.
            generator: Source of starts and coins.
            again: Whether no reward was learnt since the last decision.
            explores: Whether a round without a query is played by the option ``unqueried_play``; by the
                maximizer of the mean otherwise.
        """
        now, beta = progress.round - 1, self._beta(progress.round)
        if self._query.has_outlook:
            informed = self._informed(belief, progress)
            outlook = self._query.outlook(informed)
            if outlook is not None:
                return self._weigh(belief, informed, outlook, beta, generator)
        choices = self._followed(belief, now, progress.horizon, generator) if again else None
        if choices is None:
            rivals = self._query.needs_rivals
            points = self._candidate_and_rivals(
                belief, now, beta, generator, rivals=rivals, renews=again
            )
            choices = CandidateAndRivals(points)
        points, comparison = choices.points, self._comparison(belief, choices, now, beta)
        verdict = self._query(comparison, progress, generator)
        decided = _read(Play(points[0], points[0], verdict))
        unqueried = not (bool(decided.verdict.query) and may_query)
        plays_mean = self._unqueried_play == "mean" or not explores
        if unqueried and plays_mean and belief.num_rows > 0:
            (play,) = read(best_play(belief, self._search, now))
            return decided._replace(play_unqueried=play)
        return decided

    def _weigh(
        self,
        belief: StreamingGP,
        progress: Progress,
        outlook: Outlook,
        beta: float,
        generator: torch.Generator,
    ) -> Play:
        """Decide by the value of a query: the rule compares the best query with the best play."""
        now = progress.round - 1
        if belief.num_rows:
            best = best_query(belief, self._search, now, outlook)
        else:  # all points are equally good
            opening = self._candidate_and_rivals(belief, now, beta, generator, rivals=False)[:1]
            lines = self._search.spread(LINES[-1])
            best = best_among(belief, opening, lines, now, outlook)
        comparison = _comparison(best.mean.unsqueeze(0), best.variance.unsqueeze(0), None, beta)
        if self._query.needs_rivals:
            others = self._candidate_and_rivals(belief, now, beta, generator, rivals=True)
            others = others[(others != best.play).any(-1)]
            points = torch.cat([best.play.unsqueeze(0), others])
            comparison = comparison_of(belief, points, now, beta, self._query.reads_covariances)
        # Keep the jointly computed mean and prospect: recomputed ones may differ in the last bits.
        comparison = comparison._replace(mean=best.mean, prospect=best.prospect)
        verdict = self._query(comparison, progress, generator)
        decided = _read(Play(best.query_at, best.play, verdict))
        if decided.verdict.rate is not None:
            self._query_values = [*self._query_values, float(decided.verdict.rate)][-RECENT:]
        return decided

    def _informed(self, belief: StreamingGP, progress: Progress) -> Progress:
        """Return the progress with effective queries, information share and recent query values."""
        effective = float(belief.near_weights(progress.round - 1).sum())
        query_values = torch.tensor([*self._query_values, math.nan], dtype=torch.float64)
        share = self._information_share_of(belief.kernel)
        return progress._replace(
            effective_queries=effective, information_share=share, query_values=query_values
        )

    def confine(self, box: Tensor) -> None:
        """Decide within a box of the cube from now on, ``2 x d``."""
        self._rivals.confine(box)
        self._information_share = None  # of points in the box

    def state_dict(self) -> dict[str, Any]:
        """Return recent query values over their effective horizons, and the state of the search."""
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
        renews: bool = False,
    ) -> Tensor:
        """Return the maximizer of the acquisition function, and its rivals if the rule reads them."""
        if self._acquisition.is_bound or not belief.num_rows:
            bound = TimeVaryingUCB(belief, beta, now)
            return self._rivals.find_bound(bound, generator, rivals=rivals, renews=renews)
        return self._rivals.find(self._acquisition(belief, now), generator, rivals=rivals)

    def _followed(
        self, belief: StreamingGP, now: int, end: int | None, generator: torch.Generator
    ) -> CandidateAndRivals | None:
        """Return the candidate and rivals if they can be found without a search."""
        if not self._acquisition.is_bound:
            return None
        ahead = RoundsAhead(now, lambda t: self._beta(t + 1), end)
        return self._rivals.follow(belief, ahead, generator, rivals=self._query.needs_rivals)

    def _comparison(
        self, belief: StreamingGP, choices: CandidateAndRivals, now: int, beta: float
    ) -> Comparison:
        covariances = self._query.reads_covariances
        if choices.mean is None or choices.variance is None or covariances:
            return comparison_of(belief, choices.points, now, beta, covariances)
        return _comparison(choices.mean, choices.variance, None, beta)

    def _information_share_of(self, kernel: Stationary) -> float:
        """Return the information share of one query, computed once for each kernel and box."""
        if self._information_share is None or not _same_shape(self._information_share[0], kernel):
            points = self._search.representatives()
            self._information_share = kernel, information_share(covariance(kernel, points, points))
        return self._information_share[1]


def comparison_of(
    belief: StreamingGP, points: Tensor, now: int, beta: float, covariances: bool = True
) -> Comparison:
    """Return the comparison of the first point with the others.

    Args:
        belief: Belief in prior units.
        points: Candidate and rivals, shape ``(1 + m) x d``.
        now: Current round, from 0.
        beta: Squared width of the confidence bounds, in standard deviations.
        covariances: Whether the rule reads covariances.
    """
    cov: Tensor | None = None
    with torch.no_grad():
        if covariances:
            # No rule needs covariances between rivals, and there may be many.
            prepared = belief.project(at_round(points, points.new_full((), float(now))))
            candidate = ProjectedRows(prepared.rows[:1], prepared.projected[:1])
            mean, variance, cov = belief.covariance_with(prepared, candidate)
        else:
            mean, variance = belief.in_round(points, now)
    return _comparison(mean, variance, None if cov is None else cov[1:, 0], beta)


def _comparison(
    mean: Tensor, variance: Tensor, covariance: Tensor | None, beta: float
) -> Comparison:
    """Return the comparison of the first entry with the others."""
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
    """Return the decision on the CPU, with a single wait for the device."""
    query_at, play, verdict = proposal
    if is_near(query_at):
        return proposal
    tensors = {name: value for name, value in verdict._asdict().items() if value is not None}
    query_at, play, *values = read(query_at, play, *tensors.values())
    return Play(query_at, play, verdict._replace(**dict(zip(tensors, values, strict=True))))


def _same_shape(first: Stationary, second: Stationary) -> bool:
    """Return whether two kernels are equal up to their scale."""
    same = first.lengthscale is second.lengthscale  # does not wait for a device
    equal = same or torch.equal(first.lengthscale, second.lengthscale)
    return first.family == second.family and equal
