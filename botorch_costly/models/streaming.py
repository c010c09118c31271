"""The time-varying GP with a cached Cholesky factor: O(n^2) per query, nothing per waiting round."""

import copy
import logging
import math
from typing import Any

import torch
from botorch.models.transforms.outcome import Standardize
from botorch.posteriors import GPyTorchPosterior
from gpytorch.kernels import MaternKernel, RBFKernel, ScaleKernel
from gpytorch.means import ZeroMean
from torch import Tensor

from botorch_costly.device import moved
from botorch_costly.errors import (
    InvalidArgumentError,
    InvalidShapeError,
    NumericalError,
    check,
    check_count,
    check_nonnegative,
    check_positive,
    check_probability,
    check_rate,
)
from botorch_costly.models.cached_posterior import CachedPosterior
from botorch_costly.models.cached_rows import CachedRows, near_rows, noise_of, without_variance
from botorch_costly.models.posterior import check_inputs, gaussian_posterior
from botorch_costly.models.promises import OneOutcome, check_options
from botorch_costly.models.time_varying import TimeVaryingGP
from botorch_costly.numerics.cholesky import append, empty_factor, factorize, least_pivot
from botorch_costly.numerics.drift import memory
from botorch_costly.numerics.radial import SMOOTHNESS, check_family
from botorch_costly.numerics.stationary import Stationary

_logger = logging.getLogger(__name__)
_MATERN_FAMILIES = {nu: family for family, nu in SMOOTHNESS.items()}


class StreamingGP(CachedPosterior, OneOutcome):
    r"""The posterior of ``TimeVaryingGP`` with fixed hyperparameters, updated in O(n^2) per query.

    An observation appends a row to the Cholesky factor, and rows of negligible weight are removed; the
    factor does not depend on the current round, so waiting costs nothing. The model is ``reward = center
    + scale * f``, or conditions ``f`` on any other targets; targets can be replaced at any time in
    O(n^2), because the factor does not depend on them. A reward may have a variance of its own, in its
    units: then the factor depends on the scale, and replacing that takes O(n^3).

    References:
        J. Wang, M. Ren, I. Bogunovic, Y. Xiong, R. Urtasun. Cost-efficient online hyperparameter
        optimization. 2021, section 3.1.

    Args:
        kernel: Covariance of ``f`` over configurations.
        forgetting: Rate in [0, 1] per round.
        noise: Noise variance in units of ``f``, positive.
        tolerance: Weight ``(1 - forgetting)^age`` below which a row is dropped. With one query a round,
            all dropped rows together raise a variance by at most a share ``outputscale tolerance /
            (noise forgetting)``, and change a mean by at most the root of that share, in prior standard
            deviations, times the largest scaled reward.
        maximum_rows: Largest number of rows, beyond which the oldest is dropped.

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
        self._rows = CachedRows.none(like)
        self.center, self.scale = 0.0, 1.0
        self._frozen = None
        self._prior: tuple[Tensor, float] | None = None  # prior variance as tensor and as number

    @classmethod
    def from_model(cls, model: TimeVaryingGP, **kwargs: Any) -> "StreamingGP":
        """Return a model with the hyperparameters of a fitted model, but without its data.

        Args:
            model: A model with the default type of kernel: scaled Matérn or RBF, times forgetting.
            **kwargs: ``tolerance`` and ``maximum_rows``.

        Raises:
            InvalidArgumentError: If the model has a component without streaming form: another kernel over
                configurations, a mean, a transform other than ``Standardize``, heteroskedastic noise.
        """
        noise = model.likelihood.noise.detach()
        levels = f"{noise.numel()} of them"
        check(noise.numel() == 1, "model", "one noise variance for all observations", levels)
        mean = model.mean_module
        check(isinstance(mean, ZeroMean), "model", "a zero mean", type(mean).__name__)
        # BoTorch's models have these attributes only if there is a transform.
        check(not hasattr(model, "input_transform"), "model", "no input transform", "one")
        transform = getattr(model, "outcome_transform", None)
        is_valid = transform is None or isinstance(transform, Standardize)
        check(is_valid, "model", "Standardize or no outcome transform", type(transform).__name__)
        columns, dim = model.space_kernel.active_dims.tolist(), model.train_inputs[0].shape[-1] - 1
        expected = f"a kernel over all {dim} configuration columns"
        check(columns == list(range(dim)), "model", expected, columns)
        kernel, rate = stationary_of(model.space_kernel), model.time_kernel.forgetting.item()
        streaming = cls(kernel, rate, noise.item(), **kwargs)
        if transform is not None:
            streaming.rescale(transform.means.item(), transform.stdvs.item())
        return streaming

    @property
    def batch_shape(self) -> torch.Size:
        """Empty: the model is not batched."""
        return torch.Size()

    def observe(self, x: Tensor, reward: float, variance: float = 0.0) -> None:
        """Condition on a reward; rounds may come in any order.

        Args:
            x: ``[configuration, round]``, shape ``(d + 1,)``.
            reward: The reward, finite, in the user's units.
            variance: Variance of the reward beyond the noise of the model, in its units squared.

        Raises:
            InvalidArgumentError: If the reward is not finite, or the variance negative or not finite; the
                model is unchanged.
            InvalidShapeError: If ``x`` has the wrong shape; the model is unchanged.
        """
        like = self.kernel.outputscale
        near = torch.tensor([*x.detach().flatten().tolist(), reward], dtype=like.dtype)
        finite = all(map(math.isfinite, near.tolist()))
        check(finite, "reward", "a finite number at a finite input", reward, InvalidArgumentError)
        check_nonnegative("variance", variance)
        self._check_columns(x)
        x, y = moved(x.detach(), like), like.new_full((1,), reward)
        rows = self._rows
        inputs = rows.inputs if rows.number else x.new_zeros(0, x.shape[-1])
        cross = self._covariance(x.unsqueeze(0), inputs).squeeze(0)
        target = (y - self.center) / self.scale
        variances = torch.tensor([variance], dtype=torch.float64)
        extra = noise_of(variances, 1 / self.scale) if variance > 0 else variances
        noise = like.new_full((), self.noise + sum(extra.tolist()))
        factor, jitter = append(rows.factor, cross, like, noise, target)
        if self._needs_jitter() and jitter.amount > 0:
            _logger.warning("The noise is too small for a factorization; jitter %g.", jitter.amount)
        rows = CachedRows(
            factor,
            torch.cat([inputs, x.unsqueeze(0)]),
            torch.cat([rows.rewards, y]),
            torch.cat([rows.targets, target]),
            torch.cat([rows.near if rows.number else near.new_zeros(0, len(near)), near[None]]),
            torch.cat([rows.variances, variances]),
            torch.cat([rows.extra, extra]),
        )
        self._rows = rows.within(self.window, self.maximum_rows)

    def rescale(
        self,
        center: float,
        scale: float,
        targets: Tensor | None = None,
        slopes: Tensor | None = None,
    ) -> None:
        """Set ``reward = center + scale * f`` for all past and later rewards, in O(n^2).

        If the noise of a row changes, because its reward has a variance of its own, in O(n^3).

        Args:
            center: Prior mean of the reward.
            scale: One unit of ``f`` in units of the reward, positive.
            targets: Values of ``f`` to condition on instead of ``(reward - center) / scale``, such as
                clipped values or ranks, shape ``(n,)``. Later rewards are again transformed affinely.
            slopes: Derivatives of the targets by the rewards, on the CPU, shape ``(n,)``; ``1 / scale``
                if omitted. The variance of a reward times its slope squared is noise of its row.

        Raises:
            InvalidArgumentError: If ``center``, a target or a slope is not finite, or ``scale`` not
                positive.
            InvalidShapeError: If there is not one target, or one slope, for each row.
        """
        check(math.isfinite(center), "center", "a finite number", center)
        check_positive("scale", scale)
        if targets is None:
            targets = (self._rows.rewards - center) / scale
        shape, expected = tuple(targets.shape), f"shape ({self.num_rows},)"
        check(shape == (self.num_rows,), "targets", expected, shape, InvalidShapeError)
        check(bool(targets.isfinite().all()), "targets", "finite numbers", targets)
        extra = self._extra_noise(1 / scale if slopes is None else slopes)
        self.center, self.scale = center, scale
        if torch.equal(extra, self._rows.extra):
            self._rows = self._rows.conditioned_on(targets)
        else:
            targets = moved(targets, self._rows.rewards)
            self._rows = self._rows._replace(targets=targets, extra=extra)
            try:
                self.refactorize()
            except NumericalError:  # appending raises pivots that are too small
                self._append_anew()

    def _extra_noise(self, slopes: Tensor | float) -> Tensor:
        """Return the noise of each row beyond ``noise``, for checked slopes of the targets."""
        if isinstance(slopes, Tensor):
            expected, shape = f"shape ({self.num_rows},)", tuple(slopes.shape)
            check(shape == (self.num_rows,), "slopes", expected, shape, InvalidShapeError)
            check(bool(slopes.isfinite().all()), "slopes", "finite numbers", slopes)
            slopes = slopes.double()
        return noise_of(self._rows.variances, slopes)

    def _append_anew(self) -> None:
        """Rebuild the factor row by row, as ``observe`` does."""
        rows, prior = self._rows, self.kernel.outputscale
        cov = self._covariance(rows.inputs, rows.inputs)
        noises = moved(self.noise + rows.extra, prior)
        factor = empty_factor(1, dtype=prior.dtype, device=prior.device)
        for row in range(rows.number):
            target = rows.targets[row : row + 1]
            factor, _ = append(factor, cov[row, :row], prior, noises[row], target)
        self._rows = rows._replace(factor=factor)

    def refactorize(self) -> None:
        """Recompute the Cholesky factor from the stored rows, in O(n^3)."""
        rows, prior = self._rows, self.kernel.outputscale
        factor = empty_factor(1, dtype=prior.dtype, device=prior.device)
        if rows.number:
            noisy = self._covariance(rows.inputs, rows.inputs)
            noisy.diagonal().add_(self.noise)
            if rows.has_extra:
                noisy.diagonal().add_(moved(rows.extra, noisy))
            factor = factorize(noisy, rows.targets.unsqueeze(-1))
        self._rows = rows._replace(factor=factor)

    def in_prior_units(self) -> "StreamingGP":
        """Return a view of this model whose rewards are ``f = (reward - center) / scale``.

        Decisions use these units: GPyTorch and BoTorch raise small variances to fixed minima, which would
        exceed the variances of rewards of the order of 1e-6.
        """
        if self.num_rows:
            self._freeze()  # a cache that this view and later ones share
        view = copy.copy(self)
        rows = self._rows
        view._rows = rows._replace(rewards=rows.targets, variances=rows.extra)
        view.center, view.scale = 0.0, 1.0
        return view

    def with_hyperparameters_of(self, other: "StreamingGP") -> "StreamingGP":
        """Return a model with the data of this one, and the kernel, forgetting and noise of the other."""
        new = copy.copy(other)
        new._rows = self._rows
        new.center, new.scale = self.center, self.scale
        new.refactorize()
        return new

    def condition_on_observations(self, X: Tensor, Y: Tensor, **kwargs: Any) -> "StreamingGP":
        """Return the model after further observations ``Y`` (``n x 1``) at ``X`` (``n x (d + 1)``).

        A model without observations factorizes all rows at once, in O(n^3).

        Raises:
            InvalidShapeError: If there is not one reward for each row; batches are not supported.
            InvalidArgumentError: If a reward is not finite, or there are further arguments.
        """
        fits = X.dim() == 2 and tuple(Y.shape) == (len(X), 1)
        shapes = tuple(X.shape), tuple(Y.shape)
        check(fits, "X, Y", "shapes (n, d + 1) and (n, 1)", shapes, InvalidShapeError)
        check_options(kwargs)
        new = copy.copy(self)
        if not self.num_rows and len(X) > 1:
            new._begin_with(X, Y.squeeze(-1))
            return new
        for x, y in zip(X, Y.flatten().tolist(), strict=True):
            new.observe(x, y)
        return new

    def _begin_with(self, X: Tensor, rewards: Tensor) -> None:
        self._check_columns(X[0])
        finite = bool(rewards.isfinite().all() and X.isfinite().all())
        check(finite, "Y", "finite numbers at finite inputs", rewards, InvalidArgumentError)
        like = self.kernel.outputscale
        rewards = rewards.detach().to(like)
        targets = (rewards - self.center) / self.scale
        inputs = X.detach().to(like)
        near, none = near_rows(inputs, rewards), without_variance(rewards)
        self._rows = CachedRows(self._rows.factor, inputs, rewards, targets, near, none, none)
        self.refactorize()
        self._rows = self._rows.within(self.window, self.maximum_rows)

    def _apply(self, fn: Any, recurse: bool = True) -> "StreamingGP":
        """Move or convert all tensors: ``float``, ``double`` and ``to`` call this."""
        super()._apply(fn, recurse)
        family, *parameters = self.kernel
        self.kernel = Stationary(family, *map(fn, parameters))
        self._rows = self._rows.map(fn)
        return self

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: Any = None,
    ) -> GPyTorchPosterior:
        """Return the joint posterior at ``X``, ``batch_shape x q x (d + 1)``.

        Raises:
            InvalidShapeError: If ``X`` has the wrong number of columns.
        """
        check_inputs(X)
        if X.shape[-2] == 1:  # fast path for acquisition functions
            mean, variance = self.mean_and_variance(X)
            cov = variance.unsqueeze(-1)
        else:
            mean, cov = self.mean_and_covariance(X)
        noise = self.noise * self.scale**2
        return gaussian_posterior(mean, cov, observation_noise, noise, posterior_transform)

    def get_extra_state(self) -> dict[str, Any]:
        """Return tensors and plain values that suffice to continue bit for bit."""
        return {
            **self._rows.state_dict(),
            "center": self.center,
            "scale": self.scale,
            "family": self.kernel.family,
            "lengthscale": self.kernel.lengthscale,
            "outputscale": self.kernel.outputscale,
            "forgetting": self.forgetting,
            "noise": self.noise,
            "window": self.window,
            "maximum_rows": self.maximum_rows,
        }

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Load a state of ``get_extra_state``, including hyperparameters.

        Tensors are moved to the device of this model and keep their dtype.
        """
        device = self.kernel.outputscale.device
        self._rows = CachedRows.from_state_dict(state, device)
        self.center, self.scale = state["center"], state["scale"]
        lengthscale, outputscale = state["lengthscale"].to(device), state["outputscale"].to(device)
        self.kernel = Stationary(state["family"], lengthscale, outputscale)
        self.forgetting, self.noise = state["forgetting"], state["noise"]
        self.window, self.maximum_rows = state["window"], state["maximum_rows"]

    def _needs_jitter(self) -> bool:
        """Return whether a pivot may have been raised, which the noise alone can exclude."""
        prior = self.kernel.outputscale
        if self._prior is None or self._prior[0] is not prior:
            self._prior = prior, float(prior)
        return self.noise < least_pivot(prior.dtype) * self._prior[1]

    def _check_columns(self, x: Tensor) -> None:
        lengthscales = self.kernel.lengthscale.numel()
        dim = x.numel() - 1
        fits = x.dim() == 1 and dim >= 1 and lengthscales in (1, dim)
        fits = fits and (not self.num_rows or dim + 1 == self._rows.inputs.shape[-1])
        check(fits, "x", "one row [configuration, round]", tuple(x.shape), InvalidShapeError)


def stationary_of(kernel: Any) -> Stationary:
    """Return a scaled Matérn or RBF kernel of GPyTorch as a ``Stationary`` kernel.

    Raises:
        InvalidArgumentError: If it is another type of kernel.
    """
    base = kernel.base_kernel if isinstance(kernel, ScaleKernel) else kernel
    is_valid = isinstance(base, MaternKernel | RBFKernel)
    check(is_valid, "kernel", "a (scaled) Matérn or RBF kernel", type(base).__name__)
    family = _MATERN_FAMILIES[base.nu] if isinstance(base, MaternKernel) else "rbf"
    lengthscale = base.lengthscale.detach().reshape(-1)
    scale = kernel.outputscale.detach() if base is not kernel else lengthscale.new_ones(())
    return Stationary(family, lengthscale, scale.reshape(()))
