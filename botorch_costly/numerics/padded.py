r"""A batch of small Gaussian processes of different sizes, padded to the largest.

Each problem has its own hyperparameters. A padded row has variance 1, covariance 0 with all others and
target 0, so that it changes neither evidence nor moments: with ``m`` the observed rows,

    K = [K_mm + noise I, 0; 0, I],    y = [y_m; 0].

*Vector-Jacobian product.* With ``k(x)`` the covariances of a point with the rows, ``M = s psi`` as in
``numerics.evidence`` and ``u = c / l``, ``mean = k'K^{-1}y`` and ``variance = s - k'K^{-1}k`` have

    d (g mean + h variance) / dx_j = -u_j^2 sum_i W_i (x_j - x_ij),   W = M o [g K^{-1}y - 2 h K^{-1}k]

which costs a product with the factor. Moments are differentiable in the points alone, and only once.

Convention: the mean is 0; ``theta = [log l_1 .. log l_d, log s, log noise]`` as in ``numerics.evidence``.
Where ``K`` is singular, the evidence is ``-inf`` and its gradient 0.

References:
    C. E. Rasmussen, C. K. I. Williams. Gaussian Processes for Machine Learning. 2006, algorithm 2.1.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from botorch_costly.numerics import evidence
from botorch_costly.numerics.cholesky import inverse_root, sure_root
from botorch_costly.numerics.evidence import Rows
from botorch_costly.numerics.radial import ARMS, PROFILES, Profile
from botorch_costly.numerics.stationary import Stationary, covariance

_LEAST = 1e-12  # least posterior variance, relative to the prior variance


class Padded(NamedTuple):
    """Observations of several problems, padded by zeros."""

    x: Tensor  # shape: (b, n, d)
    y: Tensor  # shape: (b, n)
    seen: Tensor  # bool, false for padded rows, shape: (b, n)

    def some(self, problems: slice | Tensor) -> "Padded":
        """Return a subset of the problems."""
        return Padded(self.x[problems], self.y[problems], self.seen[problems])


class Factored(NamedTuple):
    """Factors of the covariances, from which moments are computed."""

    inverse_root: Tensor  # L^{-1} of K = L L', shape: (b, n, n)
    weights: Tensor  # K^{-1} y, shape: (b, n)


def pad(problems: Sequence[tuple[Tensor, Tensor]]) -> Padded:
    """Return problems ``(n_i x d, n_i)`` in one batch."""
    longest = max(len(y) for _, y in problems)
    first = problems[0][0]
    x = first.new_zeros(len(problems), longest, first.shape[-1])
    y, seen = x.new_zeros(x.shape[:-1]), torch.zeros(x.shape[:-1], dtype=torch.bool)
    seen = seen.to(x.device)
    for i, (inputs, targets) in enumerate(problems):
        x[i, : len(targets)], y[i, : len(targets)] = inputs, targets
        seen[i, : len(targets)] = True
    return Padded(x, y, seen)


def kernels(family: str, theta: Tensor) -> Stationary:
    """Return the batch of covariance functions of all problems, from ``theta`` (``b x (d + 2)``)."""
    return Stationary(family, theta[:, None, :-2].exp(), theta[:, None, None, -2].exp())


def log_evidence(family: str, rows: Padded, theta: Tensor) -> tuple[Tensor, Tensor]:
    """Return log evidences and their gradients, ``(b,)`` and ``(b, d + 2)``, all in float64."""
    return without_padding(rows.seen, theta, *evidence.log_evidence(family, _listed(rows), theta))


def average_information(family: str, rows: Padded, theta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return ``log_evidence`` and the average information, ``(b, d + 2, d + 2)``.

    The information is a positive semidefinite approximation of minus the second derivatives. Padded rows
    do not contribute, because their targets are 0.
    """
    value, gradient, information = evidence.average_information(family, _listed(rows), theta)
    return *without_padding(rows.seen, theta, value, gradient), information


def _listed(rows: Padded) -> Rows:
    """Return the rows for ``numerics.evidence``; the retention 0 makes padded rows independent."""
    both = rows.seen.unsqueeze(-1) & rows.seen.unsqueeze(-2)
    return Rows(rows.x, rows.y, torch.zeros_like(rows.y)[..., None], both.to(rows.y))


def without_padding(
    seen: Tensor,  # bool, false for padded rows, shape: (*batch, n)
    theta: Tensor,  # shape: (*batch, d + 2)
    value: Tensor,  # log evidence with the padded rows, shape: (*batch,)
    gradient: Tensor,  # shape: (*batch, d + 2)
) -> tuple[Tensor, Tensor]:
    """Subtract the terms of padded rows, whose variance in ``numerics.evidence`` is the noise."""
    half_count = 0.5 * (~seen).sum(-1).to(theta)
    correction = torch.zeros_like(gradient)
    correction[..., -1] = half_count
    failed = value == -torch.inf
    value = value + half_count * (theta[..., -1] + evidence.LOG_TWO_PI)
    return value, torch.where(failed.unsqueeze(-1), 0.0, gradient + correction)


def factor(family: str, rows: Padded, theta: Tensor) -> Factored:
    """Return the factors of all problems."""
    prior = covariance(kernels(family, theta), rows.x, rows.x)
    both = rows.seen.unsqueeze(-1) & rows.seen.unsqueeze(-2)
    noise = torch.where(rows.seen, theta[:, -1:].exp(), 1.0)
    inverse = inverse_root(sure_root(torch.where(both, prior, 0.0) + torch.diag_embed(noise)))
    return Factored(inverse, weights_of(inverse, rows.y))


def weights_of(inverse: Tensor, y: Tensor) -> Tensor:
    """Return ``K^{-1} y`` from the inverse root and the targets, shape ``(b, n)``."""
    return (inverse.mT @ (inverse @ y.unsqueeze(-1))).squeeze(-1)


def bordered(family: str, inverse: Tensor, x: Tensor, theta: Tensor) -> Tensor:
    """Return the inverse root of one problem after further rows, one after the other in O(n^2).

    With ``l = L^{-1} k`` and ``d^2 = s + noise - |l|^2``, the new row of ``L^{-1}`` is
    ``[-l'L^{-1} / d, 1 / d]``; see ``numerics.cholesky``.

    Args:
        family: A key of ``radial.PROFILES``.
        inverse: Inverse root of the first ``m`` rows, ``m x m``.
        x: All rows, ``n x d``.
        theta: Hyperparameters, shape ``(d + 2,)``.
    """
    kernel, noise = Stationary(family, theta[:-2].exp(), theta[-2].exp()), theta[-1].exp()
    grown = torch.block_diag(inverse, inverse.new_zeros([len(x) - len(inverse)] * 2))
    for row in range(len(inverse), len(x)):
        # A copy: in a larger matrix the last bits could differ.
        known = grown[:row, :row].contiguous()
        cov = covariance(kernel, x[row : row + 1], x[: row + 1])[0]
        white = known @ cov[:row]
        pivot = (cov[row] - white.square().sum()).clamp_min(0.0).add(noise).sqrt()
        grown[row, :row], grown[row, row] = -(white @ known) / pivot, 1 / pivot
    return grown


def means(family: str, rows: Padded, theta: Tensor, known: Factored, X: Tensor) -> Tensor:
    """Return the posterior means at ``X`` (``m x d``, or ``b x m x d``), shape ``(b, m)``."""
    return (_cross(family, rows, theta, X) @ known.weights.unsqueeze(-1)).squeeze(-1)


def moments(
    family: str, rows: Padded, theta: Tensor, known: Factored, X: Tensor
) -> tuple[Tensor, Tensor]:
    """Return posterior means and variances at ``X``, each of shape ``(b, m)``."""
    if X.requires_grad and torch.is_grad_enabled() and family != ARMS:
        mean, variance = _Moments.apply(X, family, rows, theta, known)
        return mean, variance
    cross = _cross(family, rows, theta, X)
    mean = (cross @ known.weights.unsqueeze(-1)).squeeze(-1)
    explained = (cross @ known.inverse_root.mT).square().sum(-1)
    return mean, _posterior_variance(theta[:, -2:-1].exp(), explained)


def _posterior_variance(prior: Tensor, explained: Tensor) -> Tensor:
    return (prior - explained).clamp_min(_LEAST * prior)  # rounding may leave less than 0


class MomentsAndVJP(NamedTuple):
    """Posterior moments at points, and their vector-Jacobian product."""

    mean: Tensor  # shape: (b, m), or (m,) of one problem
    spread: Tensor  # variances or standard deviations, same shape
    # From gradients by mean and spread to the gradient by the points (m, d), summed over the problems.
    vjp: Callable[[Tensor, Tensor], Tensor]


def moments_and_vjp(
    family: str, rows: Padded, theta: Tensor, factors: Factored
) -> Callable[[Tensor], MomentsAndVJP]:
    """Return a function of points ``m x d`` equal to ``moments``, with an analytic backward pass.

    Terms that do not depend on the points are computed once.
    """
    constants = _constants(family, rows, theta)

    def moments_at(X: Tensor) -> MomentsAndVJP:
        state = _forward(constants, factors, X)

        def vjp(by_mean: Tensor, by_variance: Tensor) -> Tensor:
            return _backward(state, rows, factors, X, by_mean, by_variance).sum(0)

        return MomentsAndVJP(state.mean, state.variance, vjp)

    return moments_at


class _Constants(NamedTuple):
    """Terms that do not depend on the points."""

    profile: Profile
    unit: Tensor  # u, shape: (b, 1, d)
    scaled: Tensor  # u x, shape: (b, n, d)
    prior: Tensor  # variance, shape: (b, 1)
    amplitude: Tensor  # prior variance, 0 for padded rows, shape: (b, 1, n)


class _Forward(NamedTuple):
    """Moments, and the tensors that their backward pass needs."""

    mean: Tensor  # shape: (b, m)
    variance: Tensor  # shape: (b, m)
    white: Tensor  # L^{-1} k, shape: (b, m, n)
    slope: Tensor  # M, shape: (b, m, n)
    unit: Tensor  # u, shape: (b, 1, d)
    free: Tensor  # bool, whether the variance is not clamped, shape: (b, m)


def _constants(family: str, rows: Padded, theta: Tensor) -> _Constants:
    profile = PROFILES[family]
    unit = profile.constant / theta[:, None, :-2].exp()
    prior = theta[:, -2:-1].exp()
    amplitude = torch.where(rows.seen, prior, 0.0).unsqueeze(-2)
    return _Constants(profile, unit, rows.x * unit, prior, amplitude)


def _forward(constants: _Constants, factors: Factored, X: Tensor) -> _Forward:
    profile, unit, scaled, prior, amplitude = constants
    exact = "donot_use_mm_for_euclid_dist"
    phi, psi = profile.slope(torch.cdist(X * unit, scaled, compute_mode=exact))
    cross = phi * amplitude
    white = cross @ factors.inverse_root.mT
    mean = (cross @ factors.weights.unsqueeze(-1)).squeeze(-1)
    variance = _posterior_variance(prior, white.square().sum(-1))
    return _Forward(mean, variance, white, psi.mul_(amplitude), unit, variance > _LEAST * prior)


def _backward(
    state: _Forward,
    rows: Padded,
    factors: Factored,
    X: Tensor,
    by_mean: Tensor,
    by_variance: Tensor,
) -> Tensor:  # shape: (b, m, d)
    """Return the gradient of ``by_mean mean + by_variance variance`` by the points."""
    scaled = state.white * torch.where(state.free, -2 * by_variance, 0.0).unsqueeze(-1)
    W = scaled @ factors.inverse_root
    W.addcmul_(by_mean.unsqueeze(-1), factors.weights.unsqueeze(-2)).mul_(state.slope)
    gradient = W @ rows.x - W.sum(-1, keepdim=True) * X
    return gradient.mul_(state.unit.square())


class _Moments(torch.autograd.Function):
    """Posterior means and variances with an analytic backward pass."""

    @staticmethod
    def forward(
        ctx: Any, X: Tensor, family: str, rows: Padded, theta: Tensor, factors: Factored
    ) -> tuple[Tensor, Tensor]:
        mean, variance, *others = _forward(_constants(family, rows, theta), factors, X)
        ctx.save_for_backward(X, *others)
        ctx.rows, ctx.factors = rows, factors
        return mean, variance

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(
        ctx: Any, by_mean: Tensor, by_variance: Tensor
    ) -> tuple[Tensor, None, None, None, None]:
        X, *others = ctx.saved_tensors
        state = _Forward(by_mean, by_variance, *others)  # fills the moments, which are not needed
        gradient = _backward(state, ctx.rows, ctx.factors, X, by_mean, by_variance)
        return gradient if X.dim() == 3 else gradient.sum(0), None, None, None, None


def joint(
    family: str, rows: Padded, theta: Tensor, known: Factored, X: Tensor
) -> tuple[Tensor, Tensor]:
    """Return joint posteriors at ``X`` for all problems.

    Args:
        family: A key of ``radial.PROFILES``.
        rows: Observations.
        theta: Hyperparameters, ``(b, d + 2)``.
        known: Factors of the covariances.
        X: Points, ``(*batch, q, d)``.

    Returns:
        Means ``(b, *batch, q)`` and covariances ``(b, *batch, q, q)``.
    """
    flat = X.reshape(-1, X.shape[-1])
    shape = len(theta), *X.shape[:-1]
    cross = _cross(family, rows, theta, flat)
    mean = (cross @ known.weights.unsqueeze(-1)).reshape(shape)
    white = (cross @ known.inverse_root.mT).reshape(*shape, cross.shape[-1])
    ones = [1] * (X.dim() - 2)
    lengthscale = theta[:, :-2].exp().reshape(len(theta), *ones, 1, -1)
    variance = theta[:, -2].exp().reshape(len(theta), *ones, 1, 1)
    prior = covariance(Stationary(family, lengthscale, variance), X, X)
    return mean, prior - white @ white.mT


def covariances(
    family: str, rows: Padded, theta: Tensor, known: Factored, X: Tensor, others: Tensor
) -> Tensor:
    """Return posterior covariances of ``m x d`` points with ``n x d`` others, ``(b, m, n)``."""
    prior = covariance(kernels(family, theta), X, others)
    white = _cross(family, rows, theta, others) @ known.inverse_root.mT
    return prior - _cross(family, rows, theta, X) @ (white @ known.inverse_root).mT


def _cross(family: str, rows: Padded, theta: Tensor, X: Tensor) -> Tensor:
    """Return the covariances of points with the rows of each problem, ``(b, m, n)``."""
    points = X if X.dim() == 3 else X.expand(len(rows.y), *X.shape)
    prior = covariance(kernels(family, theta), points, rows.x)
    return torch.where(rows.seen.unsqueeze(-2), prior, 0.0)
