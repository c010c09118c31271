"""The candidate of a round and its rivals: found by a search, or followed from the last search.

The candidate is the maximizer of the acquisition function, and its rivals are the other local optima.
With a lone optimum a literal query rule would never query again, so the best point farther away than the
bandwidth becomes its rival.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor

from botorch_costly.acquisition import TimeVaryingUCB
from botorch_costly.ask_tell.search import CubeSearch, Maxima, Search, SpaceSearch, search_of
from botorch_costly.models import StreamingGP
from botorch_costly.optim.smooth import Acquisition, AgingFunction
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.online.path_following import (
    CandidateAndRivals,
    PathFollowing,
    RoundsAhead,
    SearchResult,
)


class _Searched(NamedTuple):
    points: Tensor  # the candidate, then its rivals, shape: (1 + m, d)
    result: Maxima
    far: Tensor  # the rival of a lone optimum, shape: (1, d) or (0, d)


class Rivals:
    """Searches for candidate and rivals in every round.

    Args:
        search: Search over the space.
    """

    def __init__(self, search: SpaceSearch) -> None:
        self.search = search

    def confine(self, box: Tensor) -> None:
        """Search a box of the cube from now on, ``2 x d``; a list has no columns to confine."""

    def find(self, acquisition: Acquisition, generator: torch.Generator, *, rivals: bool) -> Tensor:
        """Return the candidate, then its rivals, encoded: shape ``(1 + m, d)``.

        Args:
            acquisition: Acquisition function of configurations, ``b x 1 x d -> b``.
            generator: Source of random starts.
            rivals: Whether the rule reads rivals; if not, there may be none.
        """
        return self._searched(acquisition, generator, rivals).points

    def find_bound(
        self,
        bound: AgingFunction,
        generator: torch.Generator,
        *,
        rivals: bool,
        renews: bool = False,
    ) -> Tensor:
        """Return the result of ``find`` for an upper confidence bound.

        Args:
            bound: The bound.
            generator: Source of random starts.
            rivals: Whether the rule reads rivals; if not, there may be none.
            renews: Whether no reward was learnt since the last search.
        """
        return self.find(bound.at_fixed_points, generator, rivals=rivals)

    def follow(
        self, belief: StreamingGP, ahead: RoundsAhead, generator: torch.Generator, *, rivals: bool
    ) -> CandidateAndRivals | None:
        """Return candidate and rivals of the upper confidence bound without a search, or None.

        Args:
            belief: Belief of the last search, which was for the same bound.
            ahead: Current round, and those after it.
            generator: Source of starts.
            rivals: Whether the rule reads rivals.
        """
        return None

    def state_dict(self) -> dict[str, Any]:
        """Return the state that the next call depends on."""
        return {"search": self.search.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        self.search.load_state_dict(state["search"])

    def _searched(
        self,
        acquisition: Acquisition,
        generator: torch.Generator,
        rivals: bool,
        renews: bool = False,
    ) -> _Searched:
        result = self.search.local_optima(acquisition, generator, others=rivals, renews=renews)
        far = result.points[:0]
        if rivals and len(result.points) == 1:
            far = self.search.far_from(acquisition, result, generator)
        return _Searched(torch.cat([result.points, far]), result, far)


class FollowedRivals(Rivals):
    """Searches a cube, and between queries follows the optima of the last search.

    Args:
        search: Search over the cube.
        bandwidth: Optima closer than this count as one.
    """

    def __init__(self, search: CubeSearch, bandwidth: float) -> None:
        super().__init__(search)
        self._cube, self._bandwidth = search, bandwidth
        self.paths = PathFollowing(search.near_bounds, bandwidth, search.representatives())

    def confine(self, box: Tensor) -> None:
        """Search a box of the cube from now on."""
        self._cube.confine(box)
        cube = self._cube
        self.paths = PathFollowing(cube.near_bounds, self._bandwidth, cube.representatives())

    def find_bound(
        self,
        bound: AgingFunction,
        generator: torch.Generator,
        *,
        rivals: bool,
        renews: bool = False,
    ) -> Tensor:
        """Return the result of ``find``, and follow its optima from now on if the bound is smooth."""
        points, result, far = self._searched(bound, generator, rivals, renews)
        if bound.second_order is not None and bound.retained is not None:
            offset = (far - result.points[:1]).flatten() if rivals else None
            self.paths.begin(SearchResult(result.optima, bound.retained, offset))
        return points

    def follow(
        self, belief: StreamingGP, ahead: RoundsAhead, generator: torch.Generator, *, rivals: bool
    ) -> CandidateAndRivals | None:
        """Return candidate and rivals by following the optima of the last search, or None."""
        if not belief.has_slopes:
            return None
        before = self.paths.search
        followed = self.paths.candidate_and_rivals(belief, ahead, generator, rivals=rivals)
        after = self.paths.search
        if after is not None and after is not before:
            self._cube.resume_from(after.optima)
        if followed is None or self._cube.every_point:
            return followed
        bound = TimeVaryingUCB(belief, ahead.beta(ahead.now), ahead.now)
        points = self.search.on_space(bound, followed.points)
        return None if rivals and len(points) == 1 else CandidateAndRivals(points)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the search and the followed optima."""
        followed = self.paths.search
        return {**super().state_dict(), "followed": None if followed is None else list(followed)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        super().load_state_dict(state)
        followed = state["followed"]
        if followed is not None:
            followed = SearchResult(*followed)
            followed = followed.to(self._cube.bounds)
        self.paths.begin(followed)


def rivals_of(space: SearchSpace, search: Search, tkwargs: dict[str, Any]) -> Rivals:
    """Return the search for candidate and rivals in a space: arms, a lattice, or the unit cube."""
    searcher = search_of(space, search, tkwargs)
    if isinstance(searcher, CubeSearch):
        return FollowedRivals(searcher, search.bandwidth)
    return Rivals(searcher)
