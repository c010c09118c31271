"""The strategy of ``TransferOptimizer``: it maximizes an acquisition function over a pool of points."""

from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from botorch_costly.ask_tell.design import sobol
from botorch_costly.ask_tell.domain import Domain
from botorch_costly.ask_tell.evaluations import Evaluations
from botorch_costly.ask_tell.points import SAME, among, any_largest, perturbed, unasked
from botorch_costly.ask_tell.search import CLOSE, all_points
from botorch_costly.ask_tell.state import without_trace
from botorch_costly.ask_tell.strategy import Proposal, Strategy
from botorch_costly.models.task_ensemble import TaskEnsemble
from botorch_costly.numerics.portfolio import greedy_portfolio
from botorch_costly.numerics.robust import Affine
from botorch_costly.optim.difference_hessians import descend, descend_by_pairs
from botorch_costly.optim.maximize import maximize
from botorch_costly.optim.starts import unit_cube
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.transfer.advice import SPREAD, units_of_target
from botorch_costly.tuners.transfer.belief import TargetData, bounded, plausible, target_data_of
from botorch_costly.tuners.transfer.evidence import EvidenceWeighting
from botorch_costly.tuners.transfer.fears import fears_of
from botorch_costly.tuners.transfer.gaps import GapWeighting
from botorch_costly.tuners.transfer.options import ByEvidence, Robustness
from botorch_costly.tuners.transfer.weighting import Acquisition, Belief, TaskWeighting

_EVERYWHERE, _OF_TASKS, _AROUND = 512, 128, 128  # points of a pool
_AWAY = 0.1  # standard deviation of random points around the best configurations
_STARTS, _LOOKED_AT = 6, 64  # starts of the local search, chosen among the best points of the pool
_MANY = 100  # evaluations from which on only these points are looked at
_LEFT = 8  # points of which one is evaluated if no point improves
# Distances, times the square root of the dimension: nothing is refined beside evaluations, and pending
# ones will soon inform about their neighbourhood.
_BESIDE, _UNDER_WAY = 0.01, 0.05
_CROWD = 2  # evaluations side by side that rule out their neighbourhood
_APART = 0.1  # distance of starts, times the square root of the dimension
_SMALL = 2**21  # multiplications of a step of the search: fewer cost less than its overhead
_SLOPE = 1e-3  # gradient at which the search ends, in ranges of the acquisition function
_NARROW = 1e-12  # least range of the acquisition function
_DECIMALS = 4  # digits of shares and weights in records
# Reasons of the first evaluations.
_PROPOSED, _BEST = "proposed", "of the portfolio of the tasks' best"
_DRAWN = "drawn at random, as only advice is there"


class Asked(NamedTuple):
    """The configurations that were asked for."""

    points: Tensor  # all of them, n x dim
    pending: Tensor  # those without an outcome, m x dim


class TransferStrategy(Strategy):
    """Maximizes an upper bound in which earlier tasks have a share.

    Args:
        domain: Domain of the configurations.
        tasks: Earlier tasks, fitted.
        robust: Rule that decides the share of the tasks.
        generator: Source of randomness, on the CPU.
        warm_start: Number of first evaluations that a portfolio of the tasks' best decides.
        proposed: Points that are evaluated first, ``n x dim``, none if omitted; in a list, the nearest.
        has_units: Whether the tasks have the units of the target. If not, all of them are advice: the
            target's values are standardized, and random evaluations follow a proposal.
    """

    def __init__(
        self,
        domain: Domain,
        tasks: TaskEnsemble,
        robust: Robustness,
        generator: Generator,
        warm_start: int = 0,
        *,
        proposed: Tensor | None = None,
        has_units: bool = True,
    ) -> None:
        space = domain.space
        self._has_units = has_units
        self._space, self._generator, self._tasks = space, generator, tasks
        self._plausible = plausible(tasks)
        listed = all_points(space) if domain.listed is None else domain.listed
        self._listed = listed = None if listed is None else listed.to(tasks.inputs)
        self._pool = _fixed_pool(space, tasks) if listed is None else listed
        proposed = self._pool[:0] if proposed is None else proposed.to(tasks.inputs)
        if listed is not None:
            proposed = listed[torch.cdist(proposed, listed).argmin(-1)]
        known = self._pool
        if tasks.count == 1 and has_units and isinstance(robust, ByEvidence):
            known, warm_start = _observed(tasks, self._pool, listed), max(warm_start, 1)
        best = known[_portfolio(tasks, known, warm_start)]
        begun = torch.cat([proposed, best])
        spread = self._drawn(SPREAD if len(proposed) and not has_units else 0, begun)
        self._first = torch.cat([begun, spread])
        self._reasons = [_PROPOSED] * len(proposed) + [_BEST] * len(best) + [_DRAWN] * len(spread)
        self.weighting = weighting_of(tasks, robust, self._pool)
        self._small = _STARTS * (space.dim + 1) * tasks.entries <= _SMALL

    def suggest(self, seen: Evaluations[Any, Any]) -> Proposal:
        """Return the next evaluation, with the share and the weights of the tasks.

        Raises:
            HorizonExceededError: If all configurations of a list have been asked for.
        """
        belief = self.weighting.learn(self._data(seen))
        point, reason = self.choose(belief, seen.pending_points)
        weights = tuple(round(float(weight), _DECIMALS) for weight in self.weighting.weights)
        details = {"share": round(self.weighting.share, _DECIMALS), "weights": weights}
        return Proposal(seen.domain.config_at(point), reason, details=details)

    def predict(self, seen: Evaluations[Any, Any], points: Tensor) -> tuple[Tensor, Tensor]:
        """Return the posterior of the target, in which the tasks have their present share.

        No later choice depends on it.
        """
        with without_trace(self):
            belief = self.weighting.learn(self._data(seen))
            acquisition = self.weighting.acquisition(belief, self._generator)
            with torch.no_grad():
                mean = acquisition.believed(points, 0.0)
                std = acquisition.believed(points, 1.0) - mean
        units = self._units(seen.values)
        return units.center + units.scale * mean, units.scale * std

    def _data(self, seen: Evaluations[Any, Any]) -> TargetData:
        """Return the target's data, with implausible values as failures."""
        values = seen.values.to(self._tasks.inputs)
        units = self._units(values)
        values = bounded((values - units.center) / units.scale, self._tasks)
        return target_data_of(seen.points, values, self._plausible)

    def _units(self, values: Tensor) -> Affine:
        return Affine(0.0, 1.0) if self._has_units else units_of_target(values)

    def choose(self, belief: Belief, pending: Tensor) -> tuple[Tensor, str]:
        """Return the encoded configuration of the next evaluation, shape ``(dim,)``, and a reason.

        Raises:
            HorizonExceededError: If all configurations of a list have been asked for.
        """
        data = belief.data
        number = self._next_first(torch.cat([data.points, data.failures, pending]))
        if number is not None:
            return self._first[number], self._reasons[number]
        acquisition = self.weighting.acquisition(belief, self._generator)
        # A pending evaluation may still fail: it changes the values that are expected, not the fears.
        fears = fears_of(acquisition, data.failures, data.points) if len(data.failures) else None
        if len(pending):
            with torch.no_grad():
                data = data.with_believed(pending, acquisition.believed(pending, 0.0))
            belief = self.weighting.believed(data)
            acquisition = self.weighting.acquisition(belief, self._generator)
        if fears is not None:
            acquisition = fears.feared(acquisition, self._pool)
        asked = Asked(torch.cat([data.points, data.failures]), pending)
        with torch.no_grad():
            values = acquisition.at_pool()
            if self._listed is not None:
                values = values.masked_fill(~unasked(self._listed, asked.points), -torch.inf)
                return self._pool[any_largest(values, self._generator)][0], acquisition.reason
            around = self._around_best(data)
            pool = torch.cat([self._pool, around])
            values = torch.cat([values, acquisition.at(around)]) if len(around) else values
        return self._searched(acquisition, pool, values, asked), acquisition.reason

    def _drawn(self, count: int, begun: Tensor) -> Tensor:
        """Return random configurations, ``count x dim``; of a list, others than those evaluated first."""
        if not count:
            return self._pool[:0]
        if self._listed is None:
            return self._space.sample(count, self._generator).to(self._pool)
        left = self._listed[~among(self._listed, begun, SAME)]
        return left[torch.randperm(len(left), generator=self._generator)[:count]]

    def _next_first(self, asked: Tensor) -> int | None:
        """Return the number of the next of the first evaluations; None after all of them.

        A proposal comes before all others. Otherwise it is the number of the evaluation; if the user
        evaluated others in between or cancelled some, that one may have been asked for: then it is the
        first that was not.

        Args:
            asked: Encoded configurations that were asked for, ``n x dim``.
        """
        left = ~among(self._first, asked, SAME)
        proposed = left[: self._reasons.count(_PROPOSED)]
        if bool(proposed.any()):
            return int(proposed.int().argmax())
        number = len(asked)
        if number >= len(self._first) or not bool(left.any()):
            return None
        return number if bool(left[number]) else int(left.int().argmax())

    def _around_best(self, data: TargetData) -> Tensor:
        """Return random configurations around the best ones."""
        if not len(data.values):
            return data.points
        best = data.points[data.values.topk(min(4, len(data.values))).indices]
        near = best[torch.randint(len(best), (_AROUND,), generator=self._generator)]
        return perturbed(self._space, near, _AWAY, self._generator)

    @torch.no_grad()
    def _searched(
        self, acquisition: Acquisition, pool: Tensor, values: Tensor, asked: Asked
    ) -> Tensor:
        """Return the best configuration of a local search from the pool, if possible a new one."""
        low, high = values.aminmax()
        width = (high - low).clamp_min(_NARROW)
        if len(asked.points) > _MANY:
            best = values.topk(min(_LOOKED_AT, len(pool))).indices
            pool, values = pool[best], values[best]
        values = values.masked_fill(_useless(acquisition, pool, asked), -torch.inf)
        starts = _apart(pool, values)
        climb = acquisition.climber(len(starts))

        def loss(X: Tensor) -> tuple[Tensor, Tensor]:
            value, slope = climb(X)
            return (high - value) / width, -slope / width

        search = descend if self._small else descend_by_pairs
        choice = maximize(
            lambda X: climb(X.squeeze(-2))[0],
            starts,
            minimize=partial(search, loss, bounds=unit_cube(starts), gradient_tolerance=_SLOPE),
            round_points=self._space.round,
            excluded=partial(_useless, acquisition, asked=asked),
        ).point
        if _is_stuck(acquisition, choice, asked):
            return _least_known(acquisition, pool, asked)
        return choice

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values that the next choice depends on."""
        generator, weighting = self._generator.get_state(), self.weighting.state_dict()
        return {"chooser": {"generator": generator, "sharing": weighting}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        saved = state["chooser"]
        self._generator.set_state(saved["generator"].cpu())
        self.weighting.load_state_dict(saved["sharing"])


def _apart(pool: Tensor, values: Tensor) -> Tensor:
    """Return the best points of a pool; points with no better one nearby come first."""
    best = values.topk(min(_LOOKED_AT, len(pool))).indices
    points = pool[best]
    beaten = _are_near(points, points, _APART).tril(-1).any(-1)
    return points[beaten.int().argsort(stable=True)[:_STARTS]]


def _useless(acquisition: Acquisition, points: Tensor, asked: Asked) -> Tensor:
    """Return which points are not worth an evaluation, bool; not all of them if that can be avoided.

    They lie beside an evaluation, near several evaluations or a pending one, or the target alone rules
    them out.
    """
    old = among(points, asked.points, CLOSE)
    crowded = old | (_are_near(points, asked.points, _BESIDE).sum(-1) >= _CROWD)
    crowded |= _are_near(points, asked.pending, _UNDER_WAY).any(-1)
    for ruled_out in (crowded | _no_better(acquisition, points), crowded):
        if not bool(ruled_out.all()):
            return ruled_out
    return old


def _no_better(acquisition: Acquisition, points: Tensor) -> Tensor:
    if acquisition.lacking is None:
        return torch.zeros_like(points[:, 0], dtype=torch.bool)
    return acquisition.lacking(points) > 0


def _is_stuck(acquisition: Acquisition, choice: Tensor, asked: Asked) -> bool:
    """Return whether a choice, shape ``(dim,)``, is beside an evaluation and ruled out by the target."""
    point = choice.unsqueeze(0)
    near = _are_near(point, asked.points, _BESIDE).any()
    return bool(near & _no_better(acquisition, point).any())


def _least_known(acquisition: Acquisition, pool: Tensor, asked: Asked) -> Tensor:
    """Return the best of the few points that the target alone rules out the least.

    The points are apart from the evaluations, as far as there is room.
    """
    assert acquisition.lacking is not None
    away = torch.cdist(pool, asked.points).amin(-1)
    apart = away >= (0.5 * away.amax()).clamp_max(_APART * pool.shape[-1] ** 0.5)
    lacking = acquisition.lacking(pool).masked_fill(~apart, torch.inf)
    few = pool[lacking.topk(min(_LEFT, len(pool)), largest=False).indices]
    return few[acquisition.at(few).argmax()]


def _are_near(points: Tensor, others: Tensor, distance: float) -> Tensor:
    """Return which pairs are closer than a distance times the square root of the dimension, ``m x n``."""
    return torch.cdist(points, others) < distance * points.shape[-1] ** 0.5


def weighting_of(tasks: TaskEnsemble, robust: Robustness, pool: Tensor) -> TaskWeighting:
    """Return the rule that decides the share of the tasks, for decisions on points of a fixed pool."""
    if isinstance(robust, ByEvidence):
        return EvidenceWeighting(tasks, robust, pool)
    return GapWeighting(tasks, robust, pool)


def _fixed_pool(space: SearchSpace, tasks: TaskEnsemble) -> Tensor:
    """Return Sobol configurations, and the best ones of the tasks."""
    each = max(1, min(_OF_TASKS // tasks.count, tasks.targets.shape[1]))
    values = tasks.targets.masked_fill(~tasks.seen, -torch.inf)
    best = values.topk(each, dim=-1)
    rows = best.indices.unsqueeze(-1).expand(-1, -1, space.dim)
    inputs = tasks.inputs.gather(1, rows)[best.values > -torch.inf]
    order = best.values[best.values > -torch.inf].argsort(descending=True, stable=True)
    pool = torch.cat([sobol(space, _EVERYWHERE, seed=0).to(inputs), inputs[order[:_OF_TASKS]]])
    return space.round(pool).unique(dim=0)


def _observed(tasks: TaskEnsemble, pool: Tensor, listed: Tensor | None) -> Tensor:
    """Return the configurations that a single study has observed, those of a list if there is one.

    Of few values a single process often learns that a parameter does not matter, and its largest mean is
    at an edge where nothing was observed. Several studies correct each other.
    """
    observed = tasks.inputs[0, tasks.seen[0]]
    if listed is None:
        return observed
    here = among(listed, observed, SAME)
    return listed[here] if bool(here.any()) else pool


def _portfolio(tasks: TaskEnsemble, pool: Tensor, count: int) -> Tensor:
    """Return the row numbers of the first evaluations in a pool."""
    if not count:
        return torch.zeros(0, dtype=torch.long)
    with torch.no_grad():
        return greedy_portfolio(tasks.means(pool), min(count, len(pool)))
