r"""A Gaussian process of a target whose prior is a weighted sum of the posteriors of earlier tasks."""

from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from botorch_costly.baselines.scaled_tasks_fitting import Evidence, learn_scaled
from botorch_costly.errors import InvalidShapeError, check
from botorch_costly.models import task_fitting
from botorch_costly.models.joint_gaussian import (
    JointGaussian,
    JointMoments,
    check_observations,
    raised,
)
from botorch_costly.models.promises import check_further
from botorch_costly.models.task_ensemble import TaskEnsemble, standardized
from botorch_costly.numerics.cholesky import factorize
from botorch_costly.numerics.stationary import Stationary, covariance

_ROUNDING = 100.0  # error of covariances, in units in the last place


class _Prior(NamedTuple):
    """Prior of the target at points, in standardized units and float64."""

    mean: Tensor  # shape: (*batch, q)
    cov: Tensor  # shape: (*batch, q, q)
    cross: Tensor  # covariance with the inputs of the target, shape: (*batch, q, n)


class ScaMLGP(JointGaussian):
    r"""Scalable meta-learning with Gaussian processes (ScaML-GP).

    With the posterior means ``mu_m`` and covariances ``Sigma_m`` of the earlier tasks, the prior of the
    standardized target has

        mean = sum_m w_m mu_m,    covariance = sum_m w_m^2 Sigma_m + k,    w_m >= 0,

    where ``k`` is a residual kernel of the tasks' family. ``fit`` maximizes the marginal likelihood with
    the prior Gamma(1, 1) on each weight, whose density is ``exp(-w)``, and the priors of
    ``TaskEnsemble`` on the lengthscales, variance and noise of the residual.

    Before two different values are observed, ``fit`` changes nothing: each weight stays at its prior
    mean 1, and the residual at typical values. Posteriors are in units of the target's values; without
    observations in standardized units.

    References:
        P. Tighineanu et al. Scalable meta-learning with Gaussian processes. AISTATS 2024.

    Args:
        tasks: The earlier tasks, fitted.
        train_X: Inputs of the target, ``n x d``, of the tasks' dtype; ``n`` may be 0.
        train_Y: Its values, ``n x 1``, which are standardized by their mean and standard deviation
            (1 where they are constant).

    Attributes:
        weights: Weights of the tasks, shape ``(tasks,)``.
        offset: Mean of the values, shape ``()``.
        scale: Divisor of the centered values, shape ``()``.

    Raises:
        InvalidShapeError: If shapes or dtypes do not fit.
        InvalidArgumentError: If a number is not finite.

    Example:
        >>> X = torch.linspace(0, 1, 9, dtype=torch.float64).unsqueeze(-1)
        >>> Y = (6 * X).sin()
        >>> tasks = TaskEnsemble([X, X], [Y.squeeze(-1), -Y.squeeze(-1)]).fit()
        >>> model = ScaMLGP(tasks, X[::2], 5 + Y[::2]).fit()
        >>> float(model.weights[1])  # the second task says the opposite
        0.0
    """

    inputs: Tensor
    targets: Tensor
    offset: Tensor
    scale: Tensor
    weights: Tensor
    theta: Tensor
    inverse_root: Tensor
    whitened: Tensor

    def __init__(self, tasks: TaskEnsemble, train_X: Tensor, train_Y: Tensor) -> None:
        super().__init__()
        self.dim = tasks.inputs.shape[-1]
        check_observations(train_X, train_Y, self.dim)
        fits = train_X.dtype == train_Y.dtype == tasks.inputs.dtype
        received = train_X.dtype, train_Y.dtype
        check(fits, "train_X, train_Y", f"{tasks.inputs.dtype}", received, InvalidShapeError)
        self.tasks = tasks
        targets, units = train_Y.squeeze(-1), train_Y.new_tensor([0.0, 1.0])
        if len(targets):
            targets, units = standardized(targets, 0.0)
        self.register_buffer("inputs", train_X)
        self.register_buffer("targets", targets)
        self.register_buffer("offset", units[0])
        self.register_buffer("scale", units[1])
        self.register_buffer("weights", train_X.new_ones(tasks.count))
        self.register_buffer("theta", task_fitting.typical(self.dim).to(train_X))
        self._factor()

    @property
    def train_inputs(self) -> tuple[Tensor]:
        """Inputs of the target, ``n x d``, in a tuple as in GPyTorch."""
        return (self.inputs,)

    @property
    def train_targets(self) -> Tensor:
        """Values of the target, in the user's units, shape ``(n,)``."""
        return self.offset + self.scale * self.targets

    @property
    def lengthscale(self) -> Tensor:
        """Lengthscales of the residual, shape ``(d,)``."""
        return self.theta[:-2].exp()

    @property
    def variance(self) -> Tensor:
        """Prior variance of the residual, in standardized units, shape ``()``."""
        return self.theta[-2].exp()

    @property
    def noise(self) -> Tensor:
        """Noise variance, in standardized units, shape ``()``."""
        return self.theta[-1].exp()

    def fit(self, *, max_iter: int = 100) -> Self:
        """Fit weights and residual from several starts.

        Args:
            max_iter: Largest number of evaluations of a search after the first.
        """
        if len(self.targets) and float(self.targets.abs().max()) > 0:
            present = self.weights.double(), self.theta.double()
            weights, theta = learn_scaled(self._evidence(), *present, max_iter)
            self.weights.copy_(weights)
            self.theta.copy_(theta)
            self._factor()
        return self

    def joint(self, X: Tensor) -> JointMoments:
        """Return the moments at ``batch_shape x q x d`` points, in units of the values."""
        prior = self._prior(X)
        white = prior.cross @ self.inverse_root.to(prior.cross).mT
        mean = self.offset + self.scale * (prior.mean + white @ self.whitened.to(white))
        cov = raised(self.scale.square() * (prior.cov - white @ white.mT), X.dtype)
        return JointMoments(mean.to(X), cov, float(self.scale.square() * self.noise))

    def condition_on_observations(self, X: Tensor, Y: Tensor, **kwargs: Any) -> "ScaMLGP":
        """Return the model after further observations ``n x d`` and ``n x 1``, without fitting again.

        Weights, residual and units are unchanged, so that this is Gaussian conditioning. A model
        without observations takes the units of ``Y``.
        """
        check_further(X, Y, self.dim, kwargs)
        inputs = torch.cat([self.inputs, X])
        model = ScaMLGP(self.tasks, inputs, torch.cat([self.train_targets.unsqueeze(-1), Y]))
        if len(self.targets):
            model.offset, model.scale = self.offset.clone(), self.scale.clone()
            model.targets = torch.cat([self.targets, (Y.squeeze(-1) - self.offset) / self.scale])
        model.weights, model.theta = self.weights.clone(), self.theta.clone()
        model._factor()
        return model

    def _prior(self, X: Tensor) -> _Prior:
        """Return the prior at points ``batch_shape x q x d``; tasks of weight 0 are skipped."""
        flat, shape, n = X.reshape(-1, self.dim), X.shape[:-1], len(self.inputs)
        residual = Stationary(self.tasks.kernel, self.lengthscale.double(), self.variance.double())
        mean = torch.zeros(shape).to(self.weights.double())
        cov = covariance(residual, X.double(), X.double())
        cross = covariance(residual, flat.double(), self.inputs.double()).reshape(*shape, n)
        used = self.weights.nonzero().squeeze(-1)
        if not len(used):
            return _Prior(mean, cov, cross)
        tasks, weights = self.tasks.subset(used), self.weights[used].double()
        means, covs = _posteriors(tasks, X)
        crosses = tasks.covariances(flat, self.inputs).double().reshape(len(used), *shape, n)
        return _Prior(
            torch.tensordot(weights, means, 1),
            cov + torch.tensordot(weights.square(), covs, 1),
            cross + torch.tensordot(weights.square(), crosses, 1),
        )

    def _evidence(self) -> Evidence:
        with torch.no_grad():
            means, covs = (moment.double() for moment in self.tasks.joint(self.inputs))
        rounding = _ROUNDING * torch.finfo(self.inputs.dtype).eps
        inputs, targets = self.inputs.double(), self.targets.double()
        return Evidence(self.tasks.kernel, inputs, targets, means, covs, rounding)

    def _factor(self) -> None:
        weights, theta = self.weights.double(), self.theta.double()
        mean, cov = self._evidence().moments(weights.unsqueeze(0), theta.unsqueeze(0))
        factor = factorize(cov[0], (self.targets - mean[0]).unsqueeze(-1))
        self.register_buffer("inverse_root", factor.inverse)
        self.register_buffer("whitened", factor.whitened.squeeze(-1))


def _posteriors(tasks: TaskEnsemble, X: Tensor) -> tuple[Tensor, Tensor]:
    """Return the joint posteriors of points ``batch_shape x q x d``, in float64."""
    if X.shape[-2] > 1:
        means, covs = tasks.joint(X)
        return means.double(), covs.double()
    # Fast path for acquisition functions, which evaluate large batches of single points.
    mean, std = (moment.double() for moment in tasks.moments(X.reshape(-1, X.shape[-1])))
    shape = tasks.count, *X.shape[:-1]
    return mean.reshape(shape), std.square().reshape(*shape, 1)
