"""The optima of a search, followed from round to round until the next query.

Between queries a belief changes by one number, so its optima move along smooth paths. A second-order
expansion of the belief around them gives their positions in any later round by small linear systems. The
positions in several rounds are computed in one batch, as a plan with one row per round.

A plan ends with the first round in which an expansion does not hold, optima meet, a point somewhere else
is the best, or there may be new optima after a long time. It says so beforehand, and its last rounds
prepare the next plan, so that no round takes long:

- the last but two begins a search for new optima: it chooses starts, and takes the first steps;
- the last but one takes further steps;
- the last one takes the last steps, to optima of the first round of the next plan, and merges all optima;
- the round after it expands the belief around these, and makes the next plan.

A whole search is needed only where this fails.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.device import is_near, moved, read
from botorch_costly.models import StreamingGP
from botorch_costly.models.snapshot import Snapshot, UpperBound
from botorch_costly.numerics.closed_form import (
    Moments,
    upper_bound_and_gradient_at,
    upper_bound_at,
)
from botorch_costly.numerics.expansion import expanded_upper_bound
from botorch_costly.optim.newton import climb_by_newton, newton_step
from botorch_costly.tuners.online.newcomers import Followed, Watch

_NEIGHBOURHOOD = 0.05  # lengthscales; the error of moments is about a sixth of its cube
_STALE = 0.78  # least share retained since the optima were renewed; below it there may be new ones
_ROUNDS = 48  # largest number of rounds in a plan
_PARTS = 3  # of the search for the next plan, one in each of the last rounds of a plan
_ROUNDING = 1e-9  # a watched point this much above an optimum is not yet better
_LEVEL = 1e-3  # slope of level ground, where an optimum without a path may stay
_MANY = 16  # optima of which some are likely in corners


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

    def until(self, last: int, end: int | None) -> range:
        """Return the rounds of a plan that ends before the round ``last``, and before an end."""
        return range(self.now, last if end is None else max(min(last, end), self.now + 1))


class SearchResult(NamedTuple):
    """The optima that are followed, from a search or a renewal."""

    optima: Tensor  # shape: (m, d)
    retained: float  # share of the newest observation that is retained in the round of the search
    # From a lone optimum to its rival, shape: (d,), or (0,) without a rival; None if none was requested.
    rival: Tensor | None
    first: int | None = None  # first round in which they are followed; None before it
    newcomers: Tensor | None = None  # points on their way to new optima, shape: (n, d)
    # End of the run when they were planned: a clock may say another later, and a loaded run plans anew.
    end: int | None = None

    def to(self, like: Tensor) -> "SearchResult":
        """Return the result in the dtype and on the device of a tensor."""
        rival, newcomers = (
            None if points is None else points.to(like) for points in (self.rival, self.newcomers)
        )
        return self._replace(optima=self.optima.to(like), rival=rival, newcomers=newcomers)


class Plan(NamedTuple):
    """The candidate and rivals of several rounds."""

    first: int  # first round
    rounds: int  # number of valid rounds
    valid: Tensor  # the same number before it is read from the device, shape: ()
    rivals: bool  # whether a lone optimum has a rival
    points: Tensor  # the best one first, shape: (r, m, d)
    mean: Tensor  # shape: (r, m)
    variance: Tensor  # shape: (r, m)
    paths: "_Paths"  # in the order of the search, without the rival of a lone optimum
    watched: Tensor  # upper confidence bounds of the watched points, shape: (r, w)

    def serves(self, now: int, rivals: bool) -> bool:
        """Return whether the plan covers a round, with rivals if requested."""
        return self.first <= now < self.first + self.rounds and self.rivals >= rivals


class PathFollowing:
    """Follows optima from round to round.

    Args:
        near_bounds: Bounds of the search on the CPU, shape ``2 x d``.
        bandwidth: Optima closer than this count as one; a distance in the unit cube of the bounds.
        watched: Points all over the search space, shape ``m x d``.
    """

    def __init__(self, near_bounds: Tensor, bandwidth: float, watched: Tensor) -> None:
        self._watch = Watch(near_bounds, watched, bandwidth)
        self._bounds = self._watch.bounds
        self.search: SearchResult | None = None
        self._plan: Plan | None = None

    def begin(self, search: SearchResult | None) -> None:
        """Follow the optima of a search from now on."""
        self.search, self._plan = search, None

    def candidate_and_rivals(
        self,
        belief: StreamingGP,
        ahead: RoundsAhead,
        generator: torch.Generator,
        *,
        rivals: bool,
    ) -> CandidateAndRivals | None:
        """Return the candidate and rivals of a later round; None if a search is needed.

        Args:
            belief: Belief of the search, with analytic derivatives.
            ahead: Current round, and those after it.
            generator: Source of the starts of searches for new optima.
            rivals: Whether a lone optimum needs a rival.
        """
        plan = self._plan
        if plan is None or not plan.serves(ahead.now, rivals):
            plan = self._plan = self._plan_from(belief, ahead, rivals)
        if plan is None:
            return None
        self._prepare_next(plan, belief, ahead, generator)
        row = ahead.now - plan.first
        return CandidateAndRivals(plan.points[row], plan.mean[row], plan.variance[row])

    def _prepare_next(
        self, plan: Plan, belief: StreamingGP, ahead: RoundsAhead, generator: torch.Generator
    ) -> None:
        """Take a part of the search for new optima in each of the last rounds of a plan."""
        search, next_round = self.search, plan.first + plan.rounds
        left = next_round - 1 - ahead.now
        over = ahead.end is not None and next_round >= ahead.end
        if left >= _PARTS or over or search is None:
            return
        row, soon = ahead.now - plan.first, min(plan.rounds, len(plan.points) - 1)
        paths, newcomers = plan.paths, search.newcomers
        followed = Followed(
            paths.points[row], paths.bounds[row], paths.left[soon], paths.ended[soon]
        )
        bound = _bound(belief, ahead, next_round)
        if newcomers is None:
            newcomers = self._watch.begin(bound, generator, plan.watched[soon], followed)
        elif left > 0:
            newcomers = self._watch.go_on(bound, newcomers, followed)
        self.search = search._replace(newcomers=newcomers)
        if left == 0:
            renewed = self._watch.end(bound, newcomers, followed)
            self.begin(
                None if renewed is None else self._renewed(search, bound, renewed, next_round)
            )

    def _renewed(
        self, search: SearchResult, bound: UpperBound, optima: Tensor, first: int
    ) -> SearchResult:
        """Return the result of a search whose optima are renewed."""
        rival = search.rival
        if rival is not None:
            rival = self._watch.rival(bound, optima) if len(optima) == 1 else rival[:0]
        if self._has_corners(optima):
            bound.snapshot.moments_and_slopes(optima)  # cached for the next plan
        return SearchResult(optima, bound.snapshot.retained, rival, first)

    def _plan_from(self, belief: StreamingGP, ahead: RoundsAhead, rivals: bool) -> Plan | None:
        """Return a plan from this round on, with another expansion if necessary."""
        search = self.search
        if search is None or (rivals and search.rival is None and len(search.optima) == 1):
            return None  # no search, or one without the rival that is needed now
        first = ahead.now if search.first is None else search.first
        is_known = search.end is not None and ahead.now < search.end
        search = search._replace(first=first, end=search.end if is_known else ahead.end)
        self.search = search
        rounds = ahead.until(first + _ROUNDS, search.end)
        retained = list(map(belief.retained, rounds))
        fresh = [share for share in retained if share >= _STALE * search.retained]
        if not fresh:
            return None
        plan = self._plan_around(search, belief, ahead, rivals, fresh)
        if is_near(plan.valid) and int(plan.valid) > 0:
            return plan._replace(rounds=int(plan.valid))
        # The paths may have left the neighbourhood; both plans are read in one wait for the device.
        bound = _bound(belief, ahead, ahead.now).second_order
        if bound is None:
            return None
        summit = climb_by_newton(bound, search.optima, self._bounds)
        nearer = search._replace(optima=summit.points)
        again = self._plan_around(nearer, belief, ahead, rivals, fresh)
        rounds_now, rounds_again = map(int, read(plan.valid, again.valid))
        if rounds_now > 0:
            return plan._replace(rounds=rounds_now)
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
        betas = [ahead.beta(later) for later in range(now, now + fresh)]
        numbers = torch.tensor([[*retained], betas], dtype=optima.dtype)
        keep, beta = moved(numbers, optima).unsqueeze(-1)
        width = beta.sqrt()
        paths, moving = self._paths(optima, belief, seen, _Terms(keep, width, prior, floor))
        points, value = paths.points, paths.bounds
        fixed = seen.moments_at_fixed_points(self._watch.points)
        watched = upper_bound_at(prior, fixed, keep, width, floor)
        valid = ~paths.left.any(-1)
        valid &= watched.amax(-1) <= value.amax(-1) + _ROUNDING
        valid &= self._apart(points, moving)
        order = _best_first(value)
        best = points.gather(-2, order.unsqueeze(-1).expand_as(points))
        valid &= ~paths.ended.gather(-1, order[:, :1]).squeeze(-1)
        moments = Moments(*(moment.gather(-1, order) for moment in paths.moments))
        if rivals and len(optima) == 1 and search.rival is not None and len(search.rival):
            far_rival, exists = self._rivals(best, search.rival, watched)
            valid &= exists
            best = torch.cat([best, far_rival], -2)
            pairs = zip(moments, seen.moments(far_rival.squeeze(-2)), strict=True)
            moments = Moments(*(torch.cat([near, far.unsqueeze(-1)], -1) for near, far in pairs))
        variance = (prior - keep.square() * moments.explained).clamp_min(floor)
        return Plan(
            first=now,
            rounds=0,
            valid=valid.long().cumprod(0).sum(),
            rivals=rivals,
            points=best,
            mean=belief.center + belief.scale * keep * moments.mean,
            variance=belief.scale**2 * variance,
            paths=paths,
            watched=watched,
        )

    def _paths(
        self, optima: Tensor, belief: StreamingGP, seen: Snapshot, terms: "_Terms"
    ) -> tuple["_Paths", Tensor | None]:
        """Return the paths of the optima, and the numbers of those that may move; None for all."""
        keep, width, prior, floor = terms
        still, moving = self._still(optima, seen, terms)
        some = optima if moving is None else optima[moving]
        around = seen.expand(some)
        model = expanded_upper_bound(around, prior, keep, width, floor)
        to, exists, slope = newton_step(model, some, self._bounds)  # 0 without a path
        points = (some + to).clamp(self._bounds[0], self._bounds[1])
        step = points - some
        left = belief.in_lengthscales(step).abs().amax(-1) > _NEIGHBOURHOOD
        ended = ~exists & (slope > _LEVEL)
        known = Moments(*(moment.at(step) for moment in around[1:]))
        paths = _Paths(points, model.at(step), known, left, ended)
        if still is None or moving is None:
            return paths, None
        return paths.among(still, moving), moving

    def _still(
        self, optima: Tensor, seen: Snapshot, terms: "_Terms"
    ) -> tuple["_Paths | None", Tensor | None]:
        """Return the paths of optima that stay in their corners, and the numbers of the others.

        An optimum in a corner stays there until the bound rises into the box. In many dimensions most
        optima are in corners; without their Hessians a plan takes half of the time.
        """
        low, high = self._bounds
        if not self._has_corners(optima):
            return None, None
        known, slopes = seen.moments_and_slopes(optima)
        value, gradient = upper_bound_and_gradient_at(known, slopes, *terms)
        rises = ((optima + gradient.sign()).clamp(low, high) != optima).any(-1)
        rows = len(value)
        known = Moments(*(moment.expand(rows, -1) for moment in known))
        points, never = optima.expand(rows, -1, -1), torch.zeros_like(rises)
        return _Paths(points, value, known, never, never), rises.any(0).nonzero().squeeze(-1)

    def _has_corners(self, optima: Tensor) -> bool:
        return is_near(optima) and len(optima) >= _MANY

    def _apart(self, points: Tensor, moving: Tensor | None) -> Tensor:
        """Return for each round whether all optima are still apart."""
        number = torch.arange(points.shape[-2], device=points.device)
        some, own = (points, number) if moving is None else (points[:, moving], moving)
        distance = self._watch.distance(some, points)
        itself = own.unsqueeze(-1) == number
        return (distance.masked_fill(itself, torch.inf) > self._watch.bandwidth).flatten(1).all(-1)

    def _rivals(self, lone: Tensor, offset: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return the rival of a lone optimum in each round, ``r x 1 x d``, and whether there is one.

        The rival keeps its offset from the optimum. If that is too near, the rival is the best of the
        watched points that are farther away than the bandwidth.
        """
        watched, bandwidth = self._watch.points, self._watch.bandwidth
        near = self._watch.distance(lone, watched).squeeze(-2) <= bandwidth
        other = watched[values.masked_fill(near, -torch.inf).argmax(-1)].unsqueeze(-2)
        far_rival = (lone + offset).clamp(self._bounds[0], self._bounds[1])
        far = (self._watch.distance(lone, far_rival) > bandwidth).squeeze(-1)
        exists = far.flatten(1).any(-1) | ~near.all(-1)
        return torch.where(far.unsqueeze(-1), far_rival, other), exists


class _Terms(NamedTuple):
    """The terms in which the bounds of several rounds differ, and those that they share."""

    retained: Tensor  # share of the newest observation that is retained, shape: (r, 1)
    width: Tensor  # number of standard deviations, shape: (r, 1)
    prior: Tensor  # shape: ()
    floor: float  # least variance


class _Paths(NamedTuple):
    """The positions of optima in each round."""

    points: Tensor  # shape: (r, m, d)
    bounds: Tensor  # upper confidence bounds, shape: (r, m)
    moments: Moments  # shapes: (r, m)
    left: Tensor  # whether an optimum has left the neighbourhood of its expansion, bool, shape: (r, m)
    ended: Tensor  # whether there is no maximum in the neighbourhood, bool, shape: (r, m)

    def among(self, still: "_Paths", moving: Tensor) -> "_Paths":
        """Return these paths, of the optima with the numbers ``moving``, among those that stay."""

        def placed(all_of: Tensor, some: Tensor) -> Tensor:
            return all_of.index_copy(1, moving, some)

        return _Paths(
            placed(still.points, self.points),
            placed(still.bounds, self.bounds),
            Moments(*map(placed, still.moments, self.moments)),
            placed(still.left, self.left),
            placed(still.ended, self.ended),
        )


def _best_first(values: Tensor) -> Tensor:
    """Return the numbers of the columns ``(r, m)`` in each row, that of the largest value first."""
    best = values.argmax(-1, keepdim=True)
    order = torch.arange(values.shape[-1], device=values.device).repeat(len(values), 1)
    order.scatter_(-1, best, 0)  # the first one takes the place of the best
    return torch.cat([best, order[:, 1:]], -1)


def _bound(belief: StreamingGP, ahead: RoundsAhead, later: int) -> UpperBound:
    """Return the upper confidence bound of a round."""
    width = belief.kernel.outputscale.new_full((), ahead.beta(later)).sqrt()
    return belief.snapshot(later).upper_bound(width)
