"""Searches of a space for the maxima of a function: a cube, a lattice, or arms.

A function is a callable over encoded configurations, ``b x 1 x d -> b``, like BoTorch's acquisition
functions.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.quasirandom import SobolEngine

from botorch_costly.ask_tell.points import any_largest
from botorch_costly.calls import advised
from botorch_costly.device import is_near, moved
from botorch_costly.errors import check_count, check_positive
from botorch_costly.numerics.distinct_rows import sorted_rows
from botorch_costly.optim.far_rival import far_rival
from botorch_costly.optim.grid import far_rival_on_grid, grid_local_maxima
from botorch_costly.optim.local_optima import search
from botorch_costly.optim.maximize import maximize
from botorch_costly.optim.smooth import Acquisition, SmoothFunction
from botorch_costly.optim.starts import box_of, from_unit_cube, spread_order, unit_cube
from botorch_costly.optim.suppression import Optima
from botorch_costly.space import Choice, SearchSpace

CLOSE = 1e-3  # in a continuous space, nearer configurations are not worth a second evaluation
LARGEST_LATTICE = 2000  # number of configurations above which a lattice is searched as continuous
_RENEWED = 4  # a search that renews another takes the random starts divided by this
# A constant function, as before the first reward, has an optimum at every start: without a limit the
# number of starts would double with every search.
_MOST_WARM_STARTS = 64
_REPRESENTATIVES = 256  # number of points that represent the space
_STRETCHED = 1.6  # moves as many more points out of the cube; they are clipped to its faces
_CANDIDATES = 128  # random starts of the search for a point far from a lone optimum
_PADDING = 1e-6  # of a column with a single value: a search needs room
_CLIMBING_STEPS = 4  # steps of a local search from good points


@advised
@dataclass(frozen=True)
class Search:
    """Settings of the search of a space.

    Args:
        num_restarts: Number of random starts of each search for local optima.
        bandwidth: Distance in the unit cube below which optima are merged.

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
    """Local maxima of a function, best first, and the starts of the search."""

    points: Tensor  # encoded configurations, shape: (m, d)
    values: Tensor  # values of the maxima before rounding to configurations, shape: (k,)
    optima: Tensor  # maxima before rounding, shape: (k, d)
    starts: Tensor  # starts of the search, shape: (n, d)
    number: Tensor | None = None  # row of the best point in a list, on the CPU, shape: (1,)


class CubeSearch:
    """The unit cube: local optima by multistart, merged by mean shift, then rounded to the space.

    Args:
        dim: Number of columns of the encoding.
        round_points: Function that returns the nearest encodings of configurations, for any batch shape.
        search: Restarts and bandwidth; a search also starts from the optima of the last one.
        tkwargs: Dtype and device.

    Attributes:
        order: Place of each representative in an order of which any first part is spread over the cube.
    """

    def __init__(
        self, dim: int, round_points: Callable[[Tensor], Tensor], search: Search, tkwargs: dict
    ) -> None:
        self._round = self._on_cube = round_points
        self._search = search
        self._peaks = self._warm_starts = torch.zeros(0, dim, **tkwargs)
        self.bounds = self._box = unit_cube(self._warm_starts)
        self.near_bounds = self.bounds.cpu()  # checks do not wait for a device
        engine = SobolEngine(dim, scramble=True, seed=0)
        sobol = engine.draw(_REPRESENTATIVES, dtype=torch.float32).to(self.bounds)
        # Many functions have their maximum on a face of the cube, where no Sobol point lies.
        stretched = (0.5 + _STRETCHED * (sobol - 0.5)).clamp(0, 1)
        self._everywhere = torch.cat([sobol, stretched])
        self.order = torch.arange(len(self._everywhere), device=self.bounds.device)
        self._spread()

    def _spread(self) -> None:
        """Spread the representatives over the bounds."""
        everywhere = from_unit_cube(self._everywhere, box_of(self.near_bounds, self._everywhere))
        self._representatives = self._round(everywhere)
        # Whether every point of the box is a configuration; no point is rounded then.
        self.every_point = torch.equal(self._representatives, everywhere)

    def confine(self, box: Tensor) -> None:
        """Search a box of the cube from now on, ``2 x d``; a column may have a single value."""
        self._box, self._round = box.to(self.bounds), self._in_box
        low, high = self._box
        padded = torch.stack([(low - _PADDING).clamp_min(0), (high + _PADDING).clamp_max(1)])
        self.bounds = torch.where(high - low < _PADDING, padded, self._box)
        self.near_bounds = self.bounds.cpu()
        self._warm_starts, self._peaks = map(self._round, (self._warm_starts, self._peaks))
        self._spread()

    def _in_box(self, points: Tensor) -> Tensor:
        return self._on_cube(points).clamp(*self._box)

    def local_optima(
        self,
        function: Acquisition,
        generator: torch.Generator,
        *,
        others: bool = True,
        renews: bool = False,
    ) -> Maxima:
        """Return the local optima, found from random starts and from the optima of the last search.

        Args:
            function: Function of configurations, ``b x 1 x d -> b``.
            generator: Source of random starts, and of the choice among equal optima.
            others: Whether more than the best optimum is needed.
            renews: Whether the function has hardly changed since the last search, so that a quarter of
                the random starts is enough.
        """
        restarts = self._search.num_restarts
        if renews and len(self._warm_starts):
            restarts = -(-restarts // _RENEWED)
        rounds = not (self.every_point or is_near(self.bounds))
        result = search(
            function,
            self.near_bounds,
            restarts,
            self._search.bandwidth,
            remade=partial(self._on_space, function) if rounds else None,
            warm_starts=self._warm_starts,
            generator=generator,
        )
        self._warm_starts = result.optima.points[:_MOST_WARM_STARTS]
        points = result.more if rounds else self.on_space(function, result.optima.points)
        return Maxima(points, result.optima.values, self._warm_starts, result.starts)

    def resume_from(self, optima: Tensor) -> None:
        """Start the next search from other optima than those of the last one, ``(m, d)``."""
        self._warm_starts = optima[:_MOST_WARM_STARTS]

    def far_from(self, function: Acquisition, lone: Maxima, generator: torch.Generator) -> Tensor:
        """Return the best configuration farther than the bandwidth from a lone optimum, ``1 x d``.

        Args:
            function: The function that was searched.
            lone: Result of ``local_optima`` with a single optimum.
            generator: Source of random starts.

        Returns:
            Shape ``(0, d)`` if there is none.
        """
        optimum = Optima(lone.points[:1], lone.values[:1])

        def elsewhere(X: Tensor) -> Tensor:
            rounded = self._round(X)
            same = (rounded.squeeze(-2) == optimum.points).all(-1)
            return function(rounded).masked_fill(same, -torch.inf)

        far = far_rival(
            elsewhere,
            optimum,
            self.near_bounds,
            self._search.bandwidth,
            lone.starts,
            num_candidates=_CANDIDATES,
            generator=generator,
        )
        return optimum.points[:0] if far is None else self._round(far.point.unsqueeze(0))

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
        """Return the result of ``on_space`` and padding, without waiting for a device.

        Args:
            function: The function that orders the configurations.
            points: Points and padding behind them, shape ``(m, d)``.
            counts: Whether a row is a point and no padding, bool, ``(m,)``.

        Returns:
            Configurations and padding behind them, ``(m, d)``, and the number of configurations, ``()``.
        """
        points = torch.where(counts.unsqueeze(-1), points, points[:1])
        rounded = self._round(points)
        rows, repeated = sorted_rows(rounded)
        with torch.no_grad():
            values = function(rows.unsqueeze(-2)).masked_fill(repeated, -torch.inf)
        rows = rows[values.argsort(descending=True, stable=True)]
        same = (rounded == points).all()  # the order is kept then, as in on_space
        return torch.where(same, points, rows), torch.where(same, counts.sum(), (~repeated).sum())

    def climb(self, function: Acquisition | SmoothFunction, starts: Tensor) -> Tensor:
        """Return the best configurations reached in a few steps from good starts, ``(b, d)``.

        Args:
            function: A batch of functions, ``b x m x 1 x d -> b x m``.
            starts: A few good starts for each function, ``(b, n, d)``.
        """
        steps = _CLIMBING_STEPS
        self._peaks = maximize(function, starts, max_iter=steps, round_points=self._round).point
        return self._peaks

    def candidates(self, seen: Tensor) -> tuple[Tensor, Tensor]:
        """Return starts: representatives, and the ends of the last climb with points seen (``m x d``).

        The host does not wait for a device if the points seen are on the CPU.
        """
        # One configuration is often queried repeatedly; its copies would leave no room for others.
        different = moved(seen.unique(dim=0), self._peaks)
        return self._representatives, torch.cat([self._peaks, different])

    def representatives(self) -> Tensor:
        """Return a Sobol set, and its expansion clipped to the faces of the cube."""
        return self._representatives

    def spread(self, number: int) -> Tensor:
        """Return at most ``number`` points that are spread over the cube, ``(k, d)``."""
        return self._representatives[:number]

    def state_dict(self) -> dict[str, Any]:
        """Return the ends of the last search and the last climb, where the next ones start."""
        return {"warm_starts": self._warm_starts, "peaks": self._peaks}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        self._warm_starts = state["warm_starts"].to(self.bounds)
        self._peaks = state["peaks"].to(self.bounds)


class FiniteSearch:
    """Exhaustive search of finitely many configurations.

    Args:
        points: Encoded configurations, ``(n, d)``.
        neighbours: Row numbers of each point's neighbours, ``(n, k)`` padded with -1; ``None`` for
            arms, which have none, so that each arm is a local optimum.
        bandwidth: Least distance of a rival from a lone optimum.

    Attributes:
        order: Place of each point in an order of which any first part is spread over the list.
    """

    def __init__(self, points: Tensor, neighbours: Tensor | None, bandwidth: float) -> None:
        self._points, self._bandwidth = points, bandwidth
        self._rows = points.unsqueeze(-2)
        # Values are read from the device once; everything else is computed on the CPU.
        self._near = points.cpu()
        self.order = spread_order(self._near).to(points.device)
        self._neighbours = None if neighbours is None else neighbours.cpu()

    def local_optima(
        self,
        function: Acquisition,
        generator: torch.Generator,
        *,
        others: bool = True,
        renews: bool = False,
    ) -> Maxima:
        """Return the best point, with ties broken at random, then the other optima."""
        with torch.no_grad():
            values = function(self._rows).cpu()
        pick = any_largest(values, generator)
        order = torch.cat([pick, self._others(values, pick)]) if others else pick
        points = self._points[order.to(self._points.device, non_blocking=True)]
        return Maxima(points, values, points, self._points, pick)

    def _others(self, values: Tensor, best: Tensor) -> Tensor:
        """Return the numbers of all local maxima but the best."""
        numbers = torch.arange(len(values), device=values.device)
        if self._neighbours is None:
            return numbers[numbers != best]
        return numbers[grid_local_maxima(values, self._neighbours) & (numbers != best)]

    def far_from(self, function: Acquisition, lone: Maxima, generator: torch.Generator) -> Tensor:
        """Return the best point far from a lone one, ``1 x d``, or ``0 x d``."""
        if self._neighbours is None:
            return self._points[:0]
        assert lone.number is not None
        row = lone.number.squeeze(0)
        far, exists = far_rival_on_grid(lone.values, row, self._near, self._bandwidth)
        place = int(far)
        return self._points[place : place + 1] if bool(exists) else self._points[:0]

    def on_space(self, function: Acquisition, points: Tensor) -> Tensor:
        """Return the points themselves, which are configurations."""
        return points

    def climb(self, function: Acquisition | SmoothFunction, starts: Tensor) -> Tensor:
        """Return the first start of each function, ``(b, d)``: the best of all points comes first."""
        return starts[..., 0, :]

    def candidates(self, seen: Tensor) -> tuple[Tensor, Tensor]:
        """Return all points, and no others."""
        return self._points, self._points[:0]

    def representatives(self) -> Tensor:
        """Return all points, or a subset that is evenly spread over their list."""
        return self._points[:: -(-len(self._points) // _REPRESENTATIVES)]

    def spread(self, number: int) -> Tensor:
        """Return at most ``number`` points that are spread over the list, ``(k, d)``."""
        return self._points[self.order.argsort()[:number]]

    def state_dict(self) -> dict[str, Any]:
        """Return nothing: every call evaluates every point."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""


SpaceSearch = CubeSearch | FiniteSearch
"""Finds the maxima of functions over the configurations of a space."""


def is_listed(space: SearchSpace) -> bool:
    """Return whether the configurations of a space are few enough to evaluate all of them."""
    return space.is_finite and (space.size or 0) <= LARGEST_LATTICE


def all_points(space: SearchSpace) -> Tensor | None:
    """Return all encoded configurations of a space, ``(n, dim)``; None if they are too many."""
    if not is_listed(space):
        return None
    return torch.stack([space.encode(config) for config in space.configurations()])


def search_of(space: SearchSpace, search: Search, tkwargs: dict) -> SpaceSearch:
    """Return the search of a space: arms, a lattice small enough to list, or the unit cube."""
    points = all_points(space)
    if points is None:
        return CubeSearch(space.dim, space.round, search, tkwargs)
    neighbours = None if space.is_arms else _lattice(space).to(tkwargs["device"])
    return FiniteSearch(points.to(**tkwargs), neighbours, search.bandwidth)


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
        if not isinstance(parameter, Choice):
            there = here + torch.tensor([-1, 1])
        else:
            there = (here + torch.arange(1, size)) % size
        listed = row.unsqueeze(-1) + stride * (there - here)
        columns.append(listed.masked_fill((there < 0) | (there >= size), -1))
    return torch.cat(columns, -1)
