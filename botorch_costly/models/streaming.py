"""The time-varying GP with a cached factor: one row per query, nothing per waiting round."""

import copy
import logging
import math
from typing import Any

import torch
from botorch.posteriors import GPyTorchPosterior
from torch import Tensor

from botorch_costly.device import is_near, moved
from botorch_costly.errors import (
    InvalidArgumentError,
    InvalidShapeError,
    check,
    check_count,
    check_positive,
    check_probability,
    check_rate,
)
from botorch_costly.models.cached_posterior import CachedPosterior
from botorch_costly.models.cached_rows import CachedRows, near_rows
from botorch_costly.models.posterior import check_inputs, gaussian_posterior
from botorch_costly.models.promises import OneOutcome, check_options
from botorch_costly.models.streaming_form import streaming_form
from botorch_costly.models.time_varying import TimeVaryingGP
from botorch_costly.numerics.cholesky import append, empty_factor, factorize, least_pivot
from botorch_costly.numerics.drift import memory
from botorch_costly.numerics.radial import check_family
from botorch_costly.numerics.stationary import Stationary

_logger = logging.getLogger(__name__)


class StreamingGP(CachedPosterior, OneOutcome):
    r"""The belief of ``TimeVaryingGP`` with given hyperparameters, updated in O(n^2) a query.

    An observation borders the Cholesky factor, and rows too old to matter are removed from it; the
    factor does not depend on the current round, so waiting costs nothing at all. Rewards enter by
    ``reward = center + scale * f``, or by any other targets; targets may be changed at any time
    in O(n^2), because the factor does not depend on them.

    References:
        J. Wang, M. Ren, I. Bogunovic, Y. Xiong, R. Urtasun. Cost-efficient online hyperparameter
        optimization. 2021, section 3.1.

    Args:
        kernel: Covariance over configurations, of the scaled rewards.
        forgetting: Rate in [0, 1] per round.
        noise: Noise variance of the scaled rewards, positive.
        tolerance: A row is dropped when its weight ``(1 - forgetting)^age`` falls below this. All
            rows dropped together (one a round) raise a variance by at most a share ``outputscale
            tolerance / (noise forgetting)``, and change a mean by at most the root of that share, in
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
        self._rows = CachedRows.none(like)
        self.center, self.scale = 0.0, 1.0
        self._frozen = None
        self._prior: tuple[Tensor, float] | None = None  # prior variance, and as a number

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
        kernel, forgetting, noise, center, scale = streaming_form(model)
        belief = cls(kernel, forgetting, noise, **kwargs)
        belief.rescale(center, scale)
        return belief

    @property
    def batch_shape(self) -> torch.Size:
        """One belief."""
        return torch.Size()

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
        told = torch.tensor([reward], dtype=torch.float64)
        near = torch.cat([x.detach().cpu().flatten(), told]).to(like.dtype)
        finite = bool(near.isfinite().all())
        check(finite, "reward", "a finite number at a finite input", reward, InvalidArgumentError)
        self._check_columns(x)
        x, y = moved(x.detach(), like), like.new_full((1,), reward)
        rows = self._rows
        inputs = rows.inputs if rows.number else x.new_zeros(0, x.shape[-1])
        cross = self._covariance(x.unsqueeze(0), inputs).squeeze(0)
        target = (y - self.center) / self.scale
        noise = like.new_full((), self.noise)
        factor, jitter = append(rows.factor, cross, like, noise, target)
        if self._needs_jitter() and jitter.amount > 0:
            _logger.warning("The noise is too small for the factor; jitter %g.", jitter.amount)
        rows = CachedRows(
            factor,
            torch.cat([inputs, x.unsqueeze(0)]),
            torch.cat([rows.rewards, y]),
            torch.cat([rows.targets, target]),
            torch.cat([rows.near if rows.number else near.new_zeros(0, len(near)), near[None]]),
        )
        self._rows = rows.within(self.window, self.maximum_rows)

    def rescale(self, center: float, scale: float, targets: Tensor | None = None) -> None:
        """Let ``reward = center + scale * f`` from now on, for all rewards, in O(n^2).

        Args:
            center: The reward the prior expects.
            scale: What a unit of ``f`` is in rewards, positive.
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
            targets = (self._rows.rewards - center) / scale
        shape, expected = tuple(targets.shape), f"shape ({self.num_rows},)"
        check(shape == (self.num_rows,), "targets", expected, shape, InvalidShapeError)
        check(bool(targets.isfinite().all()), "targets", "finite numbers", targets)
        self.center, self.scale = center, scale
        self._rows = self._rows.conditioned_on(targets)

    def refactorize(self) -> None:
        """Recompute the factor from the stored rows, in O(n^3)."""
        rows, prior = self._rows, self.kernel.outputscale
        factor = empty_factor(1, dtype=prior.dtype, device=prior.device)
        if rows.number:
            noisy = self._covariance(rows.inputs, rows.inputs)
            noisy.diagonal().add_(self.noise)
            factor = factorize(noisy, rows.targets.unsqueeze(-1))
        self._rows = rows._replace(factor=factor)

    def in_prior_units(self) -> "StreamingGP":
        """Return this belief about ``f = (reward - center) / scale``, sharing its tensors.

        Decisions are made in these units: GPyTorch and BoTorch raise small variances to fixed floors,
        which rewards counted in millionths would lie below.
        """
        if self.num_rows:
            self._freeze()  # for this view and the next ones
        view = copy.copy(self)
        view._rows = self._rows._replace(rewards=self._rows.targets)
        view.center, view.scale = 0.0, 1.0
        return view

    def with_hyperparameters_of(self, other: "StreamingGP") -> "StreamingGP":
        """Return a belief with this one's data and the other's kernel, forgetting and noise."""
        new = copy.copy(other)
        new._rows = self._rows
        new.center, new.scale = self.center, self.scale
        new.refactorize()
        return new

    def condition_on_observations(self, X: Tensor, Y: Tensor, **kwargs: Any) -> "StreamingGP":
        """Return the belief that has also seen ``Y`` (``n x 1``) at ``X`` (``n x (d + 1)``).

        A belief that has seen nothing takes all rows at once, in O(n^3).

        Raises:
            InvalidShapeError: If there is not one reward for each row; batches are not supported.
            InvalidArgumentError: If a reward is not finite, or there are other arguments.
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
        good = bool(rewards.isfinite().all() and X.isfinite().all())
        check(good, "Y", "finite numbers at finite inputs", rewards, InvalidArgumentError)
        like = self.kernel.outputscale
        rewards = rewards.detach().to(like)
        targets = (rewards - self.center) / self.scale
        inputs = X.detach().to(like)
        near = near_rows(inputs, rewards)
        self._rows = CachedRows(self._rows.factor, inputs, rewards, targets, near)
        self.refactorize()
        self._rows = self._rows.within(self.window, self.maximum_rows)

    def _apply(self, fn: Any, recurse: bool = True) -> "StreamingGP":
        """Let ``.to``, ``.double`` and the like reach the factor, which is no parameter."""
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
            InvalidShapeError: If ``X`` has another number of columns.
        """
        check_inputs(X)
        if X.shape[-2] == 1:  # what acquisition functions ask for, dozens of times a decision
            mean, variance = self.mean_and_variance(X)
            cov = variance.unsqueeze(-1)
        else:
            mean, cov = self.mean_and_covariance(X)
        noise = self.noise * self.scale**2
        return gaussian_posterior(mean, cov, observation_noise, noise, posterior_transform)

    def get_extra_state(self) -> dict[str, Any]:
        """Return everything needed to continue bit by bit, as tensors and plain values."""
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
        """Take over a state from ``get_extra_state``, hyperparameters included.

        Its tensors come to the device of this belief in their own dtype.
        """
        device = self.kernel.outputscale.device
        self._rows = CachedRows.from_state_dict(state, device)
        self.center, self.scale = state["center"], state["scale"]
        lengthscale, outputscale = state["lengthscale"].to(device), state["outputscale"].to(device)
        self.kernel = Stationary(state["family"], lengthscale, outputscale)
        self.forgetting, self.noise = state["forgetting"], state["noise"]
        self.window, self.maximum_rows = state["window"], state["maximum_rows"]

    def _needs_jitter(self) -> bool:
        """Return whether a pivot may be raised, which the noise alone can rule out for a device."""
        prior = self.kernel.outputscale
        if is_near(prior):
            return True
        if self._prior is None or self._prior[0] is not prior:
            self._prior = prior, float(prior)
        return self.noise < least_pivot(prior.dtype) * self._prior[1]

    def _check_columns(self, x: Tensor) -> None:
        lengthscales = self.kernel.lengthscale.numel()
        dim = x.numel() - 1
        fits = x.dim() == 1 and dim >= 1 and lengthscales in (1, dim)
        fits = fits and (not self.num_rows or dim + 1 == self._rows.inputs.shape[-1])
        check(fits, "x", "one row [configuration, round]", tuple(x.shape), InvalidShapeError)
