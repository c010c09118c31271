"""Fabolas as published: its model of values and of costs, and its first evaluations."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from botorch.models.deterministic import DeterministicModel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from botorch_costly.ask_tell.domain import Domain
from botorch_costly.calls import advised
from botorch_costly.errors import check, check_count
from botorch_costly.models.ensemble import HyperparameterEnsemble
from botorch_costly.models.subset import SubsetGP
from botorch_costly.parameters import Real
from botorch_costly.priors import made
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.subsets.belief import Sampling, SubsetBelief, TemperedData, units_of

_LEVELS = tuple(2.0**-k for k in range(9, 3, -1))
_NOISE = (
    -6.0,
    2.0,
)  # log-normal prior of the variance, that of a ``SubsetNoiseLikelihood`` at the target


@advised
@dataclass(frozen=True)
class Fabolas:
    """Model, first evaluations and incumbent of the paper, in place of those of ``SubsetOptimizer``.

    Values and logarithms of costs are Gaussian processes of one form, ``k(x, x') phi(s)' Sigma phi(s')``
    with a Matérn-5/2 kernel and noise that is equal at all fidelities ``s``; ``phi(s) = (1, (1 - s)^2)``
    for values and ``(1, s)`` for logarithms of costs. ``s`` is the encoded fidelity. The first
    evaluations are of random configurations, each at every level. The incumbent has the best mean.

    References:
        A. Klein, S. Falkner, S. Bartels, P. Hennig, F. Hutter. Fast Bayesian optimization of machine
        learning hyperparameters on large datasets. AISTATS 2017; the first evaluations are those of the
        supplement's Figure 2.

    Args:
        configs: Number of random configurations of the first evaluations.
        levels: Shares of the target at which each is evaluated, in (0, 1]; of several fidelities their
            product. Levels below the space's lowest are that.

    Raises:
        InvalidArgumentError: If a number is outside its range.
    """

    configs: int = 2
    levels: tuple[float, ...] = _LEVELS

    def __post_init__(self) -> None:
        object.__setattr__(self, "configs", check_count("configs", self.configs, minimum=1))
        valid = isinstance(self.levels, tuple | list) and len(self.levels) > 0
        valid = valid and all(isinstance(level, float | int) for level in self.levels)
        valid = valid and all(0 < level <= 1 for level in self.levels)
        check(valid, "levels", "shares of the target, in (0, 1]", self.levels)
        object.__setattr__(self, "levels", tuple(float(level) for level in self.levels))

    def design(self, domain: Domain, generator: torch.Generator) -> Tensor:
        """Return the first evaluations, configuration by configuration, each at its levels, ``n x dim``.

        Of a list, a configuration is evaluated at those of its fidelities that are nearest to the levels.
        """
        assert domain.fidelities is not None
        like, dim = domain.stacked([]), domain.space.dim
        levels = _encoded(domain.fidelities, self.levels).to(like).unique(dim=0)
        if domain.listed is None:
            configs = domain.space.sample(self.configs, generator).to(like)
            rows = [torch.cat([config.expand(len(levels), dim), levels], -1) for config in configs]
            return torch.cat(rows)
        listed = domain.listed.to(like)
        _, number = listed[:, :dim].unique(dim=0, return_inverse=True)
        drawn = torch.randperm(int(number.max()) + 1, generator=generator)[: self.configs]
        its = [listed[number == arm] for arm in drawn.tolist()]
        near = [torch.cdist(levels, rows[:, dim:], p=1).argmin(-1).unique() for rows in its]
        return torch.cat([rows[kept] for rows, kept in zip(its, near, strict=True)])


def _encoded(fidelities: SearchSpace, levels: tuple[float, ...]) -> Tensor:
    """Return the encodings of levels, which are products of equal shares, ``levels x fidelities``."""
    numbers = [(name, p) for name, p in fidelities.parameters if isinstance(p, Real)]
    shares = [level ** (1 / len(numbers)) for level in levels]
    return torch.stack(
        [
            fidelities.encode({name: max(p.low, share * p.high) for name, p in numbers})
            for share in shares
        ]
    )


class CostByLogarithms(DeterministicModel):
    """The cost whose logarithm is the mean of an ensemble of GPs.

    Args:
        model: Ensemble of standardized logarithms.
        level: Mean of the logarithms, ``()``.
        spread: Their standard deviation, ``()``.
    """

    def __init__(self, model: HyperparameterEnsemble, level: Tensor, spread: Tensor) -> None:
        super().__init__()
        self._num_outputs, self.model = 1, model
        self.register_buffer("_level", level)
        self.register_buffer("_spread", spread)

    def forward(self, X: Tensor) -> Tensor:
        """Return the costs of ``X`` (``batch_shape x q x d``), ``batch_shape x q x 1``."""
        rows = X.reshape(-1, 1, X.shape[-1])
        mean = self.model.posterior(rows).mean.mean(-3)  # over the draws, shape: (n, 1, 1)
        return (self._level + self._spread * mean).exp().reshape(*X.shape[:-1], 1).to(X)


class _BeliefOfOne(SubsetBelief):
    """The paper's Gaussian process with one of its two bases."""

    _basis = "cost"

    def _made(self, X: Tensor, Y: Tensor, columns: range) -> SubsetGP:
        noise = GaussianLikelihood(made(LogNormalPrior, *_NOISE), batch_shape=X.shape[:-2])
        return SubsetGP(X, Y, fidelities=columns, basis=self._basis, likelihood=noise)


class PublishedBelief(_BeliefOfOne):
    """The paper's models of values and of logarithms of costs, averaged over hyperparameters."""

    _basis = "loss"

    def __init__(
        self,
        space: SearchSpace,
        fidelities: SearchSpace,
        sampling: Sampling,
        generator: torch.Generator,
    ) -> None:
        super().__init__(space, fidelities, sampling, generator)
        self._of_costs = _BeliefOfOne(space, fidelities, sampling, generator)

    def _cost(self, data: TemperedData, shares: Tensor) -> DeterministicModel:
        logs = data._replace(rewards=shares.log())
        model = self._of_costs.fitted(logs, self._generator)
        return CostByLogarithms(model, *units_of(logs.rewards))

    def state_dict(self) -> dict[str, Any]:
        """Return the state of both models."""
        return {**super().state_dict(), "costs": self._of_costs.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue from ``state_dict``."""
        super().load_state_dict(state)
        self._of_costs.load_state_dict(state["costs"])
