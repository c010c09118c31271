"""Covariances with a few rows: what the knowledge gradient and entropy search ask of a model."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import torch
from botorch.models.model import Model
from torch import Tensor


class ProjectedRows(NamedTuple):
    """Rows, and the part of a covariance with them that is computed once."""

    rows: Tensor  # such as [configuration, round], shape: (m, d)
    projected: Tensor  # on the n observations, in a shape of the belief's own


@runtime_checkable
class HasCovariances(Protocol):
    """A belief that gives the covariances of many configurations, one by one, with a few."""

    def project(self, rows: Tensor) -> ProjectedRows:
        """Prepare rows (``m x (d + 1)``) that ``covariance_with`` is to be asked about many times."""

    def covariance_with(
        self, X: Tensor | ProjectedRows, discretization: ProjectedRows
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return mean and variance at ``X``, and the covariances with the discretization.

        Args:
            X: ``[configuration, round]`` rows, shape ``(*batch, d + 1)``, or prepared ones.
            discretization: What ``project`` returned since the last observation.

        Returns:
            Mean and variance, each ``(*batch,)``, and covariances, ``(*batch, m)``.
        """


@runtime_checkable
class HasMoments(Protocol):
    """A belief that gives means and variances of single rows at less cost than a posterior."""

    def moments_of_rows(self, X: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return means and variances of rows ``*batch x (d + 1)``, those of ``posterior``.

        None where the rows are in another precision or on another device than the belief.
        """


@runtime_checkable
class HasObservations(Protocol):
    """A belief that gives the covariances of observations of many points, one by one, with a few rows."""

    def project(self, rows: Tensor) -> ProjectedRows:
        """Prepare rows (``m x d``) that ``observed_with`` is to be asked about many times."""

    def observed_with(self, X: Tensor, discretization: ProjectedRows) -> tuple[Tensor, Tensor]:
        """Return the variance of observations, and the covariances with prepared rows.

        Args:
            X: Single points, ``batch_shape x 1 x d``.
            discretization: What ``project`` returned.

        Returns:
            Variances, ``batch_shape``, and covariances, ``batch_shape x m``; an ensemble's batch shape
            follows that of the points.
        """


class _Joint:
    """The joint posterior of single points with some rows, of any BoTorch model with one outcome.

    Args:
        model: The model.
        posterior_transform: As for BoTorch's acquisition functions.
    """

    def __init__(self, model: Model, posterior_transform: Any = None) -> None:
        self._model: Any = model
        self._transform = posterior_transform

    def project(self, rows: Tensor) -> ProjectedRows:
        """Return the rows: a joint posterior has nothing that could be prepared."""
        return ProjectedRows(rows, rows.new_zeros(len(rows), 0))

    def _moments(
        self,
        X: Tensor,  # shape: (*batch, 1, d)
        discretization: ProjectedRows,
        *,
        observation_noise: bool,
    ) -> tuple[Tensor, Tensor, Tensor]:  # shapes: (*batch,), (*batch,), (*batch, m)
        """Return mean and variance at single points, and the covariances with the rows."""
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
        """Return the variance of observations, and the covariances with the rows."""
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
    """Return the model if it ``HasObservations``, or else the covariances of its joint posterior."""
    if posterior_transform is None and isinstance(model, HasObservations):
        return model
    return JointObservations(model, posterior_transform)


def covariances_of(model: Model) -> HasCovariances:
    """Return the model if it ``HasCovariances``, or else the covariances of its joint posterior."""
    return model if isinstance(model, HasCovariances) else JointCovariances(model)
