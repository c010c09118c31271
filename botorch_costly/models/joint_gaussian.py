"""Base class of single-outcome models that compute joint moments of arbitrary points."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import torch
from gpytorch import settings
from torch import Tensor

from botorch_costly.errors import InvalidShapeError, check
from botorch_costly.models.posterior import check_inputs, gaussian_posterior
from botorch_costly.models.promises import OneOutcome


class JointMoments(NamedTuple):
    """Joint normal distribution of the values at points, in units of the values."""

    mean: Tensor  # shape: (*batch, q)
    cov: Tensor  # shape: (*batch, q, q)
    noise: float  # variance of an observation


class JointGaussian(OneOutcome, ABC):
    """A BoTorch model of one outcome, without a batch, whose moments ``joint`` computes."""

    dim: int  # columns of a point

    @abstractmethod
    def joint(self, X: Tensor) -> JointMoments:
        """Return the moments at ``batch_shape x q x d`` points."""

    @property
    def batch_shape(self) -> torch.Size:
        """Empty: the model is not batched."""
        return torch.Size()

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: Any = None,
    ) -> Any:
        """Return the posterior at ``batch_shape x q x d`` points.

        Raises:
            InvalidShapeError: If the points have the wrong number of columns.
        """
        check_inputs(X, self.dim)
        mean, cov, noise = self.joint(X if X.is_floating_point() else X.double())
        return gaussian_posterior(mean, cov, observation_noise, noise, posterior_transform)


def check_observations(train_X: Tensor, train_Y: Tensor, dim: int) -> None:
    """Raise unless there are ``n x dim`` inputs and ``n x 1`` values, ``n >= 0``, all finite."""
    rows = train_X.shape[0]
    fits = train_X.shape == (rows, dim) and train_Y.shape == (rows, 1)
    shapes = tuple(train_X.shape), tuple(train_Y.shape)
    check(fits, "train_X, train_Y", f"n x {dim} and n x 1", shapes, InvalidShapeError)
    finite = bool(train_X.isfinite().all() & train_Y.isfinite().all())
    check(finite, "train_X, train_Y", "finite numbers", "NaN or infinite ones")


def raised(cov: Tensor, dtype: torch.dtype) -> Tensor:
    """Return covariances in a dtype, with variances raised to the minimum below which GPyTorch warns."""
    least = 1.001 * settings.min_variance.value(dtype)
    missing = (least - cov.diagonal(dim1=-2, dim2=-1)).clamp_min(0)
    return (cov + torch.diag_embed(missing)).to(dtype)
