"""Gaussian processes that BoTorch fits, for the rivals."""

from typing import TypeVar

from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

_Model = TypeVar("_Model", bound=SingleTaskGP)
_LEAST = 1e-12  # spread of values that are told apart


def standardized(values: Tensor) -> Tensor:
    """Return values with mean 0 and variance 1; constant ones are 0."""
    return (values - values.mean()) / values.std().clamp_min(_LEAST)


def fitted(model: _Model) -> _Model:
    """Return the model at the highest density of its hyperparameters, ready to be asked."""
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model.eval()
