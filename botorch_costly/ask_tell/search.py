"""Searches of a space for the maxima of a function: a cube, a lattice, or arms.

A function is a callable over encoded configurations, ``b x 1 x d -> b``, as BoTorch's acquisition
functions are. A search knows nothing else of it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_costly.device import is_near, moved
from botorch_costly.errors import check_count, check_positive
from botorch_costly.numerics.distinct_rows import sorted_rows
from botorch_costly.optim.far_rival import far_rival
from botorch_costly.optim.grid import far_rival_on_grid, grid_local_maxima
from botorch_costly.optim.lbfgs import minimize_batch
from botorch_costly.optim.local_optima import search
from botorch_costly.optim.smooth import Acquisition, from_callable
from botorch_costly.optim.suppression import Optima
from botorch_costly.space import Integer, SearchSpace

SAME = 1e-9  # distance of what is one configuration of a list
CLOSE = 1e-3  # and, where all of the space is open, of what is not worth a further evaluation
# Beyond this many configurations a lattice is searched as if it were continuous.
LARGEST_LATTICE = 2000
# On flat ground, as before the first reward, every start is an optimum: without a limit the next
# search would start from all of them, and the one after from twice as many.
_MOST_WARM_STARTS = 500
_REPRESENTATIVES = 256  # points that stand for the space
_STRETCHED = 1.6  # by which as many more are pulled out of a cube, and back onto its faces
_CANDIDATES = 128  # for a point far from a lone optimum, in addition to the starts of a search
_CLIMBING_STEPS = 4  # of a climb from good points


@dataclass(frozen=True)
class Search:
    """How a space is searched.

    Args:
        num_restarts: Random starts of each search for local optima.
        bandwidth: Optima closer than this, in the unit cube, are one.

    Raises:
        InvalidArgumentError: If ``num_restarts`` is no positive integer or ``bandwidth`` not positive.
    """

    num_restarts: int = 50
    bandwidth: float = 0.2

    def __post_init__(self) -> None:
        number = check_count("num_restarts", self.num_restarts, minimum=1)
        object.__setattr__(self, "num_restarts", number)
        check_positive("bandwidth", self.bandwidth)


class Maxima(NamedTuple):
    """Local optima of a function, best first, and what a further search may start from."""

    points: Tensor  # configurations, encoded, shape: (m, d)
    values: Tensor  # of the optima before they were rounded to configurations, shape: (k,)
    optima: Tensor  # before they were rounded, shape: (k, d)
    starts: Tensor  # where the search began, shape: (n, d)
    number: Tensor | None = None  # of the best point in a list, on the CPU, shape: (1,)


class SpaceSearch(Protocol):
    """Finds the maxima of functions over the configurations of a space."""

    def local_optima(
        self, function: Acquisition, generator: torch.Generator, *, others: bool = True
    ) -> Maxima:
        """Return the local optima.

        Args:
            function: Over configurations, ``b x 1 x d -> b``.
            generator: Source of random starts, and of the choice among equal optima.
            others: Whether more than the best one is asked for.
        """

    def far_from(self, function: Acquisition, found: Maxima, generator: torch.Generator) -> Tensor:
        """Return the best configuration farther than the bandwidth from a lone optimum, ``1 x d``.

        Args:
            function: As in the search that found the optimum.
            found: What that search returned.
            generator: Source of random starts.

        Returns:
            Shape ``(0, d)`` if there is none.
        """

    def on_space(self, function: Acquisition, points: Tensor) -> Tensor:
        """Return the configurations nearest to some points, each once, best first, ``(m, d)``."""

    def climb(self, function: Acquisition, starts: Tensor) -> Tensor:
        """Return the best configurations reached from good starts, encoded, ``(b, d)``.

        Args:
            function: ``b x m x 1 x d -> b x m``, another one for each of the batch.
            starts: Few and good, ``(b, n, d)``.
        """

    def candidates(self, seen: Tensor) -> Tensor:
        """Return points among which to look for starts: all, or seen (``m x d``) and representatives.

        No device is waited for where those seen are on the CPU.
        """

    def discretization(self, points: Tensor) -> Tensor:
        """Return where the best may turn out to be: all points if they are few, or else those given."""

    def representatives(self) -> Tensor:
        """Return points that stand for the whole space, encoded, shape ``(m, d)``."""

    def state_dict(self) -> dict[str, Any]:
        """Return what the next call depends on."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""


class CubeSearch:
    """The unit cube: local optima by multistart, merged by mean shift, then rounded to the space.

    Args:
        dim: Columns of the encoding.
        round_points: Nearest representable encodings, ``(*batch, d) -> (*batch, d)``.
        search: Restarts and bandwidth; the last optima are started from as well.
        tkwargs: Dtype and device.
    """

    def __init__(
        self,
        dim: int,
        round_points: Callable[[Tensor], Tensor],
        search: Search,
        tkwargs: dict,
    ) -> None:
        self._round, self._search = round_points, search
        self.bounds = torch.stack([torch.zeros(dim, **tkwargs), torch.ones(dim, **tkwargs)])
        self._near_bounds = self.bounds.cpu()  # which no device is waited for to check
        self._warm_starts = torch.zeros(0, dim, **tkwargs)
        self._peaks = self._warm_starts
        sobol = (
            SobolEngine(dim, scramble=True, seed=0)
            .draw(_REPRESENTATIVES, dtype=torch.float32)
            .to(self.bounds)
        )
        # Much is highest on a face of the cube, where no point of a sequence lies.
        stretched = (0.5 + _STRETCHED * (sobol - 0.5)).clamp(0, 1)
        everywhere = torch.cat([sobol, stretched])
        self._representatives = round_points(everywhere)
        # Whether every point of the cube is a configuration; no point is rounded then.
        self.every_point = torch.equal(self._representatives, everywhere)

    def local_optima(
        self, function: Acquisition, generator: torch.Generator, *, others: bool = True
    ) -> Maxima:
        """Return the local optima, found from random starts and from the optima of the last search."""
        rounds = not (self.every_point or is_near(self.bounds))
        found = search(
            function,
            self._near_bounds,
            self._search.num_restarts,
            self._search.bandwidth,
            remade=partial(self._on_space, function) if rounds else None,
            warm_starts=self._warm_starts,
            generator=generator,
        )
        self._warm_starts = found.optima.points[:_MOST_WARM_STARTS]
        points = found.more if rounds else self.on_space(function, found.optima.points)
        return Maxima(points, found.optima.values, self._warm_starts, found.starts)

    def far_from(self, function: Acquisition, found: Maxima, generator: torch.Generator) -> Tensor:
        """Return the best other configuration far from a lone one, ``1 x d``, or ``0 x d``."""
        lone = Optima(found.points[:1], found.values[:1])

        def elsewhere(X: Tensor) -> Tensor:
            rounded = self._round(X)
            same = (rounded.squeeze(-2) == lone.points).all(-1)
            return function(rounded).masked_fill(same, -torch.inf)

        far = far_rival(
            elsewhere,
            lone,
            self._near_bounds,
            self._search.bandwidth,
            found.starts,
            num_candidates=_CANDIDATES,
            generator=generator,
        )
        return lone.points[:0] if far is None else self._round(far.point.unsqueeze(0))

    def on_space(self, function: Acquisition, points: Tensor) -> Tensor:
        """Return the configurations nearest to some points, each once, best first, ``(m, d)``."""
        if self.every_point:
            return points
        if not is_near(points):
            rows, number = self._on_space(function, points, torch.ones_like(points[:, 0]).bool())
            return rows[: int(number)]
        rounded = self._round(points)
        if torch.equal(rounded, points):
            return points
        # Several optima may be rounded to one configuration, and the best of them to a poor one.
        rounded = rounded.unique(dim=0)
        with torch.no_grad():
            values = function(rounded.unsqueeze(-2))
        return rounded[values.argsort(descending=True, stable=True)]

    def _on_space(
        self, function: Acquisition, points: Tensor, counts: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return what ``on_space`` does, and behind it other rows, without waiting for a device.

        Args:
            function: As in ``on_space``.
            points: Shape ``(m, d)``; those that count are the first.
            counts: Which of them count, bool, ``(m,)``.

        Returns:
            Shape ``(m, d)``, and how many of them there are, shape ``()``.
        """
        points = torch.where(counts.unsqueeze(-1), points, points[:1])
        rounded = self._round(points)
        rows, repeated = sorted_rows(rounded)
        with torch.no_grad():
            values = function(rows.unsqueeze(-2)).masked_fill(repeated, -torch.inf)
        rows = rows[values.argsort(descending=True, stable=True)]
        same = (rounded == points).all()  # as on a CPU, nothing is sorted anew then
        return torch.where(same, points, rows), torch.where(same, counts.sum(), (~repeated).sum())

    def climb(self, function: Acquisition, starts: Tensor) -> Tensor:
        """Return the best configurations reached in a few steps from the starts, shape ``(b, d)``."""
        loss = from_callable(function).with_gradient(starts, sign=-1.0)
        end = minimize_batch(loss, starts, self._near_bounds, max_iter=_CLIMBING_STEPS)
        # Rounding may undo what the steps gained.
        self._peaks = _best(function, torch.cat([self._round(end.point), starts], -2))
        return self._peaks

    def candidates(self, seen: Tensor) -> Tensor:
        """Return where the last climb ended, what has been seen, and the representatives."""
        # Often one configuration is queried again and again; its copies would leave no room for others.
        different = moved(seen.unique(dim=0), self._peaks)
        return torch.cat([self._peaks, different, self._representatives])

    def discretization(self, points: Tensor) -> Tensor:
        """Return the points given."""
        return points

    def representatives(self) -> Tensor:
        """Return a Sobol set, and the same stretched onto the faces."""
        return self._representatives

    def state_dict(self) -> dict[str, Any]:
        """Return where the last search and the last climb ended, for the next ones start there."""
        return {"warm_starts": self._warm_starts, "peaks": self._peaks}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        self._warm_starts = state["warm_starts"].to(self.bounds)
        self._peaks = state["peaks"].to(self.bounds)


class FiniteSearch:
    """Finitely many configurations, all evaluated.

    Args:
        points: Their encodings, ``(n, d)``.
        neighbours: Row numbers of each point's neighbours, ``(n, k)`` padded with -1; ``None`` for
            arms, which have none, so that each arm is a local optimum.
        bandwidth: Far from a lone optimum is farther than this.
    """

    def __init__(self, points: Tensor, neighbours: Tensor | None, bandwidth: float) -> None:
        self._points, self._bandwidth = points, bandwidth
        self._rows = points.unsqueeze(-2)
        # Values are read at once, and whatever follows from them is worked out on the CPU.
        self._near = points.cpu()
        self._neighbours = None if neighbours is None else neighbours.cpu()

    def local_optima(
        self, function: Acquisition, generator: torch.Generator, *, others: bool = True
    ) -> Maxima:
        """Return the best point, one of them at random if there are several, then the other optima."""
        with torch.no_grad():
            values = function(self._rows).cpu()
        # Ties, as before the first query, are broken at random: not always by the first arm.
        best = (values == values.max()).nonzero().squeeze(-1)
        drawn = torch.randint(len(best), (1,), generator=generator, device=generator.device)
        pick = best[drawn.cpu()]
        order = torch.cat([pick, self._others(values, pick)]) if others else pick
        points = self._points[order.to(self._points.device, non_blocking=True)]
        return Maxima(points, values, points, self._points, pick)

    def _others(self, values: Tensor, best: Tensor) -> Tensor:
        """Return the numbers of all local maxima but the best."""
        numbers = torch.arange(len(values), device=values.device)
        if self._neighbours is None:
            return numbers[numbers != best]
        return numbers[grid_local_maxima(values, self._neighbours) & (numbers != best)]

    def far_from(self, function: Acquisition, found: Maxima, generator: torch.Generator) -> Tensor:
        """Return the best point far from a lone one, ``1 x d``, or ``0 x d``."""
        if self._neighbours is None:
            return self._points[:0]
        assert found.number is not None
        lone = found.number.squeeze(0)
        far, exists = far_rival_on_grid(found.values, lone, self._near, self._bandwidth)
        place = int(far)
        return self._points[place : place + 1] if bool(exists) else self._points[:0]

    def on_space(self, function: Acquisition, points: Tensor) -> Tensor:
        """Return the points themselves, which are configurations."""
        return points

    def climb(self, function: Acquisition, starts: Tensor) -> Tensor:
        """Return the best of the starts, shape ``(b, d)``: they were found among all points."""
        return _best(function, starts)

    def candidates(self, seen: Tensor) -> Tensor:
        """Return all points."""
        return self._points

    def discretization(self, points: Tensor) -> Tensor:
        """Return all points if they are few, or else those given."""
        return self._points if len(self._points) <= _REPRESENTATIVES else points

    def representatives(self) -> Tensor:
        """Return every point, or as many, evenly spread over their list."""
        return self._points[:: -(-len(self._points) // _REPRESENTATIVES)]

    def state_dict(self) -> dict[str, Any]:
        """Return nothing: every call evaluates every point."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""


def _best(function: Acquisition, points: Tensor) -> Tensor:
    """Return the points (``b x m x d``) with the highest finite values, ``(b, d)``."""
    with torch.no_grad():
        values = function(points.unsqueeze(-2)).nan_to_num(-torch.inf, posinf=-torch.inf)
    return points[torch.arange(len(points), device=points.device), values.argmax(-1)]


def is_listed(space: SearchSpace) -> bool:
    """Return whether the configurations of a space are few enough to evaluate all of them."""
    return space.is_finite and (space.size or 0) <= LARGEST_LATTICE


def search_of(space: SearchSpace, search: Search, tkwargs: dict) -> CubeSearch | FiniteSearch:
    """Return the search of a space: arms, a lattice small enough to list, or the unit cube."""
    if is_listed(space):
        points = torch.stack([space.encode(c) for c in space.configurations()]).to(**tkwargs)
        neighbours = None if space.is_arms else _lattice(space).to(points.device)
        return FiniteSearch(points, neighbours, search.bandwidth)
    return CubeSearch(space.dim, space.round, search, tkwargs)


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


def among(points: Tensor, asked: Tensor, distance: float) -> Tensor:
    """Return which points are no further from one asked for, bool of shape ``(m,)``."""
    return (torch.cdist(points, asked, p=torch.inf) <= distance).any(-1)
