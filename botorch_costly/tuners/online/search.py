"""Where a tuner may go: the candidate and its rivals, on a cube or among finitely many points."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import torch
from botorch.acquisition import AcquisitionFunction
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_costly.acquisition import TimeVaryingUCB
from botorch_costly.models import StreamingGP
from botorch_costly.optim.grid import far_rival_on_grid, grid_local_maxima
from botorch_costly.optim.lbfgs import minimize_batch
from botorch_costly.optim.local_optima import Ascent, ascend, distinct, far_rival
from botorch_costly.optim.smooth import Acquisition, AgingFunction, from_callable
from botorch_costly.optim.suppression import Optima
from botorch_costly.space import Integer, SearchSpace
from botorch_costly.tuners.online.path_following import (
    CandidateAndRivals,
    PathFollowing,
    RoundsAhead,
    SearchResult,
)

# Beyond this many configurations a lattice is searched as if it were continuous.
LARGEST_LATTICE = 2000
# On flat ground, as before the first reward, every start is an optimum: without a limit the next
# search would start from all of them, and the one after from twice as many.
_MOST_WARM_STARTS = 500
_SPREAD = 256  # points that stand for the search
_STRETCHED = 1.6  # by which as many more are pulled out of a cube, and back onto its faces
_CANDIDATES = 128  # for the rival of a lone optimum, beside the starts of a search
_CLIMBING_STEPS = 4  # of a search from good points


class SpaceSearch(Protocol):
    """Finds what an acquisition function would play, and what else it might have."""

    def candidate_and_rivals(
        self,
        acquisition: AcquisitionFunction,
        rivals: bool,
        generator: torch.Generator,
    ) -> Tensor:
        """Return the candidate, then its rivals, encoded: shape ``(1 + m, d)``.

        Args:
            acquisition: Over configurations, ``b x 1 x d -> b``.
            rivals: Whether anybody asks for rivals; without, ``m`` may be zero.
            generator: Source of random starts.
        """

    def waiting(
        self, belief: StreamingGP, ahead: RoundsAhead, rivals: bool
    ) -> CandidateAndRivals | None:
        """Return candidate and rivals by the upper bound without a search, if the last one tells.

        Args:
            belief: That of the last search, which was for the same bound.
            ahead: The round, and those after it.
            rivals: Whether anybody asks for rivals.
        """

    def climb(self, acquisition: Acquisition, starts: Tensor) -> Tensor:
        """Return the best points reached from starts in the field, encoded, ``(b, d)``.

        Args:
            acquisition: ``b x m x 1 x d -> b x m``, another one for each of the batch.
            starts: Few and good, ``(b, n, d)``.
        """

    def candidates(self, seen: Tensor) -> Tensor:
        """Return the points among which a search finds its starts: all, or seen (``m x d``) and more."""

    def discretization(self, points: Tensor) -> Tensor:
        """Return where the best may turn out to be: all of few points, or else the candidates."""

    def representatives(self) -> Tensor:
        """Return points that stand for the whole search, encoded, shape ``(m, d)``."""

    def state_dict(self) -> dict[str, Any]:
        """Return what the next call depends on."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""


class CubeSearch:
    """The unit cube: local optima by multistart, merged by mean shift, then rounded to the space.

    Args:
        dim: Columns of the encoding.
        round_points: Nearest representable encodings, ``(*batch, d) -> (*batch, d)``.
        num_restarts: Random starts of each search; the last optima are started from as well.
        bandwidth: Optima closer than this, in the unit cube, are one.
        tkwargs: Dtype and device.
    """

    def __init__(
        self,
        dim: int,
        round_points: Callable[[Tensor], Tensor],
        num_restarts: int,
        bandwidth: float,
        tkwargs: dict,
    ) -> None:
        self._round, self._num_restarts, self._bandwidth = round_points, num_restarts, bandwidth
        self._bounds = torch.stack([torch.zeros(dim, **tkwargs), torch.ones(dim, **tkwargs)])
        self._warm_starts = torch.zeros(0, dim, **tkwargs)
        self._peaks = self._warm_starts
        sobol = SobolEngine(dim, scramble=True, seed=0).draw(_SPREAD).to(self._bounds)
        # Much is highest on a face of the cube, where no point of a sequence lies.
        stretched = (0.5 + _STRETCHED * (sobol - 0.5)).clamp(0, 1)
        everywhere = torch.cat([sobol, stretched])
        self._representatives = round_points(everywhere)
        self._following = PathFollowing(self._bounds, bandwidth, self._representatives)
        # Whether every point of the cube is a configuration; no point is rounded then.
        self._every_point = torch.equal(self._representatives, everywhere)

    def candidate_and_rivals(
        self,
        acquisition: AcquisitionFunction,
        rivals: bool,
        generator: torch.Generator,
    ) -> Tensor:
        """Return the candidate, then its rivals, encoded: shape ``(1 + m, d)``."""
        ascent = ascend(
            acquisition,
            self._bounds,
            self._num_restarts,
            self._bandwidth,
            warm_starts=self._warm_starts,
            generator=generator,
        )
        optima = distinct(ascent, self._bounds, self._bandwidth)
        self._warm_starts = optima.points[:_MOST_WARM_STARTS]
        points = self._on_space(acquisition, optima.points)
        far_rival = points[:0]
        if rivals and len(points) == 1:
            # A literal rule never queries again when the candidate stands alone.
            lone = Optima(points, optima.values[:1])
            far_rival = self._far_rival(acquisition, lone, ascent, generator)
        if isinstance(acquisition, AgingFunction) and acquisition.second_order is not None:
            way = (far_rival - points[:1]).flatten() if rivals else None
            if acquisition.retained is not None:
                self._following.begin(SearchResult(self._warm_starts, acquisition.retained, way))
        return torch.cat([points, far_rival])

    def waiting(
        self, belief: StreamingGP, ahead: RoundsAhead, rivals: bool
    ) -> CandidateAndRivals | None:
        """Return the candidate and rivals by following the optima of the last search, or None."""
        if not belief.has_slopes:
            return None
        found = self._following.candidate_and_rivals(belief, ahead, rivals)
        if found is None or self._every_point:
            return found
        acquisition = TimeVaryingUCB(belief, ahead.beta(ahead.now), ahead.now)
        points = self._on_space(acquisition, found.points)
        return None if rivals and len(points) == 1 else CandidateAndRivals(points)

    def climb(self, acquisition: Acquisition, starts: Tensor) -> Tensor:
        """Return the best points reached in a few steps from the starts, shape ``(b, d)``."""
        loss = from_callable(acquisition).with_gradient(starts, sign=-1.0)
        end = minimize_batch(loss, starts, self._bounds, max_iter=_CLIMBING_STEPS)
        # Rounding may undo what the steps gained.
        self._peaks = _best(acquisition, torch.cat([self._round(end.point), starts], -2))
        return self._peaks

    def candidates(self, seen: Tensor) -> Tensor:
        """Return where the last climb ended, what has been seen, and the spread."""
        # Often one place is queried at again and again; its copies would leave no room for others.
        return torch.cat([self._peaks, seen.unique(dim=0), self._representatives])

    def discretization(self, points: Tensor) -> Tensor:
        """Return the candidates."""
        return points

    def representatives(self) -> Tensor:
        """Return a Sobol set, and the same stretched onto the faces."""
        return self._representatives

    def _on_space(self, acquisition: AcquisitionFunction, points: Tensor) -> Tensor:
        """Return the configurations nearest to the optima, each once, best first."""
        rounded = self._round(points)
        if torch.equal(rounded, points):
            return points
        # Several optima may be rounded to one configuration, and the best of them to a poor one.
        rounded = rounded.unique(dim=0)
        with torch.no_grad():
            values = acquisition(rounded.unsqueeze(-2))
        return rounded[values.argsort(descending=True, stable=True)]

    def _far_rival(
        self,
        acquisition: AcquisitionFunction,
        lone: Optima,
        ascent: Ascent,
        generator: torch.Generator,
    ) -> Tensor:
        """Return the best other configuration found far from a lone one, ``1 x d``, or ``0 x d``."""

        def elsewhere(X: Tensor) -> Tensor:
            rounded = self._round(X)
            same = (rounded.squeeze(-2) == lone.points).all(-1)
            return acquisition(rounded).masked_fill(same, -torch.inf)

        far = far_rival(
            elsewhere,
            lone,
            self._bounds,
            self._bandwidth,
            ascent.starts,
            num_candidates=_CANDIDATES,
            generator=generator,
        )
        return lone.points[:0] if far is None else self._round(far.point.unsqueeze(0))

    def state_dict(self) -> dict[str, Any]:
        """Return where the last searches ended, and which optima are followed."""
        followed = self._following.search
        return {
            "warm_starts": self._warm_starts,
            "peaks": self._peaks,
            "followed": None if followed is None else list(followed),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        warm_starts, peaks, followed = state["warm_starts"], state["peaks"], state["followed"]
        self._warm_starts, self._peaks = warm_starts.to(self._bounds), peaks.to(self._bounds)
        if followed is not None:
            optima, retained, rival = followed
            rival = None if rival is None else rival.to(self._bounds)
            followed = SearchResult(optima.to(self._bounds), retained, rival)
        self._following.begin(followed)


class FiniteSearch:
    """Finitely many configurations, all evaluated.

    Args:
        points: Their encodings, ``(n, d)``.
        neighbours: Row numbers of each point's neighbours, ``(n, k)`` padded with -1; ``None`` for
            arms, which have none, so that all other arms are rivals.
        bandwidth: The rival of a lone optimum is farther than this.
    """

    def __init__(self, points: Tensor, neighbours: Tensor | None, bandwidth: float) -> None:
        self._points, self._neighbours, self._bandwidth = points, neighbours, bandwidth
        self._questions = points.unsqueeze(-2)

    def candidate_and_rivals(
        self,
        acquisition: AcquisitionFunction,
        rivals: bool,
        generator: torch.Generator,
    ) -> Tensor:
        """Return the candidate, then its rivals, encoded: shape ``(1 + m, d)``."""
        with torch.no_grad():
            if isinstance(acquisition, AgingFunction):  # it stores what it computed of these points
                values = acquisition.at_fixed_points(self._questions)
            else:
                values = acquisition(self._questions)
        # Ties, as before the first query, are broken at random: not always by the first arm.
        best = (values == values.max()).nonzero().squeeze(-1)
        pick = torch.randint(len(best), (1,), generator=generator, device=values.device)
        candidate = best[pick]
        others = self._rivals(values, candidate) if rivals else candidate[:0]
        return self._points[torch.cat([candidate, others])]

    def waiting(self, belief: StreamingGP, ahead: RoundsAhead, rivals: bool) -> None:
        """Return None: every point is queried at, which takes no search."""

    def climb(self, acquisition: Acquisition, starts: Tensor) -> Tensor:
        """Return the best of the starts, shape ``(b, d)``: the field was the whole search."""
        return _best(acquisition, starts)

    def candidates(self, seen: Tensor) -> Tensor:
        """Return all points."""
        return self._points

    def discretization(self, points: Tensor) -> Tensor:
        """Return all points if they are few, or else the candidates."""
        return self._points if len(self._points) <= _SPREAD else points

    def representatives(self) -> Tensor:
        """Return every point, or as many, evenly spread over their list."""
        return self._points[:: -(-len(self._points) // _SPREAD)]

    def _rivals(self, values: Tensor, candidate: Tensor) -> Tensor:
        everyone = torch.arange(len(values), device=values.device)
        if self._neighbours is None:
            return everyone[everyone != candidate]
        maxima = grid_local_maxima(values, self._neighbours) & (everyone != candidate)
        if not bool(maxima.any()):
            far, exists = far_rival_on_grid(values, candidate[0], self._points, self._bandwidth)
            return far.reshape(1) if bool(exists) else candidate[:0]
        return everyone[maxima]

    def state_dict(self) -> dict[str, Any]:
        """Return nothing: every call queries at every point."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""


def _best(acquisition: Acquisition, points: Tensor) -> Tensor:
    """Return the points (``b x m x d``) with the highest finite values, ``(b, d)``."""
    with torch.no_grad():
        values = acquisition(points.unsqueeze(-2)).nan_to_num(-torch.inf, posinf=-torch.inf)
    return points[torch.arange(len(points), device=points.device), values.argmax(-1)]


def search_of(
    space: SearchSpace, num_restarts: int, bandwidth: float, tkwargs: dict
) -> SpaceSearch:
    """Return the search of a space: arms, a lattice small enough to list, or the unit cube."""
    if space.is_finite and (space.size or 0) <= LARGEST_LATTICE:
        points = torch.stack([space.encode(c) for c in space.configurations()]).to(**tkwargs)
        neighbours = None if space.is_arms else _lattice(space).to(points.device)
        return FiniteSearch(points, neighbours, bandwidth)
    return CubeSearch(space.dim, space.round, num_restarts, bandwidth, tkwargs)


def _lattice(space: SearchSpace) -> Tensor:
    """List the neighbours of each configuration, ``(n, k)`` row numbers padded with -1.

    Those are one step in one integer away, or another option of one choice: no configuration lies
    in the box between the two.
    """
    row = torch.arange(space.size or 0)
    stride, columns = len(row), []
    for _, parameter in space.parameters:
        size = len(parameter.values or ())
        stride //= size  # the last parameter varies fastest
        here = (row // stride % size).unsqueeze(-1)
        if isinstance(parameter, Integer):
            there = here + torch.tensor([-1, 1])
        else:
            there = (here + torch.arange(1, size)) % size
        listed = row.unsqueeze(-1) + stride * (there - here)
        columns.append(listed.masked_fill((there < 0) | (there >= size), -1))
    return torch.cat(columns, -1)
