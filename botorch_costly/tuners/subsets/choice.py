"""The strategy of ``SubsetOptimizer``: it maximizes information about the optimum per unit of cost."""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from botorch_costly.acquisition import EntropySearchPerCost, representers
from botorch_costly.acquisition.representers import log_improvement
from botorch_costly.ask_tell.domain import Domain
from botorch_costly.ask_tell.evaluations import Evaluations
from botorch_costly.ask_tell.points import SAME, among, perturbed, unasked
from botorch_costly.ask_tell.state import without_trace
from botorch_costly.ask_tell.strategy import START, Proposal, Strategy
from botorch_costly.models.ensemble import HyperparameterEnsemble
from botorch_costly.numerics.gumbel import without_replacement
from botorch_costly.numerics.robust import tempered
from botorch_costly.optim.maximize import maximize
from botorch_costly.optim.starts import unit_cube
from botorch_costly.parameters import Plain
from botorch_costly.randomness import generator_of
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.earlier import EarlierStudies
from botorch_costly.tuners.subsets.belief import (
    LARGEST_SHARE,
    Beliefs,
    Sampling,
    SubsetBelief,
    TemperedData,
    units_of,
)
from botorch_costly.tuners.subsets.published import Fabolas, PublishedBelief

_LEVELS = (0.0, 0.25, 0.5)  # encoded fidelities of the first evaluations; 0.5 is 1/23 of 1/512 to 1
_AWAY = 0.1  # standard deviation of random points around the best configurations
_STARTS, _STEPS = 4, 15  # of the local search
_SAME_IN_DESIGN = 1e-6  # distance of two encodings in single precision
_DOUBT = 0.5  # standard deviations that a recommended mean is ahead of others
_HIGHEST, _FEWEST = 1 / 3, 16  # share and least number of configurations, by their highest fidelity
_AHEAD, _OF = (
    4,
    5,
)  # four of five other values, at no higher fidelities, are behind one of the others
_LARGEST = 1e150  # size of values: their squares are finite


class SubsetStrategy(Strategy):
    """Chooses by information about the optimum at the target, per unit of cost.

    Args:
        domain: Domain of configurations and fidelities; the fidelities' upper bounds are the target.
        sampling: Settings of the draws of hyperparameters and of the search.
        overhead: Fixed cost of each evaluation, in addition to the cost told.
        generator: Source of randomness, on the CPU.
        earlier: Earlier studies, perhaps none.
        fabolas: Model, first evaluations and incumbent as published; ours if omitted.
    """

    def __init__(
        self,
        domain: Domain,
        sampling: Sampling,
        overhead: float,
        generator: torch.Generator,
        earlier: EarlierStudies,
        fabolas: Fabolas | None = None,
    ) -> None:
        assert domain.fidelities is not None
        space, fidelities = domain.space, domain.fidelities
        self._like = domain.stacked([])
        listed = None if domain.listed is None else domain.listed.to(self._like)
        self._space, self._fidelities, self._listed = space, fidelities, listed
        self._arms = None if listed is None else listed[:, : space.dim].unique(dim=0)
        self._sampling, self._overhead, self._generator = sampling, overhead, generator
        self._portfolio = earlier.portfolio(self._arms)
        if fabolas is None:
            self._belief = SubsetBelief(space, fidelities, sampling, generator, earlier)
            self._first = sampling.first or 2 * (len(space.names) + fidelities.dim) + 2
            self._design, self._doubt, self._evidence = self._like, _DOUBT, True
        else:
            self._belief = PublishedBelief(space, fidelities, sampling, generator)
            self._first, self._doubt, self._evidence = sampling.first or 0, 0.0, False
            self._design = fabolas.design(domain, generator)
        # The model of the data alone, with the number of evaluations.
        self._latest: tuple[int, HyperparameterEnsemble] | None = None

    def suggest(self, seen: Evaluations[Any, Any]) -> Proposal:
        """Return the next evaluation.

        Raises:
            HorizonExceededError: If all evaluations of a list have been asked for.
        """
        point, reason = self.choose(_tempered(seen), seen.pending_points)
        config, fidelities = seen.domain.decode(point)
        return Proposal(config, reason, details={"fidelities": fidelities})

    def started(self, seen: Evaluations[Any, Any], config: Mapping[str, Plain]) -> Proposal:
        """Return the start at the fidelities of the evaluation that would be first."""
        return replace(self.suggest(seen), config=config, reason=START)

    def predict(self, seen: Evaluations[Any, Any], points: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return the posterior of configurations at the target; None before a finite value.

        No later choice depends on it.
        """
        if seen.best is None:
            return None
        data = _tempered(seen)
        level, spread = units_of(data.rewards)
        if len(data.points) < 2:
            mean = level.expand(len(points))
            return mean, torch.ones_like(mean) * spread
        model = self._model(data)
        mean = level + self._belief.at_target(model, points).double() * spread
        return mean, spread * self._belief.std_at_target(model, points).double()

    def best(self, seen: Evaluations[Any, Any]) -> Mapping[str, Plain] | None:
        """Return the evaluated configuration that is surely good at the target; None before a value.

        It has the largest mean less half a standard deviation: of equal means, that of a small part may
        be far off. What was seen of it speaks for it, see ``recommendable`` and ``supported``. Other
        configurations of a list would be extrapolated twice, to the configuration and to the target.
        """
        if seen.best is None:
            return None
        data = _tempered(seen)
        configs = data.points[:, : self._space.dim].unique(dim=0)
        if len(data.points) < 2:
            return seen.domain.config_at(configs[0])
        model = self._model(data)
        sure = self._belief.at_target(model, configs)
        sure = sure - self._doubt * self._belief.std_at_target(model, configs)
        allowed = recommendable(configs, seen.points, seen.values)
        if self._evidence:
            allowed = supported(configs, seen.points, seen.values, allowed)
        return seen.domain.config_at(configs[sure.masked_fill(~allowed, -torch.inf).argmax()])

    def choose(self, data: TemperedData, pending: Tensor) -> tuple[Tensor, str]:
        """Return the encoded configuration and fidelities of the next evaluation, and a reason.

        Raises:
            HorizonExceededError: If all evaluations of a list have been asked for.
        """
        left, asked = self._listed, torch.cat([data.points, pending])
        if left is not None:
            left = left[unasked(left, asked)]
        design = self._design[~among(self._design, asked, _SAME_IN_DESIGN)]
        if len(design):
            return design[0], "first evaluations"
        if len(asked) < self._first or len(data.points) < 2:
            return self._first_point(len(asked), left), "first evaluations"
        self._latest, beliefs = None, self._belief.learn(data, pending)
        overhead = min(self._overhead / beliefs.unit, LARGEST_SHARE)
        acquisition = EntropySearchPerCost(
            beliefs.model, self._representers(beliefs), beliefs.cost, overhead=overhead
        )
        best = maximize(
            acquisition,
            self._pool(data, left),
            num_starts=_STARTS,
            max_iter=_STEPS if left is None else 0,
            round_points=self._rounded,
        )
        return best.point, "most information by cost"

    def _model(self, data: TemperedData) -> HyperparameterEnsemble:
        """Return the model of the data, which ``best`` and ``predict`` share: a fit takes long."""
        if self._latest is None or self._latest[0] != len(data.points):
            model = self._belief.latest(data)
            if model is None:
                # A generator of its own: what is read does not depend on the draws of decisions.
                with without_trace(self._belief):
                    model = self._belief.fitted(data, generator_of(0))
            self._latest = len(data.points), model
        return self._latest[1]

    def _first_point(self, number: int, left: Tensor | None) -> Tensor:
        """Return a configuration at a low fidelity; of a list, the nearest evaluation.

        The first are of the portfolio of earlier studies, all others random.
        """
        config = self._sampled(self._space, 1)[0]
        if number < len(self._portfolio):
            config = self._portfolio[number]
        fidelities = self._fidelities.dim
        level = torch.full((fidelities,), _LEVELS[number % len(_LEVELS)] / fidelities).to(config)
        wanted = torch.cat([config, self._fidelities.round(level)])
        if left is None:
            return wanted
        weight = torch.ones_like(wanted)
        weight[self._space.dim :] = 10.0  # an expensive fidelity would defeat the purpose
        return left[((left - wanted).abs() * weight).sum(-1).argmin()]

    def _sampled(self, space: SearchSpace, count: int) -> Tensor:
        return space.sample(count, self._generator).to(self._like)

    @torch.no_grad()
    def _representers(self, beliefs: Beliefs) -> Tensor:
        """Return points at the target, of which one is taken to be the optimum."""
        count, dim, cube = self._sampling.points, self._space.dim, unit_cube(self._like)
        target = {dim + k: 1.0 for k in range(self._fidelities.dim)}
        if self._arms is None:
            drawn = representers(
                beliefs.model, cube, count, beliefs.best, self._generator, fixed=target
            )
            drawn[:, :dim] = self._space.round(drawn[:, :dim])
            return drawn
        rows = torch.cat([self._arms, torch.ones(len(self._arms), len(target)).to(self._arms)], -1)
        improvement = log_improvement(beliefs.model, rows, beliefs.best)
        coins = torch.rand(len(rows), generator=self._generator, dtype=torch.float64).to(rows)
        return rows[without_replacement(improvement, count, coins)]

    def _pool(self, data: TemperedData, left: Tensor | None) -> Tensor:
        """Return random evaluations, half of them around the best configurations."""
        count = self._sampling.candidates
        if left is not None:
            order = torch.randperm(len(left), generator=self._generator)
            return left[order[:count]]
        half = count // 2
        best = data.points[data.rewards.topk(min(5, len(data.rewards))).indices]
        good = torch.cat([best[:, : self._space.dim], self._portfolio])
        near = good[torch.randint(len(good), (count - half,), generator=self._generator)]
        around = perturbed(self._space, near, _AWAY, self._generator)
        configs = torch.cat([self._sampled(self._space, half), around])
        return torch.cat([configs, self._sampled(self._fidelities, len(configs))], -1)

    def _rounded(self, points: Tensor) -> Tensor:
        configs, fidelities = points.split([self._space.dim, self._fidelities.dim], -1)
        return torch.cat([self._space.round(configs), self._fidelities.round(fidelities)], -1)

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


def recommendable(
    configs: Tensor,  # shape: (m, d)
    points: Tensor,  # configurations and fidelities of all evaluations, shape: (n, d + f)
    values: Tensor,  # NaN for a failure, shape: (n,)
) -> Tensor:  # bool, shape: (m,)
    """Return which configurations may be recommended, whatever a model predicts.

    A configuration whose evaluations at the highest fidelity it was tried at have all failed may not, nor
    may one whose best value at the target is below the median of the values there. If there is no other,
    those with a finite value may.
    """
    dim, values = configs.shape[-1], values.to(configs.device)
    its, fidelity, finite = _tried(configs, points), points[:, dim:].sum(-1), values.isfinite()
    succeeded, failed = (
        torch.where(its & which, fidelity, -torch.inf).amax(-1) for which in (finite, ~finite)
    )
    at_target = finite & (points[:, dim:] >= 1 - SAME).all(-1)
    value = torch.where(its & at_target, values, -torch.inf).amax(-1)
    low = torch.zeros_like(value, dtype=torch.bool)
    if bool(at_target.any()):
        low = value.isfinite() & (value < values[at_target].quantile(0.5))
    allowed = (failed <= succeeded) & ~low
    return allowed if bool(allowed.any()) else succeeded.isfinite()


def supported(configs: Tensor, points: Tensor, values: Tensor, allowed: Tensor) -> Tensor:
    """Return which of the allowed configurations their own evaluations speak for, bool, ``(m,)``.

    A small part may show nothing of a configuration. The model then tells it by its neighbours, which is
    false beyond a cliff. So it is one of the third that were tried at the highest fidelities, and of at
    least sixteen, or its value at its highest fidelity is ahead of four fifths of the values that no more
    data led to. Arguments are those of ``recommendable`` and its result; one that is allowed remains.
    """
    dim, values = configs.shape[-1], values.to(configs.device)
    fidelity, known = points[:, dim:].sum(-1), values.isfinite()
    its = known & _tried(configs, points)
    reached = torch.where(its, fidelity, -torch.inf).amax(-1)
    highest = reached[allowed].sort(descending=True).values
    kept = min(max(_FEWEST, math.ceil(_HIGHEST * len(highest))), len(highest))
    upper = reached >= highest[kept - 1] - SAME

    level = reached.unsqueeze(-1)
    best = torch.where(its & (fidelity >= level - SAME), values, -torch.inf).amax(-1)
    rivals = known & (fidelity <= level + SAME)  # and itself
    others, behind = rivals.sum(-1) - 1, (rivals & (values <= best.unsqueeze(-1))).sum(-1) - 1
    return allowed & (upper | (_OF * behind >= _AHEAD * others))


def _tried(configs: Tensor, points: Tensor) -> Tensor:
    """Return which evaluations (``n x d``) are of which configuration (``m x dim``), bool, ``m x n``."""
    return (configs.unsqueeze(1) - points[:, : configs.shape[-1]]).abs().amax(-1) <= SAME


def _tempered(seen: Evaluations[Any, Any]) -> TemperedData:
    """Return the evaluations with tempered outliers; failures have the lowest of these values."""
    rewards, points = seen.values, seen.points
    finite = ~rewards.isnan()
    rewards[finite] = tempered(rewards[finite].clamp(-_LARGEST, _LARGEST))
    lowest = float(rewards[finite].min()) if bool(finite.any()) else 0.0
    rewards = rewards.nan_to_num(lowest).to(points.device)
    return TemperedData(points, rewards, seen.costs.to(rewards))
