"""The time-varying GP with a cached factor: one row per query, nothing per waiting round."""

import copy
import logging
import math
from typing import Any, NamedTuple

import torch
from botorch.models.model import Model
from botorch.models.transforms.outcome import Standardize
from botorch.posteriors import GPyTorchPosterior
from gpytorch import settings
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.means import ZeroMean
from torch import Tensor

from botorch_costly.errors import (
    InvalidArgumentError,
    InvalidShapeError,
    check,
    check_count,
    check_positive,
    check_probability,
    check_rate,
)
from botorch_costly.models.posterior import gaussian_posterior
from botorch_costly.models.snapshot import SnapshotCache
from botorch_costly.models.time_varying import TimeVaryingGP
from botorch_costly.numerics.cholesky import Factor, append, empty_factor, factorize, remove
from botorch_costly.numerics.drift import memory, retention
from botorch_costly.numerics.snapshot import Moments, Snapshot, moments
from botorch_costly.numerics.stationary import (
    FAMILIES,
    SMOOTHNESS,
    Stationary,
    check_family,
    covariance,
)

_logger = logging.getLogger(__name__)
_MATERN_FAMILIES = {nu: family for family, nu in SMOOTHNESS.items()}


class ProjectedRows(NamedTuple):
    """Rows whose share of a covariance is computed once."""

    rows: Tensor  # [configuration, round], shape: (m, d + 1)
    projected: Tensor  # shape: (m, n)


class StreamingGP(Model):
    r"""The belief of ``TimeVaryingGP`` with given hyperparameters, kept up to date in O(n^2) a query.

    An observation borders the Cholesky factor, and rows too old to matter are removed from it; the
    factor does not depend on the current round, so waiting costs nothing at all. Rewards enter by
    ``reward = center + scale * f``, or by any other targets; what they enter by may be changed at
    any time in O(n^2), because the factor does not depend on the rewards.

    References:
        J. Wang, M. Ren, I. Bogunovic, Y. Xiong, R. Urtasun. Cost-efficient online hyperparameter
        optimization. 2021, section 3.1.

    Args:
        kernel: Covariance over configurations, of the scaled rewards.
        forgetting: Rate in [0, 1] per round.
        noise: Noise variance of the scaled rewards, positive.
        tolerance: A row is dropped when its weight ``(1 - forgetting)^age`` falls below this. All
            rows dropped together (one a round) raise a variance by at most a share ``outputscale
            tolerance / (noise forgetting)``, and move a mean by at most the root of that share, in
            prior standard deviations, times the largest scaled reward.
        maximum_rows: Beyond this many rows the oldest is dropped, whatever its weight.

    Raises:
        InvalidArgumentError: If a number is outside its range.
    """

    def __init__(
        self,
        kernel: Stationary,
        forgetting: float,
        noise: float,
        tolerance: float = 1e-8,
        maximum_rows: int = 1000,
    ) -> None:
        super().__init__()
        self.kernel = kernel._replace(family=check_family(kernel.family))
        self.forgetting = check_rate("forgetting", forgetting)
        self.noise = check_positive("noise", noise)
        self.window = memory(forgetting, check_probability("tolerance", tolerance))
        self.maximum_rows = check_count("maximum_rows", maximum_rows, minimum=1)
        like = kernel.outputscale
        self._factor = empty_factor(1, dtype=like.dtype, device=like.device)
        self._inputs = like.new_zeros(0, 0)
        self._rewards = like.new_zeros(0)
        self._targets = like.new_zeros(0)
        self.center, self.scale = 0.0, 1.0
        self._snapshot_cache: SnapshotCache | None = None

    @classmethod
    def from_model(cls, model: TimeVaryingGP, **kwargs: Any) -> "StreamingGP":
        """Take over the hyperparameters of a fitted model; its data are not taken over.

        Args:
            model: With the default kind of kernel: scaled Matérn or RBF, times forgetting.
            **kwargs: ``tolerance`` and ``maximum_rows``.

        Raises:
            InvalidArgumentError: If a part of the model has no streaming form: another kernel over
                configurations, a mean, a transform other than ``Standardize``, uneven noise.
        """
        noise = model.likelihood.noise.detach()
        one, levels = noise.numel() == 1, f"{noise.numel()} of them"
        check(one, "model", "one noise variance for all observations", levels)
        mean, transform = model.mean_module, getattr(model, "outcome_transform", None)
        check(isinstance(mean, ZeroMean), "model", "a zero mean", type(mean).__name__)
        check(not hasattr(model, "input_transform"), "model", "no input transform", "one")
        known = transform is None or isinstance(transform, Standardize)
        check(known, "model", "Standardize or no outcome transform", type(transform).__name__)
        columns, dim = model.space_kernel.active_dims.tolist(), model.train_inputs[0].shape[-1] - 1
        every = columns == list(range(dim))
        check(every, "model", f"a kernel over all {dim} configuration columns", columns)
        forgetting = model.time_kernel.forgetting.item()
        belief = cls(stationary_of(model.space_kernel), forgetting, noise.item(), **kwargs)
        if isinstance(transform, Standardize):
            belief.rescale(transform.means.item(), transform.stdvs.item())
        return belief

    @property
    def num_outputs(self) -> int:
        """One reward."""
        return 1

    @property
    def batch_shape(self) -> torch.Size:
        """One belief."""
        return torch.Size()

    @property
    def has_slopes(self) -> bool:
        """Whether moments have gradients in closed form: not among arms, nor before the first query."""
        return self.kernel.family in FAMILIES and self.num_rows > 0

    @property
    def least_variance(self) -> float:
        """Floor of the variance of ``f``, below which GPyTorch would warn."""
        return settings.min_variance.value(self.kernel.outputscale.dtype)

    @property
    def num_rows(self) -> int:
        """Observations in the factor."""
        return self._rewards.shape[-1]

    @property
    def inputs(self) -> Tensor:
        """Configurations and rounds in the factor, ``n x (d + 1)``."""
        return self._inputs

    @property
    def rewards(self) -> Tensor:
        """Rewards in the factor, shape ``(n,)``, in their own units."""
        return self._rewards

    @property
    def targets(self) -> Tensor:
        """What the factor is conditioned on, in units of the prior, shape ``(n,)``."""
        return self._targets

    def weights(self, now: float) -> Tensor:
        """Return the weight ``(1 - forgetting)^age`` of each row in round ``now``, shape ``(n,)``."""
        ages = (now - self._inputs[..., -1:].reshape(-1)).clamp_min(0)
        return retention(ages.new_tensor(self.forgetting), ages).square()

    def observe(self, x: Tensor, reward: float) -> None:
        """Condition on a reward; rounds may come in any order.

        Args:
            x: ``[configuration, round]``, shape ``(d + 1,)``.
            reward: Finite, in its own units.

        Raises:
            InvalidArgumentError: If the reward is not finite; the belief is unchanged.
            InvalidShapeError: If ``x`` does not fit; the belief is unchanged.
        """
        like = self.kernel.outputscale
        y = like.new_tensor([reward])
        finite = bool(y.isfinite().all() and x.isfinite().all())
        check(finite, "reward", "a finite number at a finite input", reward, InvalidArgumentError)
        self._check_columns(x)
        x = x.detach().to(like)
        inputs = self._inputs if self.num_rows else x.new_zeros(0, x.shape[-1])
        cross = self._covariance(x.unsqueeze(0), inputs).squeeze(0)
        target = (y - self.center) / self.scale
        noise = like.new_tensor(self.noise)
        self._factor, jitter = append(self._factor, cross, like, noise, target)
        if jitter.amount > 0:
            _logger.warning("The noise is too small for the factor; jitter %g.", jitter.amount)
        self._inputs = torch.cat([inputs, x.unsqueeze(0)])
        self._rewards = torch.cat([self._rewards, y])
        self._targets = torch.cat([self._targets, target])
        self._drop_negligible()

    def rescale(self, center: float, scale: float, targets: Tensor | None = None) -> None:
        """Let ``reward = center + scale * f`` from now on, for all rewards, in O(n^2).

        Args:
            center: The reward the prior expects.
            scale: What a unit of ``f`` is worth, positive.
            targets: What the belief about ``f`` is conditioned on instead of ``(reward - center) /
                scale``, such as clipped values or ranks, shape ``(n,)``. Later rewards enter affinely
                until the next call.

        Raises:
            InvalidArgumentError: If ``center`` or a target is not finite, or ``scale`` not positive.
            InvalidShapeError: If there is not one target for each row.
        """
        check(math.isfinite(center), "center", "a finite number", center)
        check_positive("scale", scale)
        if targets is None:
            targets = (self._rewards - center) / scale
        shape, expected = tuple(targets.shape), f"shape ({self.num_rows},)"
        check(shape == (self.num_rows,), "targets", expected, shape, InvalidShapeError)
        check(bool(targets.isfinite().all()), "targets", "finite numbers", targets)
        self.center, self.scale = center, scale
        self._targets = targets.to(self._rewards)
        whitened = self._factor.inverse @ self._targets.unsqueeze(-1)
        self._factor = self._factor._replace(whitened=whitened)

    def refactorize(self) -> None:
        """Recompute the factor from the stored rows, in O(n^3)."""
        if not self.num_rows:
            prior = self.kernel.outputscale
            self._factor = empty_factor(1, dtype=prior.dtype, device=prior.device)
            return
        noisy = self._covariance(self._inputs, self._inputs)
        noisy.diagonal().add_(self.noise)
        self._factor = factorize(noisy, self._targets.unsqueeze(-1))

    def in_prior_units(self) -> "StreamingGP":
        """Return this belief about ``f = (reward - center) / scale``, sharing its tensors.

        Decisions are made in these units: GPyTorch and BoTorch raise small variances to fixed floors,
        which rewards counted in millionths would lie below.
        """
        if self.num_rows:
            self._seen()  # kept for this view and the next ones
        view = copy.copy(self)
        view._rewards = self._targets
        view.center, view.scale = 0.0, 1.0
        return view

    def with_hyperparameters_of(self, other: "StreamingGP") -> "StreamingGP":
        """Return a belief with this one's data and the other's kernel, forgetting and noise."""
        new = copy.copy(other)
        new._inputs, new._rewards, new._targets = self._inputs, self._rewards, self._targets
        new.center, new.scale = self.center, self.scale
        new.refactorize()
        return new

    def condition_on_observations(self, X: Tensor, Y: Tensor, **kwargs: Any) -> "StreamingGP":
        """Return the belief that has also seen ``Y`` (``n x 1``) at ``X`` (``n x (d + 1)``).

        Raises:
            InvalidShapeError: If there is not one reward for each row; batches are not supported.
            InvalidArgumentError: If a reward is not finite.
        """
        fits = X.dim() == 2 and tuple(Y.shape) == (len(X), 1)
        shapes = tuple(X.shape), tuple(Y.shape)
        check(fits, "X, Y", "shapes (n, d + 1) and (n, 1)", shapes, InvalidShapeError)
        new = copy.copy(self)
        for x, y in zip(X, Y.flatten().tolist(), strict=True):
            new.observe(x, y)
        return new

    def _apply(self, fn: Any, recurse: bool = True) -> "StreamingGP":
        """Let ``.to``, ``.double`` and the like reach the factor, which is no parameter."""
        super()._apply(fn, recurse)
        family, *parameters = self.kernel
        self.kernel = Stationary(family, *map(fn, parameters))
        self._factor = Factor(*map(fn, self._factor))
        self._inputs, self._rewards = fn(self._inputs), fn(self._rewards)
        self._targets = fn(self._targets)
        return self

    def mean_and_variance(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return mean and variance of the function at ``X``, in the units of the rewards.

        Args:
            X: ``[configuration, round]`` rows, shape ``(*batch, d + 1)``.

        Returns:
            Each of shape ``(*batch,)``.
        """
        prior = self.kernel.outputscale
        self._check_questions(X)
        if not self.num_rows:
            mean = 0 * X[..., 0] + self.center  # differentiable, if flat
            return mean, (self.scale**2 * prior).expand_as(mean)
        rows = X.reshape(-1, X.shape[-1])
        mean, variance = self.moments(ProjectedRows(rows, self._project(rows)))
        return mean.reshape(X.shape[:-1]), variance.reshape(X.shape[:-1])

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: Any = None,
    ) -> GPyTorchPosterior:
        """Return the joint posterior at ``X``, ``batch_shape x q x (d + 1)``."""
        if X.shape[-2] == 1:  # what acquisition functions ask for, dozens of times a decision
            mean, variance = self.mean_and_variance(X)
            cov = variance.unsqueeze(-1)
        else:
            mean, cov = self.mean_and_covariance(X)
        noise = self.noise * self.scale**2
        return gaussian_posterior(mean, cov, observation_noise, noise, posterior_transform)

    def mean_and_covariance(self, X: Tensor) -> tuple[Tensor, Tensor]:
        """Return joint mean ``(*batch, q)`` and covariance ``(*batch, q, q)`` at ``X``."""
        self._check_questions(X)
        prior = self._covariance(X, X)
        if not self.num_rows:
            return torch.full_like(X[..., 0], self.center), self.scale**2 * prior
        projected = self._project(X)
        return self._mean(projected), self.scale**2 * (prior - projected @ projected.mT)

    def snapshot(self, now: float, dtype: torch.dtype | None = None) -> tuple[Snapshot, float]:
        """Return the belief about ``f`` as seen from one round, and what was retained until ``now``.

        Both together are what is believed in round ``now``. The first changes with queries only.

        Args:
            now: The round.
            dtype: Of the first; the belief's own if omitted.

        Raises:
            InvalidArgumentError: If nothing has been observed.
        """
        check(self.num_rows > 0, "snapshot", "a belief with observations", "none")
        return self._seen().snapshot(now, dtype)

    def in_round(self, X: Tensor, now: float) -> tuple[Tensor, Tensor]:
        """Return mean and variance at configurations ``batch_shape x d`` in one round.

        What :meth:`mean_and_variance` says of ``[configuration, round]`` rows, at less cost and without
        gradients.

        Raises:
            InvalidShapeError: If ``X`` has not the columns of a configuration.
        """
        if not self.num_rows:
            return self.mean_and_variance(torch.cat([X, torch.full_like(X[..., :1], now)], -1))
        rows = self.configurations(X)
        seen, keep = self.snapshot(now)
        with torch.no_grad():
            found = moments(seen, rows)
        raw = torch.add(seen.prior, found.explained, alpha=-(keep * keep))
        mean = self.center + self.scale * keep * found.mean
        variance = self.scale**2 * raw.clamp_min(self.least_variance)
        return mean.reshape(X.shape[:-1]), variance.reshape(X.shape[:-1])

    def seen_from(self, now: float, X: Tensor) -> Moments:
        """Return the moments of ``f`` at configurations, as :meth:`snapshot` sees them in round ``now``.

        The last few answers are kept: a domain asks about the same tensor of points in every round, and
        between queries their moments change by a factor only.

        Args:
            now: The round.
            X: Configurations, ``batch_shape x d`` in any shape; the moments have one. The tensor must
                not be changed afterwards by anybody who hides it from torch.

        Raises:
            InvalidShapeError: If ``X`` has not the columns of a configuration.
        """
        self.configurations(X)
        with torch.no_grad():
            return self._seen().moments(now, X)

    def configurations(self, X: Tensor) -> Tensor:
        """Return configurations as rows ``m x d`` in the belief's precision, once it has observations.

        Raises:
            InvalidShapeError: If they have not the columns of one.
        """
        columns, received = self._inputs.shape[-1] - 1, tuple(X.shape)
        fits = X.dim() >= 1 and X.shape[-1] == columns
        check(fits, "X", f"{columns} columns", received, InvalidShapeError)
        return X.reshape(-1, columns).to(self._inputs)

    def in_lengthscales(self, step: Tensor) -> Tensor:
        """Return a difference of configurations in units of the lengthscales."""
        return step / self.kernel.lengthscale

    def project(self, rows: Tensor) -> ProjectedRows:
        """Prepare rows (``m x (d + 1)``) that ``covariance_with`` is to be asked about many times."""
        self._check_questions(rows)
        if not self.num_rows:
            return ProjectedRows(rows, rows.new_zeros(len(rows), 0))
        return ProjectedRows(rows, self._project(rows))

    def moments(self, prepared: ProjectedRows) -> tuple[Tensor, Tensor]:
        """Return mean and variance at rows from ``project`` since the last reward, each ``(m,)``."""
        if not self.num_rows:
            return self.mean_and_variance(prepared.rows)
        return self._mean(prepared.projected), self._variance(prepared.projected)

    def covariance_with(
        self, X: Tensor | ProjectedRows, discretization: ProjectedRows
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return what is believed at ``X`` and how it moves with the function at the discretization.

        Args:
            X: ``[configuration, round]`` rows, shape ``(*batch, d + 1)``, or such as are prepared.
            discretization: What ``project`` returned since the last reward.

        Returns:
            Mean and variance at ``X``, each ``(*batch,)``, and covariances, ``(*batch, m)``.
        """
        if isinstance(X, ProjectedRows):
            cov = (
                self._covariance(X.rows, discretization.rows)
                - X.projected @ discretization.projected.mT
            )
            return *self.moments(X), self.scale**2 * cov
        self._check_questions(X)
        flat = self.project(X.reshape(-1, X.shape[-1]))
        mean, variance, cov = self.covariance_with(flat, discretization)
        shape = X.shape[:-1]
        return mean.reshape(shape), variance.reshape(shape), cov.reshape(*shape, -1)

    def get_extra_state(self) -> dict[str, Any]:
        """Return everything needed to continue bit by bit, as tensors and plain values."""
        return {
            "factor": list(self._factor),
            "inputs": self._inputs,
            "rewards": self._rewards,
            "center": self.center,
            "scale": self.scale,
            "targets": self._targets,
            "family": self.kernel.family,
            "lengthscale": self.kernel.lengthscale,
            "outputscale": self.kernel.outputscale,
            "forgetting": self.forgetting,
            "noise": self.noise,
            "window": self.window,
            "maximum_rows": self.maximum_rows,
        }

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Take over a state from ``get_extra_state``, hyperparameters included.

        Its tensors come to the device of this belief and keep their dtype.
        """
        device = self.kernel.outputscale.device
        self._factor = Factor(*(part.to(device) for part in state["factor"]))
        self._inputs, self._rewards = state["inputs"].to(device), state["rewards"].to(device)
        self._targets = state["targets"].to(device)
        self.center, self.scale = state["center"], state["scale"]
        lengthscale, outputscale = state["lengthscale"].to(device), state["outputscale"].to(device)
        self.kernel = Stationary(state["family"], lengthscale, outputscale)
        self.forgetting, self.noise = state["forgetting"], state["noise"]
        self.window, self.maximum_rows = state["window"], state["maximum_rows"]

    def _seen(self) -> SnapshotCache:
        # What changes a belief replaces its factor: the same factor is the same belief.
        if self._snapshot_cache is None or self._snapshot_cache.factor is not self._factor:
            self._snapshot_cache = SnapshotCache(
                self.kernel, self.forgetting, self._factor, self._inputs
            )
        return self._snapshot_cache

    def _covariance(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Return the product covariance of ``[configuration, round]`` rows."""
        lag = (x1[..., -1].unsqueeze(-1) - x2[..., -1].unsqueeze(-2)).abs()
        keep = retention(lag.new_tensor(self.forgetting), lag)
        return covariance(self.kernel, x1[..., :-1], x2[..., :-1]) * keep

    def _project(self, rows: Tensor) -> Tensor:
        """Return the covariance with the observations, whitened, ``(*batch, q, n)``."""
        return self._covariance(rows, self._inputs) @ self._factor.inverse.mT

    def _mean(self, projected: Tensor) -> Tensor:
        return self.center + self.scale * (projected @ self._factor.whitened).squeeze(-1)

    def _variance(self, projected: Tensor) -> Tensor:
        raw = self.kernel.outputscale - projected.square().sum(-1)
        return self.scale**2 * raw.clamp_min(self.least_variance)

    def _drop_negligible(self) -> None:
        times = self._inputs[:, -1]
        newest = times.max()
        while self.num_rows > self.maximum_rows or newest - self._inputs[:, -1].min() > self.window:
            oldest = int(self._inputs[:, -1].argmin())
            keep = torch.arange(self.num_rows, device=times.device) != oldest
            self._factor = remove(self._factor, oldest)
            self._inputs, self._rewards = self._inputs[keep], self._rewards[keep]
            self._targets = self._targets[keep]

    def _check_questions(self, X: Tensor) -> None:
        """A single column would broadcast against any number of them without a word."""
        columns = self._inputs.shape[-1] if self.num_rows else self.kernel.lengthscale.numel() + 1
        anything = not self.num_rows and columns == 2  # one lengthscale fits every dimension
        fits = X.dim() >= 1 and X.shape[-1] >= 2 and (anything or X.shape[-1] == columns)
        expected = f"{columns} columns [configuration, round]"
        check(fits, "X", expected, tuple(X.shape), InvalidShapeError)

    def _check_columns(self, x: Tensor) -> None:
        lengthscales = self.kernel.lengthscale.numel()
        dim = x.numel() - 1
        fits = x.dim() == 1 and dim >= 1 and lengthscales in (1, dim)
        fits = fits and (not self.num_rows or dim + 1 == self._inputs.shape[-1])
        check(fits, "x", "one row [configuration, round]", tuple(x.shape), InvalidShapeError)


def stationary_of(kernel: Any) -> Stationary:
    """Return the plain form of a scaled Matérn or RBF kernel.

    Raises:
        InvalidArgumentError: If it is another kernel.
    """
    base = kernel.base_kernel if isinstance(kernel, ScaleKernel) else kernel
    known = isinstance(base, MaternKernel | RBFKernel)
    check(known, "kernel", "a (scaled) Matérn or RBF kernel", type(base).__name__)
    family = _MATERN_FAMILIES[base.nu] if isinstance(base, MaternKernel) else "rbf"
    lengthscale = base.lengthscale.detach().reshape(-1)
    scale = kernel.outputscale.detach() if base is not kernel else lengthscale.new_ones(())
    return Stationary(family, lengthscale, scale.reshape(()))
