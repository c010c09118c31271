"""The model of ``SubsetOptimizer``: values and costs over configurations and fidelities."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import torch
from botorch.exceptions.warnings import InputDataWarning
from botorch.models.deterministic import DeterministicModel
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from botorch_costly.calls import advised
from botorch_costly.errors import NumericalError, check_count
from botorch_costly.likelihoods import SubsetNoiseLikelihood
from botorch_costly.models.ensemble import (
    HyperparameterEnsemble,
    Walkers,
    assigned,
    sample_hyperparameters,
)
from botorch_costly.models.fidelity_cost import FidelityCost, LogShares
from botorch_costly.models.log_posterior import factored
from botorch_costly.models.subset import SubsetGP
from botorch_costly.numerics.spread_rows import evenly_spread
from botorch_costly.parameters import Choice, Real
from botorch_costly.priors import made
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.earlier import EarlierStudies

LARGEST_SHARE = 1e12  # largest cost or overhead, in units of the median cost
_PATIENCE = 20  # walkers move when the evaluations have grown by a 20th, since fewer hardly matter
_FIRST_ROWS, _ROWS = 64, 128  # evaluations that walkers move by at first and later, at most
_MODELLED = 256  # evaluations that predictions are made from, at most
_FEWEST = 16  # evaluations that are never halved
_CHOICES = 64  # random choices of draws from the walkers
_LEAST_VARIANCE = 1e-12  # of standardized rewards
_POWER = 1.0, 1.0  # log-normal prior of the noise's power; shares are encoded by their logarithms


@advised
@dataclass(frozen=True)
class Sampling:
    """Settings of the draws of hyperparameters and of the search for the optimum.

    Args:
        draws: Number of draws of hyperparameters that the model is averaged over.
        first_steps: Steps of the walkers at the first fit.
        steps: Steps of the walkers whenever the evaluations have grown by a twentieth.
        points: Number of representers: points of which one is taken to be the optimum.
        candidates: Number of evaluations that each decision compares.
        first: Number of evaluations at low fidelities before the model decides, random but for the
            portfolio of earlier studies; two for each parameter and fidelity, and two more, if omitted.

    Raises:
        InvalidArgumentError: If a number is not positive.
    """

    draws: int = 10
    first_steps: int = 150
    steps: int = 25
    points: int = 30
    candidates: int = 500
    first: int | None = None

    def __post_init__(self) -> None:
        least_of = {"draws": 1, "first_steps": 8, "steps": 8, "points": 2, "candidates": 1}
        for name, least in least_of.items():
            object.__setattr__(self, name, check_count(name, getattr(self, name), minimum=least))
        if self.first is not None:
            object.__setattr__(self, "first", check_count("first", self.first, minimum=2))


class TemperedData(NamedTuple):
    """Evaluations: outliers are tempered, and failures have the lowest value."""

    points: Tensor  # configurations and fidelities, encoded, shape: (n, d)
    rewards: Tensor  # always float64, shape: (n,)
    costs: Tensor  # always float64, shape: (n,)


class Beliefs(NamedTuple):
    """Fitted models."""

    model: HyperparameterEnsemble  # of standardized rewards
    cost: DeterministicModel  # in multiples of `unit`
    unit: float  # median cost
    best: Tensor  # largest standardized mean at the target of a configuration that is modelled


class SubsetBelief:
    """Gaussian processes over configurations and fidelities, averaged over hyperparameters.

    Args:
        space: Search space of the configurations; the optimum of numbers may move with the fidelities.
        fidelities: Space of the fidelities, whose columns follow those of the configurations.
        sampling: Settings of the draws of hyperparameters.
        generator: Source of randomness.
        earlier: Earlier studies; none if omitted.
    """

    def __init__(
        self,
        space: SearchSpace,
        fidelities: SearchSpace,
        sampling: Sampling,
        generator: torch.Generator,
        earlier: EarlierStudies | None = None,
    ) -> None:
        self._dim, self._fidelities, self._earlier = space.dim, fidelities.dim, earlier
        self._log_shares = log_shares(fidelities)
        self._expected = None if earlier is None else earlier.expected_cost(self._log_shares)
        self._moving = _numbers(space)
        self._sampling, self._generator = sampling, generator
        self._walkers: Walkers | None = None
        self._draws: Tensor | None = None  # hyperparameters of the latest fit, shape: (draws, p)
        self._fitted = 0  # evaluations of that fit
        self._moved = 0  # evaluations when the walkers moved last

    def learn(self, data: TemperedData, pending: Tensor) -> Beliefs:
        """Return the models fitted to the data; pending evaluations are added with their mean.

        Args:
            data: All evaluations.
            pending: Pending evaluations, encoded, ``(m, d)``.
        """
        model = self.fitted(data, self._generator)
        rows = self._informative(data.points, _MODELLED)
        points = data.points[rows]
        best = self.at_target(model, points[:, : self._dim]).max()
        if len(pending):
            assert self._draws is not None
            values = torch.cat([_standardized(data)[rows], _mean(model, pending)])
            model = self._ensemble(torch.cat([points, pending]), values, self._draws.to(points))
        unit = data.costs.median()  # multiples of it fit into single precision
        shares = (data.costs / unit).clamp(1 / LARGEST_SHARE, LARGEST_SHARE)
        return Beliefs(model, self._cost(data, shares), float(unit), best)

    def fitted(self, data: TemperedData, generator: torch.Generator) -> HyperparameterEnsemble:
        """Return the model of the data, with draws of hyperparameters that follow them."""
        targets = _standardized(data)
        raw = self._drawn(data.points, targets, generator)
        self._fitted = len(data.points)
        rows = self._informative(data.points, _MODELLED)
        return self._ensemble(data.points[rows], targets[rows], raw)

    def _cost(self, data: TemperedData, shares: Tensor) -> DeterministicModel:
        """Return the model of costs, which are ``shares`` of their median, ``(n,)``."""
        return FidelityCost(
            data.points.double(),
            shares.unsqueeze(-1),
            self._log_shares,
            self._fidelities,
            self._expected,
        )

    def _drawn(self, points: Tensor, targets: Tensor, generator: torch.Generator) -> Tensor:
        """Return draws of hyperparameters, ``draws x p``; walkers move when enough data are new."""
        if self._walkers is None:
            few = self._informative(points, _FIRST_ROWS)
            self._walkers = self._moved_by(points[few], targets[few], generator)
            self._moved = len(few)
        if self._draws is None or len(points) >= self._moved + max(1, self._moved // _PATIENCE):
            rows = self._informative(points, _ROWS)
            if len(points) > self._moved:
                self._walkers = self._moved_by(points[rows], targets[rows], generator)
            self._moved = len(points)
            self._draws = self._representative(points[rows], targets[rows], generator)
        return self._draws.to(points)

    @torch.no_grad()
    def _representative(
        self, points: Tensor, targets: Tensor, generator: torch.Generator
    ) -> Tensor:
        """Return the walkers, of some random choices, that together predict most like all walkers."""
        assert self._walkers is not None
        raw = self._walkers.raw[self._walkers.log_density.isfinite()].to(points)
        kept = self._with_factor(points, targets, raw)
        raw = kept if len(kept) else raw
        count = min(self._sampling.draws, len(raw))
        model = self._ensemble(points, targets, raw)
        posterior = model.posterior(self._targets(points[:, : self._dim]).unsqueeze(-2))
        means = posterior.mean.flatten(1)  # n x walkers
        squares = posterior.variance.flatten(1) + means.square()
        choices = torch.stack(
            [torch.randperm(means.shape[1], generator=generator)[:count] for _ in range(_CHOICES)]
        ).to(raw.device)
        mean, std = _moments(means, squares)
        its_mean, its_std = _moments(means[:, choices], squares[:, choices])  # n x choices
        error = (its_mean - mean.unsqueeze(-1)).square() + (its_std - std.unsqueeze(-1)).square()
        return raw[choices[(error / std.square().unsqueeze(-1)).mean(0).argmin()]]

    def _ensemble(self, points: Tensor, targets: Tensor, raw: Tensor) -> HyperparameterEnsemble:
        """Return the GPs of these hyperparameters, but those without a Cholesky factor.

        If no covariance of these evaluations has one, that of half of them is taken.
        """
        models = assigned(self._gp(points, targets, torch.Size([len(raw)])), raw)
        try:
            return HyperparameterEnsemble(models, self._means)
        except NumericalError:
            kept = self._with_factor(points, targets, raw)
            if len(kept):
                return self._ensemble(points, targets, kept)
            if len(points) <= _FEWEST:
                raise
            few = self._informative(points, len(points) // 2)
            return self._ensemble(points[few], targets[few], raw)

    @torch.no_grad()
    def _with_factor(self, points: Tensor, targets: Tensor, raw: Tensor) -> Tensor:
        """Return the hyperparameters whose covariance of the evaluations has a Cholesky factor."""
        models = assigned(self._gp(points, targets, torch.Size([len(raw)])), raw)
        return raw[~factored(models)[1]]

    def _moved_by(self, points: Tensor, targets: Tensor, generator: torch.Generator) -> Walkers:
        """Return walkers moved by these evaluations, or the first ones."""
        first, sampling = self._walkers is None, self._sampling
        return sample_hyperparameters(
            lambda batch: self._gp(points, targets, batch),
            generator,
            start=self._walkers,
            steps=sampling.first_steps if first else sampling.steps,
        ).walkers

    def _informative(self, points: Tensor, most: int) -> Tensor:
        """Return at most so many rows: half at the highest fidelities, half spread over all others.

        Of equal fidelities the latest count, which the search has asked for with more knowledge.
        """
        shares = points[:, self._dim :].sum(-1)
        order = len(shares) - 1 - shares.flip(0).argsort(descending=True, stable=True)
        if len(order) <= most:
            return order.sort().values
        highest, others = order.tensor_split([most // 2])
        spread = others[evenly_spread(len(others), most - len(highest))]
        return torch.cat([highest, spread]).sort().values

    def latest(self, data: TemperedData) -> HyperparameterEnsemble | None:
        """Return the model of the latest fit without pending evaluations, if it was of these data."""
        draws = self._draws
        if draws is None or self._fitted != len(data.points):
            return None
        rows = self._informative(data.points, _MODELLED)
        targets = _standardized(data)[rows]
        return self._ensemble(data.points[rows], targets, draws.to(data.points))

    def at_target(self, model: HyperparameterEnsemble, configs: Tensor) -> Tensor:
        """Return the mean of configurations (``n x dim``) at the target, ``(n,)``."""
        return _mean(model, self._targets(configs))

    @torch.no_grad()
    def std_at_target(self, model: HyperparameterEnsemble, configs: Tensor) -> Tensor:
        """Return the standard deviation of configurations (``n x dim``) at the target, ``(n,)``."""
        posterior = model.posterior(self._targets(configs).unsqueeze(-2))
        means, variances = posterior.mean, posterior.variance  # of each draw: (n, draws, 1, 1)
        return (variances.mean(-3) + means.var(-3, correction=0)).sqrt().flatten()

    def _targets(self, configs: Tensor) -> Tensor:
        return torch.cat([configs, configs.new_ones(len(configs), self._fidelities)], -1)

    def _means(self, points: Tensor) -> Tensor:
        """Return the means of earlier studies at points ``n x d``, ``n x T``."""
        if self._earlier is None:
            return points[:, :0]
        return self._earlier.means(points[:, : self._dim])

    def _gp(self, points: Tensor, targets: Tensor, batch: torch.Size) -> SubsetGP:
        points = torch.cat([points, self._means(points)], -1)
        X = points.expand(*batch, *points.shape)
        Y = targets.unsqueeze(-1).expand(*batch, len(targets), 1)
        with warnings.catch_warnings():
            # Single precision is what the user has asked for.
            warnings.simplefilter("ignore", InputDataWarning)
            return self._made(X, Y, range(self._dim, self._dim + self._fidelities))

    def _made(self, X: Tensor, Y: Tensor, columns: range) -> SubsetGP:
        """Return the GP of points and values, given the columns of the fidelities."""
        noise = SubsetNoiseLikelihood(
            columns, batch_shape=X.shape[:-2], beta_prior=made(LogNormalPrior, *_POWER)
        )
        return SubsetGP(
            X,
            Y,
            fidelities=columns,
            likelihood=noise,
            level=True,
            moving=self._moving,
            earlier=range(columns.stop, X.shape[-1]),
        )

    def state_dict(self) -> dict[str, Any]:
        """Return the walkers, where the next draws of hyperparameters start, and the latest draws."""
        walkers = self._walkers
        saved = None if walkers is None else walkers._asdict()
        fitted = {"draws": self._draws, "fitted": self._fitted, "moved": self._moved}
        return {"walkers": saved, **fitted}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        saved = state["walkers"]
        self._walkers = (
            None if saved is None else Walkers(**{k: v.clone() for k, v in saved.items()})
        )
        draws = state.get("draws")  # older states have none
        self._draws = None if draws is None else draws.clone()
        self._fitted = state.get("fitted", 0)
        self._moved = state.get("moved", 0)  # older states have none: the walkers move at once


def _standardized(data: TemperedData) -> Tensor:
    level, spread = units_of(data.rewards)
    return ((data.rewards - level) / spread).to(data.points)


def log_shares(fidelities: SearchSpace) -> LogShares:
    """Return the logarithms of fidelities as shares of their upper bounds, given their encodings."""
    numbers = [p for _, p in fidelities.parameters if isinstance(p, Real)]
    lowest = torch.tensor([p.low / p.high for p in numbers], dtype=torch.float64)
    logarithmic = torch.tensor([p.log for p in numbers])
    return partial(_log_shares, lowest, logarithmic)


def _log_shares(lowest: Tensor, logarithmic: Tensor, encoded: Tensor) -> Tensor:
    low, log = lowest.to(encoded), logarithmic.to(encoded.device)
    return torch.where(log, (1 - encoded) * low.log(), (low + (1 - low) * encoded).log())


def _numbers(space: SearchSpace) -> tuple[int, ...]:
    """Return the columns of numbers; a choice has no direction to move in."""
    numbers = (name for name, p in space.parameters if not isinstance(p, Choice))
    return tuple(column for name in numbers for column in range(space.dim)[space.columns[name]])


def _moments(means: Tensor, squares: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation of mixtures, whose members are in the last dimension."""
    mean = means.mean(-1)
    return mean, (squares.mean(-1) - mean.square()).clamp_min(_LEAST_VARIANCE).sqrt()


@torch.no_grad()
def _mean(model: HyperparameterEnsemble, rows: Tensor) -> Tensor:
    """Return the mean of rows (``n x d``) over all draws, ``(n,)``."""
    return model.mean(rows).mean(0)


def units_of(rewards: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation of rewards, ``()`` each; 1 where they are constant."""
    spread = rewards.std(correction=0) if len(rewards) > 1 else rewards.new_zeros(())
    return rewards.mean(), torch.where(spread > 0, spread, 1.0)
