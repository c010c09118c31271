"""What methods believe: Gaussian processes with hyperparameters known, of highest density, or drawn."""

import math
import warnings
from typing import Any

import torch
from botorch.models import SingleTaskGP
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import MaternKernel, RBFKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ZeroMean
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from benchmarks.harness import gaussian
from benchmarks.information.problems import LENGTHSCALE
from botorch_costly.models import HyperparameterEnsemble, sample_hyperparameters
from botorch_costly.models.ensemble import Walkers, assigned

DRAWS = 10  # of hyperparameters
_FIRST_STEPS, _STEPS = 150, 25  # of the walkers, as in ``SubsetOptimizer``
_LEAST_NOISE = 1e-6  # variance
_LEAST_LEARNT = 1e-4  # variance, where it is not known


def told(X: Tensor, y: Tensor, noise: float, batch: torch.Size) -> SingleTaskGP:
    """Return the prior that samples are drawn from, given observations."""
    kernel = MaternKernel(nu=2.5, batch_shape=batch)
    kernel.lengthscale = LENGTHSCALE
    likelihood = GaussianLikelihood(
        batch_shape=batch, noise_constraint=GreaterThan(_LEAST_NOISE / 2)
    )
    likelihood.noise = max(noise**2, _LEAST_NOISE)
    return _gp(X, y, batch, kernel, likelihood, mean_module=ZeroMean()).eval()


def to_learn(X: Tensor, y: Tensor, batch: torch.Size, *, exact: bool = False) -> SingleTaskGP:
    """Return BoTorch's default, its raw parameters by the inverse softplus.

    ``SingleTaskGP`` stores them as they are. Walkers would step over orders of magnitude of the noise.
    """
    dim = X.shape[-1]
    kernel = RBFKernel(
        ard_num_dims=dim,
        batch_shape=batch,
        lengthscale_prior=LogNormalPrior(math.sqrt(2) + 0.5 * math.log(dim), math.sqrt(3)),
        lengthscale_constraint=GreaterThan(2.5e-2),
    )
    likelihood = GaussianLikelihood(
        batch_shape=batch,
        noise_prior=LogNormalPrior(-4.0, 1.0),
        noise_constraint=GreaterThan(_LEAST_LEARNT),
    )
    if exact:
        likelihood.noise = _LEAST_LEARNT * (1 + 1e-3)  # the bound itself has no finite raw value
        likelihood.noise_covar.raw_noise.requires_grad_(False)
    return _gp(X, y, batch, kernel, likelihood)


def _gp(X: Tensor, y: Tensor, batch: torch.Size, kernel: Any, likelihood: Any, **more: Any) -> Any:
    inputs = X.expand(*batch, *X.shape)
    targets = y.unsqueeze(-1).expand(*batch, len(y), 1)
    return SingleTaskGP(
        inputs,
        targets,
        covar_module=kernel,
        likelihood=likelihood,
        outcome_transform=None,
        **more,
    )


def fitted(X: Tensor, y: Tensor, *, exact: bool = False) -> SingleTaskGP:
    """Return BoTorch's default at the highest density of its hyperparameters.

    Exact observations have as little noise as BoTorch learns at least.
    """
    Y = y.unsqueeze(-1)
    noise = torch.full_like(Y, _LEAST_LEARNT) if exact else None
    return gaussian.fitted(SingleTaskGP(X, Y, noise, outcome_transform=None))


class Sampler:
    """Draws hyperparameters after each evaluation, from where the walkers were.

    Args:
        generator: The source of the draws.
        exact: Whether observations are known to have no noise.
    """

    def __init__(self, generator: torch.Generator, *, exact: bool = False) -> None:
        self._generator, self._exact = generator, exact
        self._walkers: Walkers | None = None

    def raw(self, X: Tensor, y: Tensor) -> Tensor:
        """Return raw hyperparameters, ``DRAWS x p``."""
        steps = _FIRST_STEPS if self._walkers is None else _STEPS
        drawn = sample_hyperparameters(
            lambda batch: self._to_learn(X, y, batch),
            self._generator,
            start=self._walkers,
            steps=steps,
        )
        self._walkers = drawn.walkers
        raw = drawn.walkers.raw
        return raw[torch.randperm(len(raw), generator=self._generator)[:DRAWS]]

    def _to_learn(self, X: Tensor, y: Tensor, batch: torch.Size) -> SingleTaskGP:
        return to_learn(X, y, batch, exact=self._exact)

    def ensemble(self, X: Tensor, y: Tensor) -> HyperparameterEnsemble:
        """Return what answers as one model."""
        raw = self.raw(X, y)
        return HyperparameterEnsemble(assigned(self._to_learn(X, y, torch.Size([len(raw)])), raw))

    def botorch_ensemble(self, X: Tensor, y: Tensor) -> SingleTaskGP:
        """Return the same with the shapes of BoTorch's fully Bayesian models."""
        raw = self.raw(X, y)
        batched = assigned(self._to_learn(X, y, torch.Size([len(raw)])), raw)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = _Ensemble(
                X,
                y.unsqueeze(-1),
                covar_module=batched.covar_module,
                likelihood=batched.likelihood,
                mean_module=batched.mean_module,
                outcome_transform=None,
            )
        return model.eval()


class _Ensemble(SingleTaskGP):
    """A GP for each draw of the hyperparameters, which JES conditions and averages."""

    _is_ensemble = True

    def posterior(self, X: Tensor, *args: Any, **kwargs: Any) -> Any:
        return super().posterior(X.unsqueeze(-3), *args, **kwargs)
