"""MCMC draws of hyperparameters from their posterior, by an ensemble of walkers, and a model of them."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from botorch.models import SingleTaskGP
from botorch.posteriors import GPyTorchPosterior
from gpytorch.distributions import MultivariateNormal
from gpytorch.module import Module
from linear_operator import LinearOperator, to_linear_operator
from linear_operator.operators import DiagLinearOperator
from torch import Tensor

from botorch_costly.errors import InvalidShapeError, NumericalError, check, check_count
from botorch_costly.kernels.dense import Against, against, covariance
from botorch_costly.models.covariance import ProjectedRows
from botorch_costly.models.log_posterior import LogPosterior, assign, factored, free_parameters
from botorch_costly.models.promises import OneOutcome
from botorch_costly.numerics.ensemble_sampling import (
    Diagnosis,
    LogDensity,
    anneal,
    diagnose,
    walk,
)
from botorch_costly.numerics.hamiltonian import hamiltonian_walk
from botorch_costly.numerics.reweighting import resample
from botorch_costly.randomness import check_generator

_WIDE = 10.0  # standard deviation of an additional normal prior on raw parameters
_SPREAD = 0.1  # standard deviation of additional walkers around those of a start, in raw units
_DISPERSED = 2.0  # standard deviation of walkers around the defaults, where a first call starts
_CROWD = 4  # walkers for each hyperparameter
# Of its steps a first call makes an 18th at each density in between, as many moves by the gradient as a
# 36th, and an eighth at the end.
_SHORT, _GRADIENT, _LAST = 18, 36, 8
_LEAST = 1e-10  # smallest variance, relative to the largest prior variance

Features = Callable[[Tensor], Tensor]
"""Maps points ``n x d`` to further columns of a model, ``n x T``."""


class _Prepared(NamedTuple):
    """Quantities that depend on the data and their factor alone."""

    root: Tensor  # the factor that it belongs to
    against: Against
    weights: Tensor  # whose products with covariances are means, shape: (k, n, 1)


class HyperparameterEnsemble(OneOutcome):
    """A batch of GPs as one model, over which BoTorch's acquisition functions average.

    Posteriors use one Cholesky factor for each GP; those of single points are batched.

    Args:
        models: A GP of batch shape ``(k,)``, with one entry for each draw of the hyperparameters.
        features: Function of points ``n x d`` whose columns, ``n x T``, the models have besides; none if
            omitted.

    Raises:
        InvalidShapeError: If the batch shape is not ``(k,)``.
        NumericalError: If the covariance of the data has no Cholesky factor.
    """

    _is_ensemble = True

    def __init__(self, models: SingleTaskGP, features: Features | None = None) -> None:
        super().__init__()
        self._features = features
        shape = models.batch_shape
        check(len(shape) == 1, "models", "a batch shape (k,)", tuple(shape), InvalidShapeError)
        self.models = models.eval()
        with torch.no_grad():
            root, failed, residual = factored(models)
            scaled = _solved(root, residual.unsqueeze(-1))
        expected = "covariances with a Cholesky factor"
        check(not bool(failed.any()), "models", expected, failed, NumericalError)
        self.register_buffer("_root", root)  # k x n x n
        self.register_buffer("_scaled", scaled)  # k x n x 1
        self._data: _Prepared | None = None

    @property
    def batch_shape(self) -> torch.Size:
        """The batch shape of the draws, ``(k,)``."""
        return self.models.batch_shape

    def posterior(self, X: Tensor, *args: Any, **kwargs: Any) -> Any:
        """Return the posteriors at ``batch_shape x q x d`` inputs: ``batch_shape x k x q x 1``."""
        noisy = kwargs.get("observation_noise", False)
        others = args or set(kwargs) - {"observation_noise", "posterior_transform"}
        if others or not isinstance(noisy, bool):
            return self.models.posterior(self._completed(X).unsqueeze(-3), *args, **kwargs)
        mean, covariance = self._single(X, noisy) if X.shape[-2] == 1 else self._joint(X, noisy)
        posterior = GPyTorchPosterior(MultivariateNormal(mean, covariance))
        transform = kwargs.get("posterior_transform")
        return posterior if transform is None else transform(posterior)

    def _single(self, X: Tensor, noisy: bool) -> tuple[Tensor, LinearOperator]:
        """Return the moments of single points, which share one solution with the Cholesky factors."""
        rows, batch = self._rows(X)
        half = self._half(rows)
        mean = self.models.mean_module(rows) + (half.mT @ self._scaled).squeeze(-1)
        variance = self._variance(rows, half, noisy=noisy)
        mean, variance = (moment.mT.reshape(*batch, len(half), 1) for moment in (mean, variance))
        return mean, DiagLinearOperator(variance)

    def _joint(self, X: Tensor, noisy: bool) -> tuple[Tensor, LinearOperator]:
        """Return means and covariances of several points, ``batch_shape x k x q`` and ``.. x q x q``."""
        rows = self._completed(X).unsqueeze(-3)
        rows = rows.expand(*X.shape[:-2], *self.batch_shape, *rows.shape[-2:])
        half = self._half(rows)
        mean = self.models.mean_module(rows) + (half.mT @ self._scaled).squeeze(-1)
        prior = covariance(self.models.covar_module, rows, rows)
        variance = self._variance(rows, half, noisy=noisy)
        joint = prior - half.mT @ half
        joint = joint + torch.diag_embed(variance - joint.diagonal(dim1=-2, dim2=-1))
        return mean, to_linear_operator(joint)  # a tensor would be factored at once

    def project(self, rows: Tensor) -> ProjectedRows:
        """Project rows (``m x d``) once, for many calls of ``observed_with``."""
        return ProjectedRows(rows, self._half(self._for_each(rows)))

    def observed_with(self, X: Tensor, discretization: ProjectedRows) -> tuple[Tensor, Tensor]:
        """Return the variances of observations, and their covariances with projected rows.

        Args:
            X: Single points, ``batch_shape x 1 x d``.
            discretization: The result of ``project``.

        Returns:
            Variances, ``batch_shape x k``, and covariances, ``batch_shape x k x m``.
        """
        rows, batch = self._rows(X)
        half = self._half(rows)
        prior = covariance(self.models.covar_module, rows, self._for_each(discretization.rows))
        cov = prior - half.mT @ discretization.projected  # k x b x m
        variance = self._variance(rows, half, noisy=True)
        return variance.mT.reshape(*batch, -1), cov.transpose(0, 1).reshape(*batch, *cov.shape[::2])

    def _rows(self, X: Tensor) -> tuple[Tensor, torch.Size]:
        """Return single points as rows for each GP, ``k x b x d``, and their batch shape."""
        return self._for_each(X.reshape(-1, X.shape[-1])), X.shape[:-2]

    def _for_each(self, rows: Tensor) -> Tensor:  # shape: (k, m, d)
        rows = self._completed(rows)
        return rows.expand(*self.batch_shape, *rows.shape)

    def _completed(self, X: Tensor) -> Tensor:
        """Return points ``... x d`` with the columns of their features."""
        if self._features is None:
            return X
        features = self._features(X.reshape(-1, X.shape[-1]))
        return torch.cat([X, features.reshape(*X.shape[:-1], features.shape[-1])], -1)

    @torch.no_grad()
    def mean(self, X: Tensor) -> Tensor:
        """Return the posterior means at points ``n x d``, ``k x n``, without their variances."""
        rows = self._for_each(X)
        data = self._prepared()
        explained = data.against.covariance(rows) @ data.weights
        return self.models.mean_module(rows) + explained.squeeze(-1)

    def _half(self, rows: Tensor) -> Tensor:
        """Return ``H``, ``k x n x b``, where ``H'H`` is the explained part of the covariance."""
        return _solved(self._root, self._prepared().against.covariance(rows).mT)

    def _prepared(self) -> _Prepared:
        """Return the prepared data, which are computed once for each factor.

        BoTorch converts a model to its own type again and again, which changes no tensor.
        """
        if self._data is None or self._data.root is not self._root:
            with torch.inference_mode(False), torch.no_grad():
                data = against(self.models.covar_module, self.models.train_inputs[0])
                weights = torch.linalg.solve_triangular(self._root.mT, self._scaled, upper=True)
            self._data = _Prepared(self._root, data, weights)
        return self._data

    def __getstate__(self) -> dict[str, Any]:
        """Return the attributes to copy or pickle, without what is computed anew."""
        return {**self.__dict__, "_data": None}

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        self._data = None
        super()._load_from_state_dict(*args, **kwargs)

    def _variance(self, rows: Tensor, half: Tensor, *, noisy: bool) -> Tensor:  # shape: (k, b)
        prior = self._prepared().against.variance(rows)
        posterior = (prior - half.square().sum(-2)).clamp_min(_LEAST * prior.detach().max())
        if not noisy:
            return posterior
        noise = self.models.likelihood.noise_covar(rows, shape=posterior.shape)
        return posterior + noise.diagonal(dim1=-2, dim2=-1)


def _solved(root: Tensor, right: Tensor) -> Tensor:
    return torch.linalg.solve_triangular(root, right, upper=False)


class Walkers(NamedTuple):
    """Raw hyperparameters, one row for each walker, and their log density at the time."""

    raw: Tensor  # shape: (k, p)
    log_density: Tensor  # given the data of that call, up to a constant, shape: (k,)


class Draws(NamedTuple):
    """Draws of hyperparameters."""

    models: SingleTaskGP  # batch shape (k,), with the last draws
    walkers: Walkers  # at the end of the chain
    diagnosis: Diagnosis
    accepted: float


@torch.inference_mode(False)
@torch.no_grad()
def sample_hyperparameters(
    build: Callable[[torch.Size], SingleTaskGP],
    generator: torch.Generator,
    *,
    walkers: int = 20,
    start: Walkers | None = None,
    steps: int = 100,
) -> Draws:
    """Draw hyperparameters from their posterior, marginal likelihood times priors, in raw parameters.

    An additional wide normal prior on all raw parameters makes the density proper. Parameters that
    need no gradient stay fixed. Walkers of an earlier call with less data are resampled by the likelihood
    of the new data, so that a few steps are enough.

    References:
        - C. J. F. ter Braak. A Markov chain Monte Carlo version of the genetic algorithm differential
          evolution. Statistics and Computing 16, 2006.
        - R. M. Neal. MCMC using Hamiltonian dynamics. Handbook of Markov Chain Monte Carlo, 2011.
        - N. Chopin. A sequential particle filter method for static models. Biometrika 89, 2002.
        - P. Del Moral, A. Doucet, A. Jasra. Sequential Monte Carlo samplers. JRSS B 68, 2006.

    Args:
        build: Builds the GP of a batch shape, with its data and priors.
        generator: Random generator of the draws.
        walkers: Smallest number of walkers; it is raised to an even number of at least four times the
            number of hyperparameters.
        start: Walkers at the end of an earlier call. If omitted, walkers are dispersed around the
            defaults of ``build``, anneal to the posterior, and move by its gradient.
        steps: Number of steps of each walker, about that if they anneal. The diagnosis uses the second
            half, or the last sixteenth if they anneal.

    Returns:
        The GPs of the last draws, and a convergence diagnosis.

    Raises:
        InvalidArgumentError: If ``steps`` is less than 8.
    """
    check_count("steps", steps, minimum=8)
    build = partial(_differentiable, build)
    dim = sum(p.numel() for p in free_parameters(build(torch.Size([1]))))
    walkers = max(walkers, _CROWD * dim)
    walkers += walkers % 2
    half = build(torch.Size([walkers // 2])).train()
    low, high = _bounds(half)
    posterior = LogPosterior(half)

    def inside(raw: Tensor, density: Tensor) -> Tensor:
        density = density - 0.5 * (raw / _WIDE).square().sum(-1)
        return torch.where(((raw < low) | (raw > high)).any(-1), -torch.inf, density)

    def log_density(raw: Tensor) -> Tensor:
        return inside(raw, posterior(raw.clamp(low, high)))

    def with_gradient(raw: Tensor) -> tuple[Tensor, Tensor]:
        density, gradient = posterior.with_gradient(raw.clamp(low, high))
        return inside(raw, density), gradient - raw / _WIDE**2

    models = build(torch.Size([walkers]))
    defaults = _raw(models)
    check_generator(generator)
    if start is None:
        points = _annealed(log_density, defaults, steps, generator)
        points = hamiltonian_walk(with_gradient, points, max(steps // _GRADIENT, 1), generator)
        steps = max(steps // _LAST, 8)
    else:
        earlier = Walkers(*(tensor.to(defaults) for tensor in start))
        points = _resampled(log_density, earlier, walkers, generator)
    chain = walk(log_density, points, steps, generator)
    models = assigned(models, chain.points[-1])
    diagnosis = diagnose(chain.points[steps // 2 :])
    last = Walkers(chain.points[-1], chain.log_density[-1])
    return Draws(models.eval(), last, diagnosis, chain.accepted)


def _differentiable(build: Callable[[torch.Size], SingleTaskGP], batch: torch.Size) -> SingleTaskGP:
    """Return a model whose data autograd may save, even if they were made in inference mode."""
    model = build(batch)
    inputs: Tensor = model.train_inputs[0]
    targets: Tensor = model.train_targets
    if inputs.is_inference() or targets.is_inference():
        model.set_train_data(inputs.clone(), targets.clone(), strict=False)
    return model


def _near(raw: Tensor, generator: torch.Generator, spread: float = _SPREAD) -> Tensor:
    noise = torch.randn(raw.shape, generator=generator, dtype=raw.dtype, device=generator.device)
    return raw + spread * noise.to(raw)


def _annealed(
    log_density: LogDensity, defaults: Tensor, steps: int, generator: torch.Generator
) -> Tensor:
    """Return walkers that begin dispersed around the defaults, and follow densities in between."""

    def log_reference(raw: Tensor) -> Tensor:
        return -0.5 * ((raw - defaults[0]) / _DISPERSED).square().sum(-1)

    start = _near(defaults, generator, _DISPERSED)
    return anneal(log_density, log_reference, start, max(steps // _SHORT, 1), generator)


def _resampled(
    log_density: LogDensity, start: Walkers, count: int, generator: torch.Generator
) -> Tensor:
    """Return ``count x p`` walkers, resampled in proportion to the growth of their density."""
    rows = torch.arange(count) % len(start.raw)
    raw = start.raw[rows]
    grown = torch.cat([log_density(half) for half in raw.chunk(2)]) - start.log_density[rows]
    coin = torch.rand((), generator=generator, dtype=raw.dtype, device=generator.device)
    places = resample(grown, coin.to(raw.device))
    order = torch.randperm(count, generator=generator, device=generator.device)
    points = raw[places][order.to(raw.device)]
    return points if count <= len(start.raw) else _near(points, generator)


def _raw(model: Module) -> Tensor:  # shape: (k, p)
    return torch.cat([p.detach().reshape(len(p), -1) for p in free_parameters(model)], -1)


def _bounds(model: Module) -> tuple[Tensor, Tensor]:
    """Return bounds of raw parameters, each ``(p,)``, for constraints that are not enforced (BoTorch)."""
    constraints = {id(p): c for _, p, c in model.named_parameters_and_constraints()}
    sides: tuple[list[Tensor], list[Tensor]] = ([], [])
    for parameter in free_parameters(model):
        constraint = constraints.get(id(parameter))
        ends = (-torch.inf, torch.inf)
        if constraint is not None and not constraint.enforced:
            ends = (constraint.lower_bound, constraint.upper_bound)
        for side, end in zip(sides, ends, strict=True):
            side.append(torch.as_tensor(end).to(parameter).expand(parameter[0].numel()))
    return torch.cat(sides[0]), torch.cat(sides[1])


def assigned(model: SingleTaskGP, raw: Tensor) -> SingleTaskGP:
    """Set the raw parameters of a batch of models, ``k x p`` as in ``Walkers``, and return it."""
    assign(free_parameters(model), raw)
    return model
