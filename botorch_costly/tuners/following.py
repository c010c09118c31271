"""The optima of a search, followed while nobody looks.

Between looks a belief changes by one number, so that its optima move along smooth paths: a belief
expanded around them to second order says where they are in any later round, for the price of one small
linear system. They are expanded anew where a path has left the neighbourhood in which that holds.

Paths can cross, and new optima can come up: after a while an uncertain place outgrows a good one. So
the order is worked out in every round, points all over the domain are watched, and after much
waiting, or where one of those has become the best, somebody has to search again.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.acquisition import TimeVaryingUCB
from botorch_costly.numerics.expansion import Expansion
from botorch_costly.optim.newton import climb_by_newton, newton_step
from botorch_costly.optim.suppression import Optima, suppress

_NEIGHBOURHOOD = 0.05  # in lengthscales: beyond the square of it the expansion is exact to the cube
_STALE = 0.9  # what must be retained since the last search for its optima to be all there are
_ROUNDING = 1e-9  # of a watched point, by which it does not become the best


class Search(NamedTuple):
    """What a search found."""

    optima: Tensor  # shape: (m, d)
    retained: float  # of the newest observation, in the round of the search
    rival: (
        Tensor  # from a lone optimum to its rival, shape: (d,); none if it was not asked for: (0,)
    )


class Following:
    """Follows optima from round to round.

    Args:
        bounds: Of the domain, ``2 x d``.
        bandwidth: Optima closer than this are one.
        watched: Points all over the domain, ``m x d``.
    """

    def __init__(self, bounds: Tensor, bandwidth: float, watched: Tensor) -> None:
        self._bounds, self._bandwidth = bounds, bandwidth
        self._watched = watched.unsqueeze(-2)
        self.search: Search | None = None
        self._around: Expansion | None = None

    def begin(self, search: Search | None) -> None:
        """Follow what a search found, from now on."""
        self.search, self._around = search, None

    def optima(self, acquisition: TimeVaryingUCB) -> Optima | None:
        """Return where the optima are in a later round, best first; None if somebody has to search.

        Args:
            acquisition: On the belief of the search, in that round.
        """
        if self.search is None or not acquisition.is_smooth:
            return None
        if acquisition.retained < _STALE * self.search.retained:
            return None
        found = self._followed(acquisition)
        if found is None or bool(self._watch(acquisition).max() > found.values.max() + _ROUNDING):
            return None
        return self._ordered(found)

    def rival(self, acquisition: TimeVaryingUCB, lone: Tensor) -> Tensor:
        """Return the rival of a lone optimum, ``1 x d``: in its former direction, or the best watched.

        Args:
            acquisition: In the present round.
            lone: The optimum, ``1 x d``.
        """
        assert self.search is not None
        if len(self.search.rival):
            beside = (lone + self.search.rival).clamp(self._bounds[0], self._bounds[1])
            if bool(torch.linalg.vector_norm(beside - lone) > self._bandwidth):
                return beside
        points = self._watched.squeeze(-2)
        far = torch.linalg.vector_norm(points - lone, dim=-1) > self._bandwidth
        best = self._watch(acquisition).masked_fill(~far, -torch.inf).argmax()
        return points[best : best + 1][: int(far.any())]

    def _watch(self, acquisition: TimeVaryingUCB) -> Tensor:
        with torch.no_grad():
            return acquisition(self._watched)

    def _followed(self, acquisition: TimeVaryingUCB) -> Optima | None:
        assert self.search is not None
        if self._around is None:
            self._around = acquisition.expand(self.search.optima)
        points, model = self._around.points, acquisition.after(self._around)
        step, exists = newton_step(model, points, self._bounds)
        step = step * exists.unsqueeze(-1)  # where there is no path, the optimum stays
        if bool(acquisition.model.in_lengthscales(step).abs().max() <= _NEIGHBOURHOOD):
            return Optima((points + step).clamp(self._bounds[0], self._bounds[1]), model.at(step))
        summit = climb_by_newton(acquisition.second_order, points, self._bounds)
        if not bool(summit.reached.all()):
            return None
        self.begin(self.search._replace(optima=summit.points))
        return Optima(summit.points, summit.values)

    def _ordered(self, found: Optima) -> Optima:
        """Return the optima best first, those that have met as one."""
        if len(found.points) > 1:
            apart = torch.nn.functional.pdist(found.points)
            if bool(apart.min() <= self._bandwidth):
                return suppress(*found, self._bandwidth)
        order = found.values.argsort(descending=True, stable=True)
        return Optima(found.points[order], found.values[order])
