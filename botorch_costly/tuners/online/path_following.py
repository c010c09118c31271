"""The optima of a search, followed from round to round until the next query.

Between queries a belief changes by one number, so that its optima move along smooth paths: a belief
expanded around them to second order says where they are in any later round, for the price of small
linear systems. Those of some rounds are worked out side by side, as a plan that each round reads its
row of. Where a path has left the neighbourhood in which an expansion holds, there is a new one.

Paths can cross and meet, and new optima come up: after a while an uncertain place outgrows a good one.
So the order is worked out for every round, points all over the search are watched, and after much
waiting, or where one of those points becomes the best, a new search is needed.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.device import is_near, moved, read
from botorch_costly.models import StreamingGP
from botorch_costly.numerics.closed_form import Moments, upper_bound_at
from botorch_costly.numerics.expansion import expanded_upper_bound
from botorch_costly.optim.newton import climb_by_newton, newton_step

_NEIGHBOURHOOD = 0.05  # in lengthscales; moments are off by about a sixth of its cube
_STALE = 0.9  # what must be retained since the last search for its optima to be all there are
_ROUNDS = 16  # of a plan
_ROUNDING = 1e-9  # of a watched point, by which it does not become the best


class CandidateAndRivals(NamedTuple):
    """The candidate, then its rivals, and what is believed of them if that is known."""

    points: Tensor  # shape: (1 + m, d)
    mean: Tensor | None = None  # shape: (1 + m,)
    variance: Tensor | None = None  # shape: (1 + m,)


class RoundsAhead(NamedTuple):
    """The rounds to come, up to the next query."""

    now: int  # the current round
    beta: Callable[[int], float]  # of the bound, by round; it is asked for some rounds ahead
    end: int | None = None  # of the run, beyond which it is asked for nothing

    @property
    def rounds(self) -> range:
        """Those that a plan is made for."""
        last = self.now + _ROUNDS
        return range(self.now, last if self.end is None else max(min(last, self.end), self.now + 1))


class SearchResult(NamedTuple):
    """What a search found."""

    optima: Tensor  # shape: (m, d)
    retained: float  # of the newest observation, in the round of the search
    # From a lone optimum to its rival, shape: (d,), or (0,) if there is none; None if none was asked for.
    rival: Tensor | None


class Plan(NamedTuple):
    """CandidateAndRivals of some rounds."""

    first: int  # round
    rounds: int  # for which it is good
    good: Tensor  # number of these rounds, shape: ()
    rivals: bool  # whether a lone optimum has one
    points: Tensor  # best first, shape: (r, m, d)
    mean: Tensor  # shape: (r, m)
    variance: Tensor  # shape: (r, m)

    def serves(self, now: int, rivals: bool) -> bool:
        """Return whether a round is in it, with all that is asked for."""
        return self.first <= now < self.first + self.rounds and self.rivals >= rivals


class PathFollowing:
    """Follows optima from round to round.

    Args:
        bounds: Of the search, ``2 x d``.
        bandwidth: Optima closer than this are one.
        watched: Points all over the search, ``m x d``.
    """

    def __init__(self, bounds: Tensor, bandwidth: float, watched: Tensor) -> None:
        self._bounds, self._bandwidth, self._watched = bounds, bandwidth, watched
        self.search: SearchResult | None = None
        self._plan: Plan | None = None

    def begin(self, search: SearchResult | None) -> None:
        """Follow what a search found, from now on."""
        self.search, self._plan = search, None

    def candidate_and_rivals(
        self, belief: StreamingGP, ahead: RoundsAhead, rivals: bool
    ) -> CandidateAndRivals | None:
        """Return the candidate and rivals of a later round, best first; None if a search is needed.

        Args:
            belief: That of the search, with slopes in closed form.
            ahead: That round, and those after it.
            rivals: Whether a lone optimum needs one.
        """
        plan = self._plan
        if plan is None or not plan.serves(ahead.now, rivals):
            plan = self._plan = self._plan_from(belief, ahead, rivals)
        if plan is None:
            return None
        row = ahead.now - plan.first
        return CandidateAndRivals(plan.points[row], plan.mean[row], plan.variance[row])

    def _plan_from(self, belief: StreamingGP, ahead: RoundsAhead, rivals: bool) -> Plan | None:
        """Return a plan from this round on, if need be with another expansion."""
        search = self.search
        if search is None or (rivals and search.rival is None and len(search.optima) == 1):
            return None  # or the search did not query for what is asked for now
        retained = [belief.snapshot(later).retained for later in ahead.rounds]
        fresh = [keep for keep in retained if keep >= _STALE * search.retained]
        if not fresh:
            return None
        plan = self._plan_around(search, belief, ahead, rivals, fresh)
        if is_near(plan.good) and int(plan.good) > 0:
            return plan._replace(rounds=int(plan.good))
        # Perhaps the paths have left the neighbourhood; a device is asked once for both plans.
        width = self._bounds.new_full((), ahead.beta(ahead.now)).sqrt()
        bound = belief.snapshot(ahead.now).upper_bound(width)
        summit = climb_by_newton(bound.quadratic, search.optima, self._bounds)
        nearer = search._replace(optima=summit.points)
        again = self._plan_around(nearer, belief, ahead, rivals, fresh)
        rounds, rounds_again = map(int, read(plan.good, again.good))
        if rounds > 0:
            return plan._replace(rounds=rounds)
        self.search = nearer
        return again._replace(rounds=rounds_again) if rounds_again > 0 else None

    def _plan_around(
        self,
        search: SearchResult,
        belief: StreamingGP,
        ahead: RoundsAhead,
        rivals: bool,
        retained: Sequence[float],
    ) -> Plan:
        """Return a plan by the expansion around the optima, without its number of rounds.

        Args:
            search: What was found.
            belief: That of the search.
            ahead: The round, and those after it.
            rivals: Whether a lone optimum needs one.
            retained: What is retained of the newest observation in the rounds that are planned.
        """
        optima, now, fresh = search.optima, ahead.now, len(retained)
        seen, prior = belief.snapshot(now), belief.kernel.outputscale
        floor = seen.least_variance
        betas = [ahead.beta(later) for later in ahead.rounds[:fresh]]
        numbers = torch.tensor([[*retained], betas], dtype=optima.dtype)
        keep, beta = moved(numbers, optima).unsqueeze(-1)
        width = beta.sqrt()
        around = seen.expand(optima)
        model = expanded_upper_bound(around, prior, keep, width, floor)
        step, exists = newton_step(model, optima.expand(fresh, *optima.shape), self._bounds)
        step = step * exists.unsqueeze(-1)  # where there is no path, the optimum stays
        value, points = model.at(step), (optima + step).clamp(self._bounds[0], self._bounds[1])
        known = seen.moments_at_fixed_points(self._watched)
        watched = upper_bound_at(prior, known, keep, width, floor)
        good = belief.in_lengthscales(step).abs().flatten(1).amax(-1) <= _NEIGHBOURHOOD
        good &= watched.amax(-1) <= value.amax(-1) + _ROUNDING
        good &= self._apart(points)
        order = value.argsort(dim=-1, descending=True, stable=True)
        points = points.gather(-2, order.unsqueeze(-1).expand_as(points))
        found = Moments(*(part.at(step).gather(-1, order) for part in around[1:]))
        if rivals and len(optima) == 1 and search.rival is not None and len(search.rival):
            far_rival, exists = self._rivals(points, search.rival, watched)
            good &= exists
            points = torch.cat([points, far_rival], -2)
            pairs = zip(found, seen.moments(far_rival.squeeze(-2)), strict=True)
            found = Moments(*(torch.cat([ours, far.unsqueeze(-1)], -1) for ours, far in pairs))
        variance = (prior - keep.square() * found.explained).clamp_min(floor)
        return Plan(
            first=now,
            rounds=0,
            good=good.long().cumprod(0).sum(),
            rivals=rivals,
            points=points,
            mean=belief.center + belief.scale * keep * found.mean,
            variance=belief.scale**2 * variance,
        )

    def _apart(self, points: Tensor) -> Tensor:
        """Return in which rounds no two optima have met."""
        distance = torch.cdist(points, points)
        itself = torch.eye(points.shape[-2], dtype=torch.bool, device=points.device)
        return (distance.masked_fill(itself, torch.inf) > self._bandwidth).flatten(1).all(-1)

    def _rivals(self, lone: Tensor, way: Tensor, watched: Tensor) -> tuple[Tensor, Tensor]:
        """Return the rival of a lone optimum in each round, ``r x 1 x d``, and whether there is one.

        It is where it was, as seen from the optimum, or else the best of the watched points that are
        farther away than the bandwidth.
        """
        near = torch.cdist(lone, self._watched).squeeze(-2) <= self._bandwidth
        other = self._watched[watched.masked_fill(near, -torch.inf).argmax(-1)].unsqueeze(-2)
        far_rival = (lone + way).clamp(self._bounds[0], self._bounds[1])
        far = torch.linalg.vector_norm(far_rival - lone, dim=-1, keepdim=True) > self._bandwidth
        exists = far.flatten(1).any(-1) | ~near.all(-1)
        return torch.where(far, far_rival, other), exists
