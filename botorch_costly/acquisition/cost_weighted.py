"""Cost-aware acquisition functions: expected improvement per cost, and the Gittins index."""

from collections.abc import Hashable, Mapping
from typing import Any

from botorch.acquisition.analytic import AnalyticAcquisitionFunction, LogExpectedImprovement
from botorch.acquisition.input_constructors import acqf_input_constructor
from botorch.acquisition.objective import PosteriorTransform
from botorch.acquisition.utils import project_to_target_fidelity
from botorch.models.cost import AffineFidelityCostModel
from botorch.models.model import Model
from botorch.utils.datasets import SupervisedDataset
from botorch.utils.transforms import average_over_ensemble_models, t_batch_mode_transform
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from botorch_costly.acquisition.fixed_round import as_numbers
from botorch_costly.acquisition.improvement import best_mean, only_data
from botorch_costly.errors import check, check_nonnegative, check_positive
from botorch_costly.numerics.gittins import gittins_index


def predicted_cost(cost_model: Model, X: Tensor, overhead: float) -> Tensor:
    """Return predicted costs plus overhead of single points ``batch_shape x 1 x d``, ``batch_shape``."""
    return cost_model.posterior(X).mean.squeeze(-1).squeeze(-1) + overhead


class LogEIPerCost(LogExpectedImprovement):
    r"""Logarithm of the expected improvement per unit of predicted cost.

    ``log EI(z) - log cost(z)``, or as published ``log softplus(EI(z)) - log softplus(cost(z))``, which
    depends on the cost alone where improvements are small.

    References:
        V. Nguyen, S. Schulze, M. A. Osborne. Bayesian optimization for iterative learning. NeurIPS 2020,
        equation 3.

    Args:
        model: A single-outcome model.
        cost_model: A single-outcome model of costs > 0, such as ``models.LinearCost``.
        best_f: The threshold; ``best_mean(model, X)`` gives the largest posterior mean, as in the paper.
        posterior_transform: Posterior transform of ``LogExpectedImprovement``.
        maximize: Whether larger rewards are better.
        overhead: Constant cost of an evaluation in addition to its predicted cost, in the same unit.
        as_published: Whether to apply a softplus to improvement and cost.

    Raises:
        InvalidArgumentError: If the overhead is negative or not finite.
    """

    def __init__(
        self,
        model: Model,
        cost_model: Model,
        best_f: float | Tensor,
        posterior_transform: PosteriorTransform | None = None,
        *,
        maximize: bool = True,
        overhead: float = 0.0,
        as_published: bool = False,
    ) -> None:
        super().__init__(model, as_numbers("best_f", best_f), posterior_transform, maximize)
        self.cost_model = cost_model
        self.overhead = check_nonnegative("overhead", overhead)
        self.as_published = as_published

    def forward(self, X: Tensor) -> Tensor:
        """Return the values at single points ``X`` (``batch_shape x 1 x d``), ``batch_shape``."""
        improvement, cost = super().forward(X), predicted_cost(self.cost_model, X, self.overhead)
        if self.as_published:
            return F.softplus(improvement.exp()).log() - F.softplus(cost).log()
        return improvement - cost.log()


class PBGI(AnalyticAcquisitionFunction):
    r"""Gittins index of Pandora's box: the incumbent reward at which an evaluation just pays.

    ``g(z)`` solves ``E max(f(z) - g, 0) = price cost(z)``. The index is optimal if evaluations are
    independent of one another, where improvement per cost can be arbitrarily bad.

    References:
        Q. Xie, R. Astudillo, P. Frazier, Z. Scully, A. Terenin. Cost-aware Bayesian optimization via the
        Pandora's box Gittins index. NeurIPS 2024.

    Args:
        model: A single-outcome model.
        cost_model: A single-outcome model of costs > 0.
        price: Price of a unit of cost, in the unit of rewards.
        posterior_transform: Posterior transform of ``LogExpectedImprovement``.
        maximize: Whether larger rewards are better; if not, the index is that of the negative rewards.
        overhead: Constant cost of an evaluation in addition to its predicted cost, in the same unit.

    Raises:
        InvalidArgumentError: If the price is not positive, or the overhead is negative.
    """

    def __init__(
        self,
        model: Model,
        cost_model: Model,
        price: float,
        posterior_transform: PosteriorTransform | None = None,
        *,
        maximize: bool = True,
        overhead: float = 0.0,
    ) -> None:
        super().__init__(model, posterior_transform)
        self.cost_model, self.maximize = cost_model, maximize
        self.price = check_positive("price", price)
        self.overhead = check_nonnegative("overhead", overhead)

    @t_batch_mode_transform(expected_q=1)
    @average_over_ensemble_models
    def forward(self, X: Tensor) -> Tensor:
        """Return the indices of single points ``X`` (``batch_shape x 1 x d``), ``batch_shape``."""
        mean, sd = (moment.squeeze(-1) for moment in self._mean_and_sigma(X))
        cost = predicted_cost(self.cost_model, X, self.overhead)
        return gittins_index(mean if self.maximize else -mean, sd, self.price * cost)

    def is_over(self, X: Tensor, best: float) -> bool:
        """Return whether no further evaluation is worth its cost: the stopping rule.

        Args:
            X: All points that can be evaluated, ``n x d``.
            best: The best reward observed, in the unit of rewards.
        """
        index = self(X.unsqueeze(-2))
        return bool(index.max() <= (best if self.maximize else -best))


@acqf_input_constructor(LogEIPerCost)
def construct_inputs_log_ei_per_cost(
    model: Model,
    training_data: SupervisedDataset | dict[Hashable, SupervisedDataset],
    cost_model: Model | None = None,
    best_f: float | Tensor | None = None,
    posterior_transform: PosteriorTransform | None = None,
    *,
    maximize: bool = True,
    overhead: float = 0.0,
    as_published: bool = False,
    fidelity_weights: Mapping[int | str, float] | None = None,
    target_fidelities: Mapping[int, float] | None = None,
) -> dict[str, Any]:
    """Return the keyword arguments; ``best_f`` defaults to the largest posterior mean over the data.

    Without a cost model, the cost is ``overhead`` plus the sum of columns times ``fidelity_weights``.
    With ``target_fidelities``, the default threshold is the posterior mean of the data moved there.
    """
    if best_f is None:
        X = only_data(training_data).X
        if target_fidelities:
            X = project_to_target_fidelity(X, dict(target_fidelities), X.shape[-1])
        best_f = best_mean(model, X, maximize=maximize, posterior_transform=posterior_transform)
    return {
        "model": model,
        "cost_model": _cost_model(cost_model, fidelity_weights),
        "best_f": best_f,
        "posterior_transform": posterior_transform,
        "maximize": maximize,
        "overhead": overhead,
        "as_published": as_published,
    }


@acqf_input_constructor(PBGI)
def construct_inputs_pbgi(
    model: Model,
    price: float,
    cost_model: Model | None = None,
    posterior_transform: PosteriorTransform | None = None,
    *,
    maximize: bool = True,
    overhead: float = 0.0,
    fidelity_weights: Mapping[int | str, float] | None = None,
    target_fidelities: Mapping[int, float] | None = None,
) -> dict[str, Any]:
    """Return the keyword arguments; ``fidelity_weights`` replace a cost model as for ``LogEIPerCost``."""
    return {
        "model": model,
        "cost_model": _cost_model(cost_model, fidelity_weights),
        "price": price,
        "posterior_transform": posterior_transform,
        "maximize": maximize,
        "overhead": overhead,
    }


def _cost_model(model: Model | None, weights: Mapping[int | str, float] | None) -> Model:
    """Return the model of the costs, or else the weighted sum of columns as a model."""
    is_valid = (model is None) != (weights is None)
    received = "both" if model is not None else "neither"
    check(is_valid, "cost_model", "either a cost_model or fidelity_weights", received)
    if model is not None:
        return model
    columns = {int(column): float(weight) for column, weight in (weights or {}).items()}
    return AffineFidelityCostModel(columns, fixed_cost=0.0)
