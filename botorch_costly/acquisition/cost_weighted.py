"""What an evaluation promises against what it costs: improvement per cost, and the Gittins index."""

from collections.abc import Hashable
from typing import Any

from botorch.acquisition.analytic import AnalyticAcquisitionFunction, LogExpectedImprovement
from botorch.acquisition.input_constructors import acqf_input_constructor
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from botorch.utils.datasets import SupervisedDataset
from botorch.utils.transforms import average_over_ensemble_models, t_batch_mode_transform
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

from botorch_costly.acquisition.fixed_round import as_numbers
from botorch_costly.acquisition.improvement import best_mean, observed
from botorch_costly.errors import check_nonnegative, check_positive
from botorch_costly.numerics.gittins import gittins_index


def predicted_cost(cost_model: Model, X: Tensor, overhead: float) -> Tensor:
    """Return the predicted costs of single points ``X`` (``batch_shape x 1 x d``), ``batch_shape``."""
    return cost_model.posterior(X).mean.squeeze(-1).squeeze(-1) + overhead


class LogEIPerCost(LogExpectedImprovement):
    r"""Logarithm of the expected improvement by unit of predicted cost.

    ``log EI(z) - log cost(z)``, or as published ``log softplus(EI(z)) - log softplus(cost(z))``, which
    goes for cheap points alone where improvements are small.

    References:
        V. Nguyen, S. Schulze, M. A. Osborne. Bayesian optimization for iterative learning. NeurIPS 2020,
        equation 3.

    Args:
        model: A single-outcome model.
        cost_model: A single-outcome model of costs > 0, such as ``models.LinearCost``.
        best_f: The threshold; ``best_mean(model, X)`` gives the largest posterior mean, as in the paper.
        posterior_transform: As for ``LogExpectedImprovement``.
        maximize: Whether larger rewards are better.
        overhead: What an evaluation costs beside that, in the unit of the costs.
        as_published: Whether improvement and cost pass a softplus.

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
    r"""The Gittins index of Pandora's box: the reward at which an evaluation is worth its cost.

    ``g(z)`` solves ``E max(f(z) - g, 0) = price cost(z)``. Improvement per cost can be arbitrarily bad;
    the index is optimal where evaluations tell nothing about one another.

    References:
        Q. Xie, R. Astudillo, P. Frazier, Z. Scully, A. Terenin. Cost-aware Bayesian optimization via the
        Pandora's box Gittins index. NeurIPS 2024.

    Args:
        model: A single-outcome model.
        cost_model: A single-outcome model of costs > 0.
        price: What a unit of cost is worth, in the unit of rewards.
        posterior_transform: As for ``LogExpectedImprovement``.
        maximize: Whether larger rewards are better. If not, the index is negated: larger is better.
        overhead: What an evaluation costs beside that, in the unit of the costs.

    Raises:
        InvalidArgumentError: If the price is not positive, or the overhead negative.
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
        mean, sd = (part.squeeze(-1) for part in self._mean_and_sigma(X))
        cost = predicted_cost(self.cost_model, X, self.overhead)
        return gittins_index(mean if self.maximize else -mean, sd, self.price * cost)

    def is_over(self, X: Tensor, best: float) -> bool:
        """Return whether no evaluation is worth its cost any more: the stopping rule.

        Args:
            X: All that might be evaluated, ``n x d``.
            best: The best reward at hand, in the unit of rewards.
        """
        index = self(X.unsqueeze(-2))
        return bool(index.max() <= (best if self.maximize else -best))


@acqf_input_constructor(LogEIPerCost)
def construct_inputs_log_ei_per_cost(
    model: Model,
    training_data: SupervisedDataset | dict[Hashable, SupervisedDataset],
    cost_model: Model,
    best_f: float | Tensor | None = None,
    posterior_transform: PosteriorTransform | None = None,
    *,
    maximize: bool = True,
    overhead: float = 0.0,
    as_published: bool = False,
) -> dict[str, Any]:
    """Return the keyword arguments; ``best_f`` defaults to the largest posterior mean over the data."""
    if best_f is None:
        X = observed(training_data)
        best_f = best_mean(model, X, maximize=maximize, posterior_transform=posterior_transform)
    return {
        "model": model,
        "cost_model": cost_model,
        "best_f": best_f,
        "posterior_transform": posterior_transform,
        "maximize": maximize,
        "overhead": overhead,
        "as_published": as_published,
    }
