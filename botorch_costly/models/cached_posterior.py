"""The posterior of a streaming GP, computed from the cached Cholesky factor of its observations."""

from dataclasses import replace
from typing import NamedTuple

import torch
from gpytorch import settings
from torch import Tensor

from botorch_costly.device import moved
from botorch_costly.errors import InvalidShapeError, check
from botorch_costly.models.cached_rows import CachedRows
from botorch_costly.models.covariance import ProjectedRows
from botorch_costly.models.snapshot import Snapshot
from botorch_costly.numerics.cholesky import Factor
from botorch_costly.numerics.closed_form import closed_form
from botorch_costly.numerics.drift import retention, retention_float
from botorch_costly.numerics.radial import FAMILIES
from botorch_costly.numerics.stationary import Stationary, covariance


class _Frozen(NamedTuple):
    """The snapshot at the newest observation's round, in prior units."""

    factor: Factor  # identifies the observations
    newest: float
    snapshot: Snapshot


class CachedPosterior:
    """The posterior of ``reward = center + scale * f`` under a GP with given hyperparameters.

    The subclass :class:`botorch_costly.models.StreamingGP` adds and removes observations.
    """

    kernel: Stationary  # of f over configurations
    forgetting: float  # rate per round
    noise: float  # variance, in units of f
    center: float
    scale: float
    _rows: CachedRows
    _frozen: _Frozen | None

    @property
    def has_slopes(self) -> bool:
        """Whether moments have analytic gradients: not over arms, nor without observations."""
        return self.kernel.family in FAMILIES and self.num_rows > 0

    @property
    def least_variance(self) -> float:
        """Lower bound of the variance of ``f``, below which GPyTorch would warn."""
        return settings.min_variance.value(self.kernel.outputscale.dtype)

    @property
    def num_rows(self) -> int:
        """Number of observations in the factor."""
        return self._rows.number

    @property
    def factor(self) -> Factor:
        """The Cholesky factor of the covariance of the observations, with its inverse."""
        return self._rows.factor

    @property
    def inputs(self) -> Tensor:
        """Configurations and rounds in the factor, ``n x (d + 1)``."""
        return self._rows.inputs

    @property
    def rewards(self) -> Tensor:
        """Rewards in the factor, shape ``(n,)``, in the user's units."""
        return self._rows.rewards

    @property
    def targets(self) -> Tensor:
        """Standardized rewards in the factor, in prior units, shape ``(n,)``."""
        return self._rows.targets

    def weights(self, now: float) -> Tensor:
        """Return the weight ``(1 - forgetting)^age`` of each row in round ``now``, shape ``(n,)``."""
        return moved(self.near_weights(now), self._rows.rewards)

    def near_weights(self, now: float) -> Tensor:
        """Return ``weights`` on the CPU, without synchronizing with a device."""
        return self._rows.weights(now, self.forgetting)

    @property
    def near(self) -> Tensor:
        """Observations ``[configuration, round, reward]`` on the CPU, shape ``(n, d + 2)``."""
        return self._rows.near

    @property
    def variances(self) -> Tensor:
        """Variances of the rewards beyond the noise, in their units, on the CPU, shape ``(n,)``."""
        return self._rows.variances

    @property
    def extra_noise(self) -> Tensor:
        """Noise of each row beyond ``noise``, in prior units, on the CPU, shape ``(n,)``."""
        return self._rows.extra

    def mean_and_variance(self, X: Tensor | ProjectedRows) -> tuple[Tensor, Tensor]:
        """Return mean and variance of the function at ``X``, in units of the rewards.

        Args:
            X: ``[configuration, round]`` rows, shape ``(*batch, d + 1)``, or the result of ``project``
                since the last observation.

        Returns:
            Mean and variance, each of shape ``(*batch,)``.
        """
        if isinstance(X, ProjectedRows):
            if self.num_rows:
                return self._mean(X.projected), self._variance(X.projected)
            X = X.rows
        prior = self.kernel.outputscale
        self._check_columns_of(X)
        if not self.num_rows:
            mean = 0 * X[..., 0] + self.center  # constant, but differentiable
            return mean, (self.scale**2 * prior).expand_as(mean)
        rows = X.reshape(-1, X.shape[-1])
        mean, variance = self.mean_and_variance(ProjectedRows(rows, self._project(rows)))
        return mean.reshape(X.shape[:-1]), variance.reshape(X.shape[:-1])

    def moments_of_rows(self, X: Tensor) -> tuple[Tensor, Tensor] | None:
        """Return ``mean_and_variance`` of rows; None if they have another dtype or device."""
        like = self.kernel.outputscale
        fits = X.dtype == like.dtype and X.device == like.device
        return self.mean_and_variance(X) if fits else None

    def mean_and_covariance(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return joint mean ``(*batch, q)`` and covariance ``(*batch, q, q)`` at ``X``."""
        self._check_columns_of(X)
        prior = self._covariance(X, X)
        if not self.num_rows:
            return torch.full_like(X[..., 0], self.center), self.scale**2 * prior
        projected = self._project(X)
        return self._mean(projected), self.scale**2 * (prior - projected @ projected.mT)

    def snapshot(self, now: float) -> Snapshot:
        """Return the posterior in round ``now``, in closed form.

        The snapshots of all rounds from the newest observation to the next share one closed form.

        Raises:
            InvalidArgumentError: If there are no observations.
        """
        check(self.num_rows > 0, "snapshot", "a belief with observations", "none")
        frozen = self._freeze()
        snapshot = frozen.snapshot
        if now < frozen.newest:  # only the absolute lag matters
            snapshot = self._frozen_at(now)
        return replace(
            snapshot,
            retained=self.retained(now),
            least_variance=self.least_variance,
            center=self.center,
            scale=self.scale,
        )

    def retained(self, now: float) -> float:
        """Return the share of the newest observation that is retained in round ``now``, in [0, 1]."""
        return retention_float(self.forgetting, max(now - self._freeze().newest, 0.0))

    def in_round(self, X: Tensor, now: float) -> tuple[Tensor, Tensor]:
        """Return mean and variance at configurations ``batch_shape x d`` in one round.

        Equals :meth:`mean_and_variance` of ``[configuration, round]`` rows, but cheaper and without
        gradients.

        Raises:
            InvalidShapeError: If ``X`` does not have the columns of a configuration.
        """
        if not self.num_rows:
            return self.mean_and_variance(torch.cat([X, torch.full_like(X[..., :1], now)], -1))
        snapshot = self.snapshot(now)
        with torch.no_grad():
            mean, variance = snapshot.mean_and_variance(snapshot.configurations(X))
        return mean.reshape(X.shape[:-1]), variance.reshape(X.shape[:-1])

    def in_lengthscales(self, step: Tensor) -> Tensor:
        """Return a difference of configurations in units of the lengthscales."""
        return step / self.kernel.lengthscale

    def project(self, rows: Tensor) -> ProjectedRows:
        """Project rows (``m x (d + 1)``) once, for many calls of ``covariance_with``."""
        self._check_columns_of(rows)
        if not self.num_rows:
            return ProjectedRows(rows, rows.new_zeros(len(rows), 0))
        return ProjectedRows(rows, self._project(rows))

    def covariance_with(
        self, X: Tensor | ProjectedRows, discretization: ProjectedRows
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return mean and variance at ``X``, and the covariances with the discretization.

        Args:
            X: ``[configuration, round]`` rows, shape ``(*batch, d + 1)``, or projected rows.
            discretization: The result of ``project`` since the last observation.

        Returns:
            Mean and variance at ``X``, each ``(*batch,)``, and covariances, ``(*batch, m)``.
        """
        if isinstance(X, ProjectedRows):
            cov = (
                self._covariance(X.rows, discretization.rows)
                - X.projected @ discretization.projected.mT
            )
            return *self.mean_and_variance(X), self.scale**2 * cov
        self._check_columns_of(X)
        flat = self.project(X.reshape(-1, X.shape[-1]))
        mean, variance, cov = self.covariance_with(flat, discretization)
        shape = X.shape[:-1]
        return mean.reshape(shape), variance.reshape(shape), cov.reshape(*shape, -1)

    def _freeze(self) -> _Frozen:
        # Every change of the observations replaces the factor object, so its identity is a cache key.
        if self._frozen is None or self._frozen.factor is not self._rows.factor:
            newest = float(self._rows.near[:, -2].max())
            self._frozen = _Frozen(self._rows.factor, newest, self._frozen_at(newest))
        return self._frozen

    def _frozen_at(self, now: float) -> Snapshot:
        rows = self._rows
        with torch.inference_mode(False):  # the cached snapshot must also work outside of this mode
            lag = (now - rows.inputs[:, -1]).abs()
            retentions = retention(self.forgetting, lag)
            return Snapshot(
                closed_form(self.kernel, rows.inputs[:, :-1], retentions, *rows.factor[1:])
            )

    def _covariance(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Return the product covariance of ``[configuration, round]`` rows."""
        lag = (x1[..., -1].unsqueeze(-1) - x2[..., -1].unsqueeze(-2)).abs()
        retained = retention(self.forgetting, lag)
        return covariance(self.kernel, x1[..., :-1], x2[..., :-1]) * retained

    def _project(self, rows: Tensor) -> Tensor:
        """Return the covariance with the observations, whitened, ``(*batch, q, n)``."""
        return self._covariance(rows, self._rows.inputs) @ self._rows.factor.inverse.mT

    def _mean(self, projected: Tensor) -> Tensor:
        return self.center + self.scale * (projected @ self._rows.factor.whitened).squeeze(-1)

    def _variance(self, projected: Tensor) -> Tensor:
        raw = self.kernel.outputscale - projected.square().sum(-1)
        return self.scale**2 * raw.clamp_min(self.least_variance)

    def _check_columns_of(self, X: Tensor) -> None:
        """Raise unless ``X`` has the columns of the observations: a single one would broadcast."""
        columns = (
            self._rows.inputs.shape[-1] if self.num_rows else self.kernel.lengthscale.numel() + 1
        )
        is_isotropic = not self.num_rows and columns == 2  # one lengthscale fits every dimension
        fits = X.dim() >= 1 and X.shape[-1] >= 2 and (is_isotropic or X.shape[-1] == columns)
        expected = f"{columns} columns [configuration, round]"
        check(fits, "X", expected, tuple(X.shape), InvalidShapeError)
