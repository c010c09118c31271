"""Functions with known maxima, in units of their standard deviation, and what methods believe of them."""

import math
import warnings
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any, NamedTuple

import torch
from botorch.models import SingleTaskGP
from botorch.test_functions import Branin, Hartmann
from botorch.test_functions.synthetic import SyntheticTestFunction
from gpytorch.constraints import GreaterThan
from gpytorch.kernels import MaternKernel, RBFKernel
from gpytorch.likelihoods import GaussianLikelihood
from gpytorch.means import ZeroMean
from gpytorch.priors import LogNormalPrior
from torch import Tensor
from torch.quasirandom import SobolEngine

from benchmarks.harness import gaussian
from botorch_costly.models import HyperparameterEnsemble, sample_hyperparameters
from botorch_costly.models.ensemble import Walkers, assigned
from botorch_costly.problems import DriftingSample

LENGTHSCALE = 0.2  # of samples of a Gaussian process, in each coordinate
_FEATURES = 2000
_STANDARD = 4096  # points over which a function is standardized


class Problem(NamedTuple):
    """A function, and how it is played."""

    dim: int
    value: Callable[[Tensor], Tensor]  # of rows, (n, d) -> (n,)
    best: float  # its maximum
    noise: float  # standard deviation of an observation
    known: bool  # whether methods are told the hyperparameters


@lru_cache(maxsize=4)  # the search for its maximum takes seconds
def sample(noise: float, seed: int) -> Problem:
    """Return a draw of a Gaussian process with a Matérn-5/2 kernel and prior variance 1, in 2-D."""
    truth = DriftingSample(2, LENGTHSCALE, forgetting=0.0, num_features=_FEATURES)
    path = truth.path(horizon=1, generator=torch.Generator().manual_seed(seed))
    return Problem(2, lambda X: path.value(0, X), path.maximum(0), noise, known=True)


@cache
def standardized(name: str) -> Problem:
    """Return Branin's function or Hartmann's in 3-D, upside down, with mean 0 and variance 1."""
    function: SyntheticTestFunction = Branin() if name == "branin" else Hartmann(dim=3)
    low, high = function.bounds.double()

    def raw(X: Tensor) -> Tensor:
        return -function.evaluate_true(low + (high - low) * X.double())

    engine = SobolEngine(function.dim, scramble=True, seed=0)
    values = raw(engine.draw(_STANDARD, dtype=torch.float64))
    level, spread = values.mean(), values.std()
    best = (-function.optimal_value - float(level)) / float(spread)
    return Problem(function.dim, lambda X: (raw(X) - level) / spread, best, 0.0, known=False)


PROBLEMS: Mapping[str, Callable[[int], Problem]] = {
    "GP sample": lambda seed: sample(0.01, seed),
    "branin": lambda seed: standardized("branin"),
    "hartmann3": lambda seed: standardized("hartmann3"),
}
"""Name of a problem to what makes it of a seed."""


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


def _gp(X: Tensor, y: Tensor, batch: torch.Size, kernel: Any, likelihood: Any, **more: Any) -> Any:
    inputs = X.expand(*batch, *X.shape)
    targets = y.unsqueeze(-1).expand(*batch, len(y), 1)
    return SingleTaskGP(
        inputs, targets, covar_module=kernel, likelihood=likelihood, outcome_transform=None, **more
    )


def fitted(X: Tensor, y: Tensor, *, exact: bool = False) -> SingleTaskGP:
    """Return BoTorch's default at the highest density of its hyperparameters.

    Exact observations have as little noise as BoTorch learns at least.
    """
    Y = y.unsqueeze(-1)
    noise = torch.full_like(Y, _LEAST_LEARNT) if exact else None
    return gaussian.fitted(SingleTaskGP(X, Y, noise, outcome_transform=None))


# Mean and standard deviation of the logarithm of the noise variance a priori. That of BoTorch puts exact
# values of a standardized function six deviations away.
USUAL, WIDE = (-4.0, 1.0), (-8.0, 2.0)


class Sampler:
    """Draws hyperparameters after each evaluation, from where the walkers were."""

    def __init__(
        self,
        generator: torch.Generator,
        *,
        exact: bool = False,
        noise: tuple[float, float] = USUAL,
    ) -> None:
        self._generator, self._exact, self._noise = generator, exact, noise
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
        dim = X.shape[-1]
        kernel = RBFKernel(
            ard_num_dims=dim,
            batch_shape=batch,
            lengthscale_prior=LogNormalPrior(math.sqrt(2) + 0.5 * math.log(dim), math.sqrt(3)),
            lengthscale_constraint=GreaterThan(2.5e-2),
        )
        likelihood = GaussianLikelihood(
            batch_shape=batch,
            noise_prior=LogNormalPrior(*self._noise),
            noise_constraint=GreaterThan(_LEAST_LEARNT),
        )
        if self._exact:
            # The bound itself has no finite raw value.
            likelihood.noise = _LEAST_LEARNT * (1 + 1e-3)
            likelihood.noise_covar.raw_noise.requires_grad_(False)
        return _gp(X, y, batch, kernel, likelihood)

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
