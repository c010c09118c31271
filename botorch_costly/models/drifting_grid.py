r"""The exact belief about a drifting function on a finite domain, at constant cost per round.

The posterior covariance is kept as a downdate of the prior,

    cov = K - sum_i w_i v_i v_i^T,

one rank-one term per look. Looking at point j with ``c = cov[:, j]`` and ``s = c[j] + noise`` adds
``v = c / sqrt(s)`` with weight one and moves the mean by ``c (y - mean[j]) / s``. A round of waiting
multiplies the mean by ``a`` and every weight by ``a^2 = 1 - forgetting``, because

    a^2 (K - V) + (1 - a^2) K = K - a^2 V.

So waiting costs O(n), a look O(n) per live term, and the terms are bounded whatever the horizon: a
term whose weight falls below the tolerance makes room for a new one, and where forgetting is too slow
for that, ``2 n`` terms are compressed into ``n`` by a QR factorization without changing their sum.

Convention: many trials run side by side in a leading batch dimension, flattened to one inside.
"""

import math
from typing import Any

import torch
from botorch.models.model import Model
from botorch.posteriors import GPyTorchPosterior
from torch import Tensor

from botorch_costly.errors import (
    InvalidArgumentError,
    InvalidShapeError,
    check,
    check_positive,
    check_probability,
    check_rate,
)
from botorch_costly.models.posterior import gaussian_posterior
from botorch_costly.numerics.drift import log_density, retention_float


class DriftingGrid(Model):
    """The belief about a drifting function on ``n`` points, for a batch of trials.

    References:
        I. Bogunovic, J. Scarlett, V. Cevher. Time-varying Gaussian process bandit optimization.
        AISTATS 2016, with the costly feedback of J. Wang et al., 2021.

    Args:
        prior_cov: Covariance of the function on the points, shape ``(n, n)``.
        forgetting: Rate in [0, 1] per round.
        noise: Noise variance of an observation, positive and above rounding (100 machine epsilons of
            the prior variance).
        batch_shape: Shape of the trials run side by side.
        prior_mean: What the function relaxes to.
        tolerance: A term is dropped when its weight falls below this.

    Raises:
        InvalidArgumentError: If a number is outside its range.
        InvalidShapeError: If ``prior_cov`` is not square.

    Example:
        >>> belief = DriftingGrid(torch.eye(3), forgetting=0.1, noise=0.01)
        >>> _ = belief.observe(torch.tensor(1), torch.tensor(2.0))
        >>> belief.wait()
        >>> [round(m, 2) for m in belief.mean.tolist()]
        [0.0, 1.88, 0.0]
    """

    def __init__(
        self,
        prior_cov: Tensor,
        forgetting: float,
        noise: float,
        batch_shape: torch.Size = torch.Size(),
        prior_mean: float = 0.0,
        tolerance: float = 1e-12,
    ) -> None:
        super().__init__()
        square = prior_cov.dim() == 2 and prior_cov.shape[0] == prior_cov.shape[1] > 0
        received = tuple(prior_cov.shape)
        check(square, "prior_cov", "a square matrix", received, InvalidShapeError)
        self.prior_cov = prior_cov
        self.forgetting = check_rate("forgetting", forgetting)
        self.noise = check_positive("noise", noise)
        # Below that, rounding in the downdates outweighs the noise and feeds on itself.
        least = 100 * torch.finfo(prior_cov.dtype).eps * float(prior_cov.diagonal().max())
        enough = noise >= least
        check(enough, "noise", f"at least {least:.1e} in {prior_cov.dtype}", noise)
        self.prior_mean = prior_mean
        self._batch_shape = torch.Size(batch_shape)
        self.tolerance = check_probability("tolerance", tolerance)
        self._start()

    def _start(self) -> None:
        trials = self._batch_shape.numel()
        new = self.prior_cov.new_zeros
        self._mean = new(trials, self.num_points)
        self._variance = self._prior_variance.expand(trials, -1).clone()
        self._terms = new(trials, min(16, 2 * self.num_points), self.num_points)
        self._weights = new(trials, self._terms.shape[1])  # zero where a slot is free

    @property
    def num_points(self) -> int:
        """Size of the domain."""
        return self.prior_cov.shape[-1]

    @property
    def num_outputs(self) -> int:
        """One reward."""
        return 1

    @property
    def batch_shape(self) -> torch.Size:
        """Shape of the trials."""
        return self._batch_shape

    @property
    def num_terms(self) -> int:
        """Live rank-one terms of the trial that has most of them."""
        return int((self._weights > self.tolerance).sum(-1).max())

    @property
    def mean(self) -> Tensor:
        """Posterior mean on every point, shape ``(*batch, n)``."""
        return (self._mean + self.prior_mean).view(*self._batch_shape, self.num_points)

    @property
    def variance(self) -> Tensor:
        """Posterior variance on every point, shape ``(*batch, n)``."""
        # A copy, as the mean is: the belief goes on in place.
        return self._variance.clone().view(*self._batch_shape, self.num_points)

    @property
    def _prior_variance(self) -> Tensor:
        return self.prior_cov.diagonal()

    def wait(self, rounds: float = 1, which: Tensor | None = None) -> None:
        """Let rounds pass without a look, in O(n).

        Args:
            rounds: How many, in any part of a round.
            which: Trials for which they pass, shape ``(*batch,)``; all of them if omitted.

        Raises:
            InvalidArgumentError: If ``rounds`` is negative or not finite; the belief is unchanged.
        """
        passes = 0 <= rounds < math.inf
        check(passes, "rounds", "a finite number >= 0", rounds, InvalidArgumentError)
        keep = retention_float(self.forgetting, rounds)
        squared = keep * keep
        if which is None:
            self._mean.mul_(keep)
            self._variance.mul_(squared).add_(self._prior_variance, alpha=1 - squared)
            self._weights.mul_(squared)
            return
        mask = which.reshape(-1, 1).bool()
        self._mean.mul_(torch.where(mask, keep, 1.0).to(self._mean))
        kept = torch.where(mask, squared, 1.0).to(self._mean)
        self._variance.mul_(kept).add_((1 - kept) * self._prior_variance)
        self._weights.mul_(kept)

    def covariance(self, index: Tensor) -> Tensor:
        """Return the posterior covariance between one point a trial and all points.

        Args:
            index: A point for each trial, shape ``(*batch,)``.

        Returns:
            Shape ``(*batch, n)``.
        """
        column = self._column(self._check_index(index))
        return column.view(*self._batch_shape, self.num_points)

    def covariance_between(self, index: Tensor, others: Tensor) -> Tensor:
        """Return the posterior covariance between some points of each trial and some of all trials.

        Args:
            index: ``m`` points for each trial, shape ``(*batch, m)``.
            others: ``k`` points, shape ``(k,)``.

        Returns:
            Shape ``(*batch, m, k)``.
        """
        here, there = self._check_points(index), self._check_points(others)
        here = here.expand(*self._batch_shape, -1).reshape(self._batch_shape.numel(), -1)
        picks = here.unsqueeze(-2).expand(-1, self._terms.shape[1], -1)
        weighted = self._weights.unsqueeze(-1) * self._terms.gather(-1, picks)
        cov = self.prior_cov[:, there][here] - weighted.mT @ self._terms[..., there]
        return cov.view(*self._batch_shape, *cov.shape[1:])

    def observe(self, index: Tensor, y: Tensor, look: Tensor | None = None) -> Tensor:
        """Condition on ``y = f[index] + N(0, noise)`` in the trials that look.

        Args:
            index: The point looked at, shape ``(*batch,)``.
            y: What was seen, shape ``(*batch,)``; ignored where ``look`` is false.
            look: Which trials look, shape ``(*batch,)``; all of them if omitted.

        Returns:
            ``log p(y | past)``, zero where a trial does not look, shape ``(*batch,)``.

        Raises:
            InvalidArgumentError: If a value that was looked at is not finite, or an index is not one
                of the points; the belief is unchanged.
            InvalidShapeError: If ``y`` or ``look`` is not one value or one a trial.
        """
        at = self._check_index(index)
        y = self._per_trial("y", torch.as_tensor(y).to(self._mean))
        look = torch.ones_like(at, dtype=torch.bool) if look is None else look
        looking = self._per_trial("look", look).bool()
        finite = bool(y[looking].isfinite().all())
        check(finite, "y", "finite values where a trial looks", y, InvalidArgumentError)
        if not bool(looking.any()):
            return torch.zeros_like(y).view(self._batch_shape)
        if self._is_full(looking):
            self._make_room()
        column = self._column(at)
        variance = column.gather(-1, at[:, None]).squeeze(-1).clamp_min(0) + self.noise
        expected = self._mean.gather(-1, at[:, None]).squeeze(-1) + self.prior_mean
        residual = torch.where(looking, y - expected, 0.0)
        shape = (looking / variance.sqrt())[:, None] * column
        self._mean.add_(shape * (residual / variance.sqrt())[:, None])
        self._variance.sub_(shape.square()).clamp_min_(0)
        self._push(shape, looking)
        log_prob = torch.where(looking, log_density(residual, variance), 0.0)
        return log_prob.view(self._batch_shape)

    def restart(self, which: Tensor | None = None) -> None:
        """Forget everything, in all trials or in those marked in ``which`` (``(*batch,)``)."""
        if which is None:
            self._start()
            return
        mask = which.reshape(-1).bool()
        self._mean[mask] = 0
        self._variance[mask] = self._prior_variance
        self._weights[mask] = 0

    def posterior(
        self,
        X: Tensor,
        output_indices: list[int] | None = None,
        observation_noise: bool | Tensor = False,
        posterior_transform: Any = None,
    ) -> GPyTorchPosterior:
        """Return the joint posterior at point numbers ``X``, ``batch_shape x q x 1``.

        This is for inspection and interoperability. The hot path reads ``mean``, ``variance`` and
        ``covariance``.
        """
        batch, (held, n) = self._batch_shape, self._terms.shape[1:]
        shape = torch.broadcast_shapes(X.shape[:-2], batch)
        index = self._check_points(X.squeeze(-1).long()).expand(*shape, -1)
        picks = index.unsqueeze(-2).expand(*shape, held, -1)
        terms = self._terms.view(*batch, held, n).expand(*shape, held, n).gather(-1, picks)
        weighted = self._weights.view(*batch, held, 1) * terms
        cov = self.prior_cov[index.unsqueeze(-1), index.unsqueeze(-2)] - weighted.mT @ terms
        mean = self.mean.expand(*shape, n).gather(-1, index)
        return gaussian_posterior(mean, cov, observation_noise, self.noise, posterior_transform)

    def get_extra_state(self) -> dict[str, Any]:
        """Return everything needed to continue bit by bit, as tensors."""
        return {
            "mean": self._mean,
            "variance": self._variance,
            "terms": self._terms,
            "weights": self._weights,
        }

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Take over a state from ``get_extra_state``."""
        self._mean, self._variance = state["mean"].clone(), state["variance"].clone()
        self._terms, self._weights = state["terms"].clone(), state["weights"].clone()

    def _column(self, at: Tensor) -> Tensor:
        """Return ``cov[:, at]`` for each trial: the prior's column less its downdate."""
        picked = self._terms[torch.arange(len(at), device=at.device), :, at]
        coefficient = (self._weights * picked).unsqueeze(1)
        return self.prior_cov[at] - torch.bmm(coefficient, self._terms).squeeze(1)

    def _push(self, shape: Tensor, looking: Tensor) -> None:
        """Store one term for each trial that looks, in place of its lightest."""
        rows = looking.nonzero().squeeze(-1)
        slots = self._weights[rows].argmin(-1)
        self._terms[rows, slots] = shape[rows]
        self._weights[rows, slots] = 1

    def _is_full(self, looking: Tensor) -> bool:
        """Return whether a trial that looks has no free slot and no term light enough to drop.

        Weights decide, not counts: any number of looks may fall into one round.
        """
        return bool((self._weights[looking].amin(-1) > self.tolerance).any())

    def _make_room(self) -> None:
        held, limit = self._weights.shape[1], 2 * self.num_points
        if held < limit:
            extra = min(held // 4 + 16, limit - held)
            self._terms = torch.nn.functional.pad(self._terms, (0, 0, 0, extra))
            self._weights = torch.nn.functional.pad(self._weights, (0, extra))
            return
        # R^T R = sum_i w_i v_i v_i^T: the same downdate in n terms of weight one.
        weighted = self._weights.sqrt().unsqueeze(-1) * self._terms
        triangle = torch.linalg.qr(weighted, mode="r").R
        kept = triangle.shape[1]
        self._terms[:, :kept], self._weights[:, :kept] = triangle, 1
        self._terms[:, kept:], self._weights[:, kept:] = 0, 0

    def _per_trial(self, name: str, values: Tensor) -> Tensor:
        trials = self._batch_shape.numel()
        fits = values.numel() in (1, trials)
        expected = f"one value or shape {tuple(self._batch_shape)}"
        check(fits, name, expected, tuple(values.shape), InvalidShapeError)
        return values.reshape(-1).expand(trials)

    def _check_index(self, index: Tensor) -> Tensor:
        at = torch.as_tensor(index, device=self.prior_cov.device)
        return self._check_points(at).expand(self._batch_shape).reshape(-1)

    def _check_points(self, index: Tensor) -> Tensor:
        inside = bool(((index >= 0) & (index < self.num_points)).all())
        check(inside, "index", f"points in 0..{self.num_points - 1}", index, InvalidArgumentError)
        return index
