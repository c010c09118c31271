"""Which evaluation is next: the one with most information about the optimum of the whole, by cost."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from botorch.acquisition.analytic import LogExpectedImprovement
from torch import Tensor

from botorch_costly.acquisition import EntropySearchPerCost, representers
from botorch_costly.ask_tell.domain import Domain
from botorch_costly.ask_tell.evaluations import Evaluations
from botorch_costly.ask_tell.strategy import Proposal, Strategy
from botorch_costly.errors import HorizonExceededError, check
from botorch_costly.numerics.gumbel import without_replacement
from botorch_costly.numerics.robust import tempered
from botorch_costly.optim.lbfgs import minimize_batch
from botorch_costly.optim.smooth import by_autograd
from botorch_costly.parameters import Plain
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.subsets.belief import (
    LARGEST_SHARE,
    Beliefs,
    Sampling,
    SubsetBelief,
    TemperedData,
    units_of,
)

_LEVELS = (0.0, 0.25, 0.5)  # of the fidelities together, encoded: of 1/512 to 1, up to about 1/23
_NEAR = 0.1  # how far around the best configurations is looked
_CLIMBED, _STEPS = 4, 15
_SAME = 1e-9  # distance of two points that are one evaluation
_LARGEST = 1e150  # size of values: their squares are finite


class Choice(NamedTuple):
    """What is evaluated next."""

    point: Tensor  # configuration and fidelities, encoded, shape: (d,)
    reason: str


class SubsetStrategy(Strategy):
    """Chooses by information about the optimum of the whole, by unit of cost.

    Args:
        domain: Configurations and fidelities; the upper bounds of the fidelities are the whole.
        sampling: Settings of the draws of hyperparameters and of the search.
        overhead: Cost of each evaluation beside its own.
        generator: Source of randomness, on the CPU.
    """

    def __init__(
        self, domain: Domain, sampling: Sampling, overhead: float, generator: torch.Generator
    ) -> None:
        assert domain.fidelities is not None
        space, fidelities = domain.space, domain.fidelities
        self._like = torch.empty(0, **domain.tkwargs)
        listed = None if domain.listed is None else domain.listed.to(self._like)
        self._space, self._fidelities, self._listed = space, fidelities, listed
        self._arms = None if listed is None else listed[:, : space.dim].unique(dim=0)
        self._sampling, self._overhead, self._generator = sampling, overhead, generator
        self._belief = SubsetBelief(space, fidelities.dim, sampling, generator)
        self._first = sampling.first or 2 * (space.dim + fidelities.dim) + 2
        self._latest: tuple[int, Beliefs] | None = None  # after so many evaluations

    def suggest(self, seen: Evaluations[Any, Any]) -> Proposal:
        """Return the next evaluation.

        Raises:
            HorizonExceededError: If all evaluations of a list have been asked for.
        """
        point, reason = self.choose(_tempered(seen), seen.pending_points)
        config, fidelities = seen.domain.decode(point)
        return Proposal(config, reason, details={"fidelities": fidelities})

    def predict(self, seen: Evaluations[Any, Any], points: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return the posterior of configurations at the target; None before a finite value.

        No later choice depends on it.
        """
        if seen.best is None:
            return None
        known = _tempered(seen)
        level, spread = units_of(known.rewards)
        mean = level + self._mean(known, points).double() * spread
        if self._latest is None:  # of a single value
            return mean, torch.ones_like(mean) * spread
        return mean, spread * self._belief.std_at_target(self._latest[1].model, points).double()

    def best(self, seen: Evaluations[Any, Any]) -> Mapping[str, Plain] | None:
        """Return the configuration with the best mean at the target; None before a finite value."""
        if seen.best is None:
            return None
        known = _tempered(seen)
        configs = known.points[:, : self._space.dim] if self._arms is None else self._arms
        return seen.domain.config_at(configs[self._mean(known, configs).argmax()])

    def choose(self, known: TemperedData, pending: Tensor) -> Choice:
        """Return the choice.

        Raises:
            HorizonExceededError: If all evaluations of a list have been asked for.
        """
        left = self._left(torch.cat([known.points, pending]))
        asked = len(known.points) + len(pending)
        if asked < self._first or len(known.points) < 2:
            return Choice(self._at_first(asked, left), "first evaluations")
        beliefs = self._belief.learn(known, pending)
        self._latest = len(known.points), beliefs
        overhead = min(self._overhead / beliefs.unit, LARGEST_SHARE)
        acquisition = EntropySearchPerCost(
            beliefs.model, self._points(beliefs), beliefs.cost, overhead=overhead
        )
        pool = self._pool(known, left)
        with torch.no_grad():
            values = acquisition(pool.unsqueeze(-2))
        everything = self._listed is None
        point = self._climbed(acquisition, pool, values) if everything else pool[values.argmax()]
        return Choice(point, "most information by cost")

    def _mean(self, known: TemperedData, configs: Tensor) -> Tensor:
        """Return the standardized mean of configurations (``n x dim``) at the target, ``(n,)``."""
        if len(known.points) < 2:
            return configs.new_zeros(len(configs))
        if self._latest is None or self._latest[0] != len(known.points):
            state = self.state_dict()
            beliefs = self._belief.learn(known, known.points[:0])
            self.load_state_dict(state)
            self._latest = len(known.points), beliefs
        return self._belief.at_target(self._latest[1].model, configs)

    def _left(self, asked: Tensor) -> Tensor | None:
        if self._listed is None:
            return None
        away = (self._listed.unsqueeze(1) - asked).abs().amax(-1)  # encoded once more: rounding
        gone = (away < _SAME).any(-1)
        left = self._listed[~gone]
        expected = f"at most {len(self._listed)} evaluations, all that are listed"
        check(len(left) > 0, "ask", expected, len(self._listed) + 1, HorizonExceededError)
        return left

    def _at_first(self, number: int, left: Tensor | None) -> Tensor:
        """Return a random configuration at a low fidelity, of a list the nearest one."""
        config = self._sampled(self._space, 1)[0]
        fidelities = self._fidelities.dim
        level = torch.full((fidelities,), _LEVELS[number % len(_LEVELS)] / fidelities).to(config)
        wanted = torch.cat([config, self._fidelities.round(level)])
        if left is None:
            return wanted
        # Fidelities first: what is dear is not what was meant.
        away = (left - wanted).abs()
        weight = torch.ones_like(wanted)
        weight[self._space.dim :] = 10.0
        return left[(away * weight).sum(-1).argmin()]

    def _sampled(self, space: SearchSpace, count: int) -> Tensor:
        return space.sample(count, self._generator).to(self._like)

    def _normal(self, shape: torch.Size) -> Tensor:
        drawn = torch.randn(shape, generator=self._generator, dtype=torch.float64)
        return drawn.to(self._like)

    @torch.no_grad()
    def _points(self, beliefs: Beliefs) -> Tensor:
        """Return points of which one is the optimum, at the target."""
        count, dim = self._sampling.points, self._space.dim
        bounds = self._like.new_zeros(2, dim + self._fidelities.dim)
        bounds[1] = 1.0
        target = {dim + k: 1.0 for k in range(self._fidelities.dim)}
        if self._arms is None:
            drawn = representers(
                beliefs.model, bounds, count, beliefs.best, self._generator, fixed=target
            )
            drawn[:, :dim] = self._space.round(drawn[:, :dim])
            return drawn
        rows = torch.cat([self._arms, torch.ones(len(self._arms), len(target)).to(self._arms)], -1)
        promise = LogExpectedImprovement(beliefs.model, beliefs.best)(rows.unsqueeze(-2))
        coins = torch.rand(len(rows), generator=self._generator, dtype=torch.float64).to(rows)
        return rows[without_replacement(promise, count, coins)]

    def _pool(self, known: TemperedData, left: Tensor | None) -> Tensor:
        """Return evaluations to look at: everywhere, and around the best configurations."""
        count = self._sampling.candidates
        if left is not None:
            order = torch.randperm(len(left), generator=self._generator)
            return left[order[:count]]
        half = count // 2
        best = known.points[known.rewards.topk(min(5, len(known.rewards))).indices]
        near = best[torch.randint(len(best), (count - half,), generator=self._generator)]
        near = near[:, : self._space.dim]
        away = self._normal(near.shape)
        configs = torch.cat(
            [
                self._sampled(self._space, half),
                self._space.round((near + _NEAR * away).clamp(0, 1)),
            ]
        )
        return torch.cat([configs, self._sampled(self._fidelities, len(configs))], -1)

    def _climbed(self, acquisition: Any, pool: Tensor, values: Tensor) -> Tensor:
        """Return the best evaluation that is reached from the best of the pool."""
        starts = pool[values.topk(min(_CLIMBED, len(pool))).indices]
        cube = torch.stack([torch.zeros_like(starts[0]), torch.ones_like(starts[0])])
        loss = by_autograd(lambda X: -acquisition(X.unsqueeze(-2)))
        end = self._rounded(minimize_batch(loss, starts, cube, max_iter=_STEPS).point)
        both = torch.cat([starts, end])
        with torch.no_grad():
            reached = acquisition(both.unsqueeze(-2)).nan_to_num(-torch.inf)
        return both[reached.argmax()]

    def _rounded(self, points: Tensor) -> Tensor:
        dim = self._space.dim
        configs = self._space.round(points[:, :dim])
        return torch.cat([configs, self._fidelities.round(points[:, dim:])], -1)

    def state_dict(self) -> dict[str, Any]:
        """Return tensors and plain values that the next choice depends on."""
        generator, belief = self._generator.get_state(), self._belief.state_dict()
        return {"chooser": {"generator": generator, "belief": belief}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        saved = state["chooser"]
        self._generator.set_state(saved["generator"].cpu())
        self._belief.load_state_dict(saved["belief"])
        self._latest = None


def _tempered(seen: Evaluations[Any, Any]) -> TemperedData:
    """Return the evaluations, outliers tempered; failures have the lowest value that is left."""
    rewards, points = seen.values, seen.points
    finite = ~rewards.isnan()
    rewards[finite] = tempered(rewards[finite].clamp(-_LARGEST, _LARGEST))
    lowest = float(rewards[finite].min()) if bool(finite.any()) else 0.0
    rewards = rewards.nan_to_num(lowest).to(points.device)
    return TemperedData(points, rewards, seen.costs.to(rewards))
