"""Covariances with a discretization, which the knowledge gradient and entropy search need of a model."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from botorch.models.model import Model
from torch import Tensor


class ProjectedRows(NamedTuple):
    """Rows, and a precomputed factor of the covariances with them."""

    rows: Tensor  # such as [configuration, round], shape: (m, d)
    projected: Tensor  # onto the n observations; its shape depends on the model


@runtime_checkable
class HasCovariances(Protocol):
    """A model with efficient covariances between many single points and a small discretization."""

    def project(self, rows: Tensor) -> ProjectedRows:
        """Project rows (``m x (d + 1)``) once, for many calls of ``covariance_with``."""

    def covariance_with(
        self, X: Tensor | ProjectedRows, discretization: ProjectedRows
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return mean and variance at ``X``, and the covariances with the discretization.

        Args:
            X: ``[configuration, round]`` rows, shape ``(*batch, d + 1)``, or projected rows.
            discretization: The result of ``project`` since the last observation.

        Returns:
            Mean and variance, each ``(*batch,)``, and covariances, ``(*batch, m)``.
        """


@runtime_checkable
class HasMoments(Protocol):
    """A model that computes means and variances of single rows faster than by a posterior."""

    def moments_of_rows(self, X: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return posterior means and variances of rows ``*batch x (d + 1)``.

        None if the rows have another dtype or device than the model.
        """


@runtime_checkable
class HasObservations(Protocol):
    """A model with efficient covariances between many single noisy observations and a few rows."""

    def project(self, rows: Tensor) -> ProjectedRows:
        """Project rows (``m x d``) once, for many calls of ``observed_with``."""

    def observed_with(self, X: Tensor, discretization: ProjectedRows) -> tuple[Tensor, Tensor]:
        """Return the variances of observations, and their covariances with projected rows.

        Args:
            X: Single points, ``batch_shape x 1 x d``.
            discretization: The result of ``project``.

        Returns:
            Variances, ``batch_shape``, and covariances, ``batch_shape x m``. An ensemble appends its own
            batch shape to ``batch_shape``.
        """


class _Joint:
    """The joint posterior of single points and rows under any BoTorch model with one outcome.

    Args:
        model: The model.
        posterior_transform: A posterior transform of BoTorch.
    """

    def __init__(self, model: Model, posterior_transform: Any = None) -> None:
        self._model: Any = model
        self._transform = posterior_transform

    def project(self, rows: Tensor) -> ProjectedRows:
        """Return the rows with an empty projection: a joint posterior precomputes nothing."""
        return ProjectedRows(rows, rows.new_zeros(len(rows), 0))

    def _moments(
        self,
        X: Tensor,  # shape: (*batch, 1, d)
        discretization: ProjectedRows,
        *,
        observation_noise: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:  # shapes: (*batch,), (*batch,), (*batch, m)
        """Return mean and variance at single points, and their covariances with the rows."""
        others = discretization.rows.to(X)
        posterior = self._model.posterior(
            torch.cat([X, others.expand(*X.shape[:-2], *others.shape)], -2),
            observation_noise=observation_noise,
            posterior_transform=self._transform,
        )
        cov = posterior.distribution.covariance_matrix[..., 0, :]
        return posterior.mean[..., 0, 0], cov[..., 0], cov[..., 1:]


class JointObservations(_Joint):
    """Covariances of observations from the joint posterior of any BoTorch model with one outcome."""

    def observed_with(self, X: Tensor, discretization: ProjectedRows) -> tuple[Tensor, Tensor]:
        """Return the variances of observations, and their covariances with the rows."""
        _, variance, cov = self._moments(X, discretization, observation_noise=True)
        return variance, cov


class JointCovariances(_Joint):
    """Covariances from the joint posterior of any BoTorch model over ``[configuration, round]``."""

    def covariance_with(
        self, X: Tensor | ProjectedRows, discretization: ProjectedRows
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return mean and variance at ``X``, and the covariances with the discretization."""
        rows = (X if isinstance(X, Tensor) else X.rows).unsqueeze(-2)
        mean, variance, cov = self._moments(rows, discretization, observation_noise=False)
        return mean, variance.clamp_min(0), cov


def observations_of(model: Model, posterior_transform: Any = None) -> HasObservations:
    """Return the model itself if it ``HasObservations``, else one that uses its joint posterior."""
    if posterior_transform is None and isinstance(model, HasObservations):
        return model
    return JointObservations(model, posterior_transform)


def covariances_of(model: Model) -> HasCovariances:
    """Return the model itself if it ``HasCovariances``, else one that uses its joint posterior."""
    return model if isinstance(model, HasCovariances) else JointCovariances(model)
