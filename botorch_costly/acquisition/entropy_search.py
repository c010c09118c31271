"""Entropy search: the information of an observation about the location of the optimum."""

from typing import Any

import torch
from botorch.acquisition.analytic import AnalyticAcquisitionFunction
from botorch.acquisition.objective import PosteriorTransform
from botorch.models.model import Model
from botorch.utils.transforms import average_over_ensemble_models, t_batch_mode_transform
from torch import Tensor

from botorch_costly.acquisition.cost_weighted import predicted_cost
from botorch_costly.errors import InvalidShapeError, check, check_count, check_nonnegative
from botorch_costly.models.covariance import ProjectedRows, observations_of
from botorch_costly.numerics.ep import Minimum, minimum
from botorch_costly.numerics.information import by_moments, by_outcomes

_NODES = 8  # quadrature nodes of the closed form; more do not change the result


class EntropySearch(AnalyticAcquisitionFunction):
    r"""Information of an observation about the optimum among given points, in nats: ``I(optimum; y(x))``.

    By default it is computed in closed form: one run of expectation propagation in the constructor gives
    the moments of any observation conditional on each point being optimal (``numerics.information``).
    The values err by 7 % on average, but hardly change their order. With ``outcomes``, expectation
    propagation runs for each outcome of each observation, as published: values err by 2 % with 16
    outcomes, and take a thousand times longer.

    References:
        - P. Hennig, C. J. Schuler. Entropy search for information-efficient global optimization. JMLR 13,
          2012.
        - A. Klein, S. Falkner, S. Bartels, P. Hennig, F. Hutter. Fast Bayesian optimization of machine
          learning hyperparameters on large datasets. AISTATS 2017, supplement A.

    Args:
        model: A single-outcome model, or an ensemble, over which the information is averaged.
        points: Points, one of which is taken to be optimal, ``Z x d``; see ``representers``.
        posterior_transform: Posterior transform of ``LogExpectedImprovement``.
        maximize: Whether larger values are better.
        outcomes: Number of outcomes of each observation for which expectation propagation runs; closed
            form if omitted.

    Raises:
        InvalidShapeError: If ``points`` have no row.
        InvalidArgumentError: If ``outcomes`` is not positive.
        NumericalError: If the posterior at the points is not finite.
    """

    def __init__(
        self,
        model: Model,
        points: Tensor,
        posterior_transform: PosteriorTransform | None = None,
        *,
        maximize: bool = True,
        outcomes: int | None = None,
    ) -> None:
        super().__init__(model, posterior_transform)
        rows = points.ndim == 2 and len(points) > 0
        check(rows, "points", "Z x d rows", tuple(points.shape), InvalidShapeError)
        self.maximize = maximize
        self.outcomes = None if outcomes is None else check_count("outcomes", outcomes, minimum=1)
        self.register_buffer("points", points)
        posterior: Any = model.posterior(points, posterior_transform=posterior_transform)
        mean = posterior.mean.reshape(-1, len(points))
        cov = posterior.distribution.covariance_matrix.reshape(-1, *[len(points)] * 2)
        least = minimum(-mean if maximize else mean, cov)
        projected = observations_of(model, posterior_transform).project(points).projected
        prepared = {"_mean": mean, "_cov": cov, "_projected": projected, **least._asdict()}
        for name, value in prepared.items():
            self.register_buffer(name, value.detach())

    @property
    def probability(self) -> Tensor:
        """The probability that each point is the optimum, shape ``(Z,)``."""
        return self.log_prob.exp().mean(0)

    @property
    def minimum(self) -> Minimum:
        """Result of expectation propagation for each member of an ensemble."""
        return Minimum(self.log_prob, self.pull, self.loss)

    @t_batch_mode_transform(expected_q=1)
    @average_over_ensemble_models
    def forward(self, X: Tensor) -> Tensor:
        """Return the information of single points ``X`` (``batch_shape x 1 x d``), ``batch_shape``."""
        observations = observations_of(self.model, self.posterior_transform)
        prepared = ProjectedRows(self.points, self._projected)
        variance, cov = observations.observed_with(X, prepared)
        sd = variance.clamp_min(torch.finfo(cov.dtype).tiny).sqrt()
        c = cov / sd.unsqueeze(-1)
        flat = c.reshape(-1, len(self.log_prob), c.shape[-1])
        return self._information(flat).reshape(c.shape[:-1])

    def _information(self, c: Tensor) -> Tensor:
        if self.outcomes is None:
            return by_moments(c, self.minimum, _NODES)
        return by_outcomes(
            -self._mean if self.maximize else self._mean, self._cov, c, self.outcomes
        )


class EntropySearchPerCost(EntropySearch):
    r"""Information about the optimum per unit of cost: ``I(optimum; y(z)) / cost(z)``.

    With a model over configurations and fractions of the data, and points at a fraction of 1, this is the
    acquisition function of Fabolas: the information of a cheap evaluation about the optimum on all data.

    References:
        A. Klein, S. Falkner, S. Bartels, P. Hennig, F. Hutter. Fast Bayesian optimization of machine
        learning hyperparameters on large datasets. AISTATS 2017, equation 9.

    Args:
        model: A single-outcome model, or an ensemble, over which the information is averaged.
        points: Points, one of which is taken to be optimal, ``Z x d``.
        cost_model: A single-outcome model of costs > 0.
        posterior_transform: Posterior transform of ``EntropySearch``.
        maximize: Whether larger values are better.
        outcomes: Number of outcomes for expectation propagation; closed form if omitted.
        overhead: Constant cost of an evaluation in addition to its predicted cost, in the same unit, such
            as the seconds of a decision.

    Raises:
        InvalidArgumentError: If the overhead is negative or not finite.
    """

    def __init__(
        self,
        model: Model,
        points: Tensor,
        cost_model: Model,
        posterior_transform: PosteriorTransform | None = None,
        *,
        maximize: bool = True,
        outcomes: int | None = None,
        overhead: float = 0.0,
    ) -> None:
        super().__init__(model, points, posterior_transform, maximize=maximize, outcomes=outcomes)
        self.cost_model = cost_model
        self.overhead = check_nonnegative("overhead", overhead)

    @t_batch_mode_transform(expected_q=1)
    def forward(self, X: Tensor) -> Tensor:
        """Return the values at single points ``X`` (``batch_shape x 1 x d``), ``batch_shape``."""
        return super().forward(X) / predicted_cost(self.cost_model, X, self.overhead)
