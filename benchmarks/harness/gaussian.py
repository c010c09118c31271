"""Gaussian processes that BoTorch fits, for the rivals."""

from typing import Any, TypeVar

from botorch.fit import fit_gpytorch_mll
from gpytorch.mlls import ExactMarginalLogLikelihood
from torch import Tensor

_Model = TypeVar("_Model", bound=Any)
_LEAST = 1e-12  # spread of values that are told apart


def standardized(values: Tensor) -> Tensor:
    """Return values with mean 0 and variance 1; constant ones are 0."""
    return (values - values.mean()) / values.std().clamp_min(_LEAST)


def fitted(model: _Model, steps: int | None = None) -> _Model:
    """Return the model at the highest density of its hyperparameters, ready to be asked.

    The search for them ends after so many steps, if they are given.
    """
    options = {} if steps is None else {"optimizer_kwargs": {"options": {"maxiter": steps}}}
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model), **options)
    return model.eval()
