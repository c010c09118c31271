"""The optima of a search, followed from round to round until the next query.

Between queries a belief changes by one number, so its optima move along smooth paths. A second-order
expansion of the belief around them gives their positions in any later round by small linear systems. The
positions in several rounds are computed in one batch, as a plan with one row per round. If a path leaves
the neighbourhood in which the expansion holds, there is a new expansion.

Paths can cross and meet, and new optima appear, since an uncertain region eventually exceeds a good one.
So the order is computed for each round, and points all over the space are watched. A new search is
needed after many rounds without a query, or when one of these points becomes the best.
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

_NEIGHBOURHOOD = 0.05  # lengthscales; the error of moments is about a sixth of its cube
_STALE = 0.9  # least share retained since the last search; below it there may be new optima
_ROUNDS = 32  # largest number of rounds in a plan
_ROUNDING = 1e-9  # a watched point this much above an optimum is not yet better


class CandidateAndRivals(NamedTuple):
    """The candidate, then its rivals, and their posterior if it is known."""

    points: Tensor  # shape: (1 + m, d)
    mean: Tensor | None = None  # shape: (1 + m,)
    variance: Tensor | None = None  # shape: (1 + m,)


class RoundsAhead(NamedTuple):
    """The current round and those after it, up to the next query."""

    now: int  # current round
    beta: Callable[[int], float]  # beta of the upper confidence bound by round
    end: int | None = None  # end of the run; no round beyond it is planned

    @property
    def rounds(self) -> range:
        """Rounds of a new plan."""
        last = self.now + _ROUNDS
        return range(self.now, last if self.end is None else max(min(last, self.end), self.now + 1))


class SearchResult(NamedTuple):
    """The result of a search."""

    optima: Tensor  # shape: (m, d)
    retained: float  # share of the newest observation that is retained in the round of the search
    # From a lone optimum to its rival, shape: (d,), or (0,) without a rival; None if none was requested.
    rival: Tensor | None


class Plan(NamedTuple):
    """The candidate and rivals of several rounds."""

    first: int  # first round
    rounds: int  # number of valid rounds
    valid: Tensor  # the same number before it is read from the device, shape: ()
    rivals: bool  # whether a lone optimum has a rival
    points: Tensor  # best first, shape: (r, m, d)
    mean: Tensor  # shape: (r, m)
    variance: Tensor  # shape: (r, m)

    def serves(self, now: int, rivals: bool) -> bool:
        """Return whether the plan covers a round, with rivals if requested."""
        return self.first <= now < self.first + self.rounds and self.rivals >= rivals


class PathFollowing:
    """Follows optima from round to round.

    Args:
        bounds: Bounds of the search, shape ``2 x d``.
        bandwidth: Optima closer than this count as one.
        watched: Points all over the search space, shape ``m x d``.
    """

    def __init__(self, bounds: Tensor, bandwidth: float, watched: Tensor) -> None:
        self._bounds, self._bandwidth, self._watched = bounds, bandwidth, watched
        self.search: SearchResult | None = None
        self._plan: Plan | None = None

    def begin(self, search: SearchResult | None) -> None:
        """Follow the optima of a search from now on."""
        self.search, self._plan = search, None

    def candidate_and_rivals(
        self, belief: StreamingGP, ahead: RoundsAhead, rivals: bool
    ) -> CandidateAndRivals | None:
        """Return the candidate and rivals of a later round, best first; None if a search is needed.

        Args:
            belief: Belief of the search, with analytic derivatives.
            ahead: Current round, and those after it.
            rivals: Whether a lone optimum needs a rival.
        """
        plan = self._plan
        if plan is None or not plan.serves(ahead.now, rivals):
            plan = self._plan = self._plan_from(belief, ahead, rivals)
        if plan is None:
            return None
        row = ahead.now - plan.first
        return CandidateAndRivals(plan.points[row], plan.mean[row], plan.variance[row])

    def _plan_from(self, belief: StreamingGP, ahead: RoundsAhead, rivals: bool) -> Plan | None:
        """Return a plan from this round on, with another expansion if necessary."""
        search = self.search
        if search is None or (rivals and search.rival is None and len(search.optima) == 1):
            return None  # no search, or one without the rival that is needed now
        retained = [belief.snapshot(later).retained for later in ahead.rounds]
        fresh = [share for share in retained if share >= _STALE * search.retained]
        if not fresh:
            return None
        plan = self._plan_around(search, belief, ahead, rivals, fresh)
        if is_near(plan.valid) and int(plan.valid) > 0:
            return plan._replace(rounds=int(plan.valid))
        # The paths may have left the neighbourhood; both plans are read in one wait for the device.
        width = self._bounds.new_full((), ahead.beta(ahead.now)).sqrt()
        bound = belief.snapshot(ahead.now).upper_bound(width).second_order
        if bound is None:
            return None
        summit = climb_by_newton(bound, search.optima, self._bounds)
        nearer = search._replace(optima=summit.points)
        again = self._plan_around(nearer, belief, ahead, rivals, fresh)
        rounds, rounds_again = map(int, read(plan.valid, again.valid))
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
        """Return a plan by the expansion around the optima, with ``rounds`` still 0.

        Args:
            search: Result of the search.
            belief: Belief of the search.
            ahead: Current round, and those after it.
            rivals: Whether a lone optimum needs a rival.
            retained: Share of the newest observation that is retained in each planned round.
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
        to = newton_step(model, optima, self._bounds).to  # an optimum without a path stays
        points = (optima + to).clamp(self._bounds[0], self._bounds[1])
        step = points - optima
        value = model.at(step)
        fixed = seen.moments_at_fixed_points(self._watched)
        watched = upper_bound_at(prior, fixed, keep, width, floor)
        valid = belief.in_lengthscales(step).abs().flatten(1).amax(-1) <= _NEIGHBOURHOOD
        valid &= watched.amax(-1) <= value.amax(-1) + _ROUNDING
        valid &= self._apart(points)
        order = value.argsort(dim=-1, descending=True, stable=True)
        points = points.gather(-2, order.unsqueeze(-1).expand_as(points))
        moments = Moments(*(moment.at(step).gather(-1, order) for moment in around[1:]))
        if rivals and len(optima) == 1 and search.rival is not None and len(search.rival):
            far_rival, exists = self._rivals(points, search.rival, watched)
            valid &= exists
            points = torch.cat([points, far_rival], -2)
            pairs = zip(moments, seen.moments(far_rival.squeeze(-2)), strict=True)
            moments = Moments(*(torch.cat([near, far.unsqueeze(-1)], -1) for near, far in pairs))
        variance = (prior - keep.square() * moments.explained).clamp_min(floor)
        return Plan(
            first=now,
            rounds=0,
            valid=valid.long().cumprod(0).sum(),
            rivals=rivals,
            points=points,
            mean=belief.center + belief.scale * keep * moments.mean,
            variance=belief.scale**2 * variance,
        )

    def _apart(self, points: Tensor) -> Tensor:
        """Return for each round whether all optima are still apart."""
        distance = torch.cdist(points, points)
        itself = torch.eye(points.shape[-2], dtype=torch.bool, device=points.device)
        return (distance.masked_fill(itself, torch.inf) > self._bandwidth).flatten(1).all(-1)

    def _rivals(self, lone: Tensor, offset: Tensor, watched: Tensor) -> tuple[Tensor, Tensor]:
        """Return the rival of a lone optimum in each round, ``r x 1 x d``, and whether there is one.

        The rival keeps its offset from the optimum. If that is too near, the rival is the best of the
        watched points that are farther away than the bandwidth.
        """
        near = torch.cdist(lone, self._watched).squeeze(-2) <= self._bandwidth
        other = self._watched[watched.masked_fill(near, -torch.inf).argmax(-1)].unsqueeze(-2)
        far_rival = (lone + offset).clamp(self._bounds[0], self._bounds[1])
        far = torch.linalg.vector_norm(far_rival - lone, dim=-1, keepdim=True) > self._bandwidth
        exists = far.flatten(1).any(-1) | ~near.all(-1)
        return torch.where(far, far_rival, other), exists
