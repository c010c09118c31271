"""Optima that appear while nothing is learnt, found by a search whose parts each fit into a round.

Between queries an uncertain region rises above its surroundings and gets an optimum of its own. Points
all over the space show where: those that are the best of their surroundings, with no followed optimum
near. The search takes the first steps from such points by the signs of the gradient, in one or more
parts. Its last part takes Newton steps, and merges the new optima with those that are followed already.

On a CPU a part leaves out points that are not needed. On a device their number must not depend on
computed values, so these points stay, in places where they change nothing.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.device import is_near, moved, read
from botorch_costly.models.snapshot import UpperBound
from botorch_costly.optim.far_rival import far_rival
from botorch_costly.optim.newton import climb_by_newton
from botorch_costly.optim.sign_steps import climb_by_signs, climbers_from
from botorch_costly.optim.starts import box_of, from_unit_cube, over_unit_cube, to_unit_cube
from botorch_costly.optim.suppression import Optima, suppress, suppress_unasked

_MERGE_WITHIN = 0.6  # bandwidths; newcomers this near an optimum climb to it
_MOST = 12  # watched points from which a search starts
_SURROUNDINGS = 3.0  # radius of the surroundings of a watched point, in spacings of these points
_STEPS = 5  # by signs, in each of the first parts of a search
_SHORTER = 0.5  # first step of a later part, in spacings of the watched points
_NEWTON_STEPS = 2  # after which most newcomers are near their maximum; the others are not added
_NEAR = 0.1  # scaled distance, about 0.05 lengthscales; a plan takes the last step
_CANDIDATES = 128  # points from which the rival of a lone optimum is found
_KEPT = 64  # largest number of followed optima


class Followed(NamedTuple):
    """Optima that are followed, in the first round in which an expansion does not hold."""

    points: Tensor  # shape: (m, d)
    values: Tensor  # upper confidence bounds, shape: (m,)
    left: (
        Tensor  # whether an optimum has left the neighbourhood of its expansion, bool, shape: (m,)
    )
    ended: Tensor  # whether there is no maximum in that neighbourhood, bool, shape: (m,)


class Watch:
    """Points all over a box that show where new optima appear.

    Args:
        near_bounds: Bounds of the box on the CPU, shape ``2 x d``.
        points: The points, shape ``w x d``.
        bandwidth: Optima closer than this count as one; a distance in the unit cube of the box.
    """

    def __init__(self, near_bounds: Tensor, points: Tensor, bandwidth: float) -> None:
        self.near_bounds, self.bandwidth = near_bounds, bandwidth
        self.points, self._box = points, box_of(near_bounds, points)
        self.bounds = torch.stack([self._box.lower, self._box.upper])
        # Of the points inside, about half of all; in the unit cube of the box.
        self._spacing = (0.5 * len(points)) ** (-1 / points.shape[-1])
        self._neighbours: Tensor | None = None  # numbers of points nearby, shape: (w, k)

    def distance(self, points: Tensor, others: Tensor) -> Tensor:
        """Return distances in the unit cube of the box, for batches of points."""
        return torch.cdist(self._unit(points), self._unit(others))

    def _unit(self, points: Tensor) -> Tensor:
        return to_unit_cube(points, self._box)

    def _from_unit(self, unit: Tensor) -> Tensor:
        return from_unit_cube(unit, self._box)

    def begin(
        self, bound: UpperBound, generator: torch.Generator, values: Tensor, followed: Followed
    ) -> Tensor:
        """Return newcomers, ``(n, d)``: where the first steps lead.

        The steps start from watched points that are the best of their surroundings and far from the
        followed optima, and from optima that have ended. Optima that have left their neighbourhood are
        near a maximum already.

        Args:
            bound: Upper confidence bound.
            generator: Source of the choice among too many watched points.
            values: Its values at the watched points, shape ``(w,)``.
            followed: Optima that are followed.
        """
        optima, left, ended = followed.points, followed.left, followed.ended
        watched, exists = self._starts(values, optima, generator)
        if is_near(optima):
            starts, near = torch.cat([watched[exists], optima[ended]]), optima[left]
        else:
            watched = torch.where(exists.unsqueeze(-1), watched, optima[:1])
            starts, near = torch.cat([watched, optima]), optima
        steps = self._first_steps(bound, starts, self._spacing)
        return torch.cat([self._new(steps, followed), near])

    def go_on(self, bound: UpperBound, newcomers: Tensor, followed: Followed) -> Tensor:
        """Return where further steps lead from newcomers, ``(n, d)``."""
        steps = self._first_steps(bound, newcomers, _SHORTER * self._spacing)
        return self._new(steps, followed)

    def _new(self, points: Tensor, followed: Followed) -> Tensor:
        """Return the points that are not about to reach a followed optimum; on a device also others."""
        optima, _, left, ended = followed
        settled = torch.where((left | ended).unsqueeze(-1), torch.inf, self._unit(optima))
        distance = torch.cdist(self._unit(points), settled, p=torch.inf)
        is_new = (distance >= _MERGE_WITHIN * self.bandwidth).all(-1)
        return (
            points[is_new] if is_near(points) else torch.where(is_new[:, None], points, optima[:1])
        )

    def _first_steps(self, bound: UpperBound, starts: Tensor, first: float) -> Tensor:
        if not len(starts):
            return starts
        unit = self._unit(starts).float()  # single precision will do, since Newton steps follow
        slope = over_unit_cube(bound, self._box).with_gradient(unit)
        climbers = climbers_from(slope, unit, first=first)
        return self._from_unit(climb_by_signs(slope, climbers, _STEPS)[0].points.to(starts))

    def _starts(
        self,
        values: Tensor,  # of the watched points, shape: (w,)
        optima: Tensor,  # shape: (m, d)
        generator: torch.Generator,
    ) -> tuple[Tensor, Tensor]:  # shapes: (n, d), (n,)
        """Return watched points to start from, and whether each of them is to be started from.

        If there are too many, they are the best one and others at random, so that each has its turn.
        """
        if self._neighbours is None:
            within = min(_SURROUNDINGS * self._spacing, self.bandwidth)
            near = self.distance(self.points, self.points) <= within
            is_neighbour, rows = near.to(values).topk(int(near.sum(-1).max()))
            itself = torch.arange(len(near), device=near.device).unsqueeze(-1)
            self._neighbours = torch.where(is_neighbour > 0, rows, itself)
        is_top = values >= values[self._neighbours].amax(-1)
        is_top &= self.distance(self.points, optima).amin(-1) > self.bandwidth
        draws = moved(torch.rand(len(values), generator=generator), values)
        draws = (draws + 2 * (values >= values.amax())).masked_fill(~is_top, -1.0)
        drawn, rows = draws.topk(min(_MOST, len(values)))
        return self.points[rows], drawn >= 0

    def end(self, bound: UpperBound, newcomers: Tensor, followed: Followed) -> Tensor | None:
        """Return the followed optima and the new ones, ``(k, d)``; None if they cannot be merged.

        Args:
            bound: Upper confidence bound.
            newcomers: Points that the first steps have reached, shape ``(n, d)``.
            followed: Optima that are followed. Those that have ended are left out, but not the best.
        """
        points, values, left, ended = followed
        counts = ~ended | (values >= values.amax())
        if len(newcomers):
            width = self.bounds[1] - self.bounds[0]
            near = _NEAR / (bound.snapshot.form.unit * width).amax()
            assert bound.second_order is not None, "only bounds with Hessians are followed"
            summit = climb_by_newton(
                bound.second_order, newcomers, self.bounds, _NEWTON_STEPS, near=near
            )
            # A maximum that is near replaces an optimum that has left its neighbourhood.
            values = torch.where(left | ended, values.amin() - 1, values)
            points = torch.cat([points, summit.points])
            values = torch.cat([values, summit.values])
            counts = torch.cat([counts, summit.reached])
        return self._merged(points, values, counts)

    def _merged(self, points: Tensor, values: Tensor, counts: Tensor) -> Tensor | None:
        """Return the distinct points with ``counts``, best first; None if they cannot be merged."""
        if is_near(points):
            points, values = points[counts], values[counts]
            unit = self._unit(points)
            if bool((torch.pdist(unit) > self.bandwidth).all()):  # mean shift would not move them
                return points[values.argsort(descending=True, stable=True)[:_KEPT]]
            return self._from_unit(suppress(unit, values, self.bandwidth).points[:_KEPT])
        merged = suppress_unasked(self._unit(points), values, self.bandwidth, counts)
        number, right = read(merged.number, merged.right)
        return self._from_unit(merged.optima.points[: int(number)][:_KEPT]) if bool(right) else None

    def rival(self, bound: UpperBound, lone: Tensor) -> Tensor:
        """Return the offset of the best point far from a lone optimum, ``(d,)``; ``(0,)`` without one."""
        far = far_rival(
            bound,
            Optima(lone, lone[:, 0]),
            self.near_bounds,
            self.bandwidth,
            self.points[:_CANDIDATES],
            num_candidates=0,
        )
        return lone.new_empty(0) if far is None else far.point - lone[0]
