r"""Many small Gaussian processes at once, of different sizes: rows that are missing are padded.

Each problem has its own hyperparameters. A padded row has covariance 1 with itself, 0 with all others,
and target 0, so that it changes neither evidence nor moments: with ``m`` the rows that are there,

    K = [K_mm + noise I, 0; 0, I],    y = [y_m; 0].

*Slopes of moments.* With ``k(x)`` the covariances of a point with the rows, ``M = dk / dx`` as in
``numerics.evidence`` and ``u = c / l``, ``mean = k'K^{-1}y`` and ``variance = s - k'K^{-1}k`` have

    d (g mean + h variance) / dx_j = -u_j^2 sum_i W_i (x_j - x_ij),   W = M o [g K^{-1}y - 2 h K^{-1}k]

which costs a product with the factor and no graph. Points are what moments are differentiable in, once.

Convention: the mean is 0; ``theta = [log l_1 .. log l_d, log s, log noise]`` as in ``numerics.evidence``.
Where ``K`` is
singular the evidence is ``-inf`` and its gradient 0.

References:
    C. E. Rasmussen, C. K. I. Williams. Gaussian Processes for Machine Learning. 2006, algorithm 2.1.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from botorch_costly.numerics import evidence
from botorch_costly.numerics.cholesky import sure_root
from botorch_costly.numerics.evidence import Rows
from botorch_costly.numerics.radial import ARMS, PROFILES, Profile
from botorch_costly.numerics.stationary import Stationary, covariance

_LOG_TWO_PI = math.log(2 * math.pi)
_LEAST = 1e-12  # of the prior variance, which is left whatever was observed


class Padded(NamedTuple):
    """Observations of several problems; what is missing is 0."""

    x: Tensor  # shape: (b, n, d)
    y: Tensor  # shape: (b, n)
    seen: Tensor  # bool, which rows are there, shape: (b, n)

    def some(self, problems: slice | Tensor) -> "Padded":
        """Return some of the problems."""
        return Padded(self.x[problems], self.y[problems], self.seen[problems])


class Factored(NamedTuple):
    """What moments are computed from."""

    inverse_root: Tensor  # L^{-1} of K = L L', shape: (b, n, n)
    weights: Tensor  # K^{-1} y, shape: (b, n)


def pad(problems: Sequence[tuple[Tensor, Tensor]]) -> Padded:
    """Return problems ``(n_i x d, n_i)`` in one batch."""
    most = max(len(y) for _, y in problems)
    first = problems[0][0]
    x = first.new_zeros(len(problems), most, first.shape[-1])
    y, seen = x.new_zeros(x.shape[:-1]), torch.zeros(x.shape[:-1], dtype=torch.bool)
    seen = seen.to(x.device)
    for number, (inputs, targets) in enumerate(problems):
        x[number, : len(targets)], y[number, : len(targets)] = inputs, targets
        seen[number, : len(targets)] = True
    return Padded(x, y, seen)


def kernels(family: str, theta: Tensor) -> Stationary:
    """Return the covariance of each problem, from ``theta`` of shape ``(b, d + 2)``."""
    return Stationary(family, theta[:, None, :-2].exp(), theta[:, None, None, -2].exp())


def log_evidence(family: str, rows: Padded, theta: Tensor) -> tuple[Tensor, Tensor]:
    """Return log evidences and their gradients, ``(b,)`` and ``(b, d + 2)``, all in float64."""
    return without_padding(rows.seen, theta, *evidence.log_evidence(family, _listed(rows), theta))


def average_information(family: str, rows: Padded, theta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return what ``log_evidence`` does, and the average information, ``(b, d + 2, d + 2)``.

    That is a guess at minus the second derivatives, which is never negative. A padded row has target 0,
    and nothing to say there.
    """
    value, gradient, told = evidence.average_information(family, _listed(rows), theta)
    return *without_padding(rows.seen, theta, value, gradient), told


def _listed(rows: Padded) -> Rows:
    both = rows.seen.unsqueeze(-1) & rows.seen.unsqueeze(-2)
    return Rows(rows.x, rows.y, torch.zeros_like(rows.y)[..., None], both.to(rows.y))


def without_padding(
    seen: Tensor,  # bool, which rows are there, shape: (*batch, n)
    theta: Tensor,  # shape: (*batch, d + 2)
    value: Tensor,  # log evidence with the padded rows, shape: (*batch,)
    gradient: Tensor,  # shape: (*batch, d + 2)
) -> tuple[Tensor, Tensor]:
    """Take out that a padded row has the variance of the noise in ``numerics.evidence``."""
    missing = 0.5 * (~seen).sum(-1).to(theta)
    correction = torch.zeros_like(gradient)
    correction[..., -1] = missing
    failed = value == -torch.inf
    value = value + missing * (theta[..., -1] + _LOG_TWO_PI)
    return value, torch.where(failed.unsqueeze(-1), 0.0, gradient + correction)


def factor(family: str, rows: Padded, theta: Tensor) -> Factored:
    """Return the factors of all problems."""
    root = _root(family, rows, theta)
    eye = torch.eye(root.shape[-1], dtype=root.dtype, device=root.device)
    inverse = torch.linalg.solve_triangular(root, eye.expand_as(root), upper=False)
    weights = inverse.mT @ (inverse @ rows.y.unsqueeze(-1))
    return Factored(inverse, weights.squeeze(-1))


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
    return mean, _remaining(theta[:, -2:-1].exp(), explained)


def _remaining(prior: Tensor, explained: Tensor) -> Tensor:
    """Return what is left of a variance; rounding may leave a little less than nothing."""
    return (prior - explained).clamp_min(_LEAST * prior)


class MomentsAndVJP(NamedTuple):
    """Means and variances, or standard deviations, with the way back from their slopes to the points."""

    mean: Tensor  # shape: (b, m), or (m,) of one problem
    spread: Tensor  # variances or standard deviations, of the same shape
    vjp: Callable[
        [Tensor, Tensor], Tensor
    ]  # slopes by either -> by the points, summed over problems


def moments_and_vjp(
    family: str, rows: Padded, theta: Tensor, known: Factored
) -> Callable[[Tensor], MomentsAndVJP]:
    """Return what maps points ``m x d`` to posterior means and variances with slopes, without a graph.

    What does not depend on the points is worked out once.
    """
    ready = _ready(family, rows, theta)

    def ask(X: Tensor) -> MomentsAndVJP:
        asked = _asked(ready, known, X)

        def vjp(by_mean: Tensor, by_variance: Tensor) -> Tensor:
            return _pulled(asked, rows, known, X, by_mean, by_variance).sum(0)

        return MomentsAndVJP(asked.mean, asked.variance, vjp)

    return ask


class _Ready(NamedTuple):
    """What does not depend on the points."""

    profile: Profile
    unit: Tensor  # u, shape: (b, 1, d)
    scaled: Tensor  # u x, shape: (b, n, d)
    prior: Tensor  # variance, shape: (b, 1)
    amplitude: Tensor  # the same, but 0 for rows that are not there, shape: (b, 1, n)


class _Asked(NamedTuple):
    """What moments and their slopes have in common."""

    mean: Tensor  # shape: (b, m)
    variance: Tensor  # shape: (b, m)
    white: Tensor  # L^{-1} k, shape: (b, m, n)
    slope: Tensor  # M, shape: (b, m, n)
    unit: Tensor  # u, shape: (b, 1, d)
    left: Tensor  # bool, whether anything is left of the variance, shape: (b, m)


def _ready(family: str, rows: Padded, theta: Tensor) -> _Ready:
    profile = PROFILES[family]
    unit = profile.constant / theta[:, None, :-2].exp()
    prior = theta[:, -2:-1].exp()
    amplitude = torch.where(rows.seen, prior, 0.0).unsqueeze(-2)
    return _Ready(profile, unit, rows.x * unit, prior, amplitude)


def _asked(ready: _Ready, known: Factored, X: Tensor) -> _Asked:
    profile, unit, scaled, prior, amplitude = ready
    exact = "donot_use_mm_for_euclid_dist"
    phi, psi = profile.slope(torch.cdist(X * unit, scaled, compute_mode=exact))
    cross = phi * amplitude
    white = cross @ known.inverse_root.mT
    mean = (cross @ known.weights.unsqueeze(-1)).squeeze(-1)
    variance = _remaining(prior, white.square().sum(-1))
    return _Asked(mean, variance, white, psi.mul_(amplitude), unit, variance > _LEAST * prior)


def _pulled(
    asked: _Asked, rows: Padded, known: Factored, X: Tensor, by_mean: Tensor, by_variance: Tensor
) -> Tensor:  # shape: (b, m, d)
    """Return the slopes of ``by_mean mean + by_variance variance`` by the points."""
    scaled = asked.white * torch.where(asked.left, -2 * by_variance, 0.0).unsqueeze(-1)
    pull = scaled @ known.inverse_root
    pull.addcmul_(by_mean.unsqueeze(-1), known.weights.unsqueeze(-2)).mul_(asked.slope)  # W
    away = pull @ rows.x - pull.sum(-1, keepdim=True) * X
    return away.mul_(asked.unit.square())


class _Moments(torch.autograd.Function):
    """Posterior means and variances with their slopes in closed form."""

    @staticmethod
    def forward(
        ctx: Any, X: Tensor, family: str, rows: Padded, theta: Tensor, known: Factored
    ) -> tuple[Tensor, Tensor]:
        mean, variance, *others = _asked(_ready(family, rows, theta), known, X)
        ctx.save_for_backward(X, *others)
        ctx.rows, ctx.known = rows, known
        return mean, variance

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(
        ctx: Any, by_mean: Tensor, by_variance: Tensor
    ) -> tuple[Tensor, None, None, None, None]:
        X, *others = ctx.saved_tensors
        asked = _Asked(by_mean, by_variance, *others)  # the moments themselves are not needed again
        each = _pulled(asked, ctx.rows, ctx.known, X, by_mean, by_variance)
        return each if X.dim() == 3 else each.sum(0), None, None, None, None


def joint(
    family: str, rows: Padded, theta: Tensor, known: Factored, X: Tensor
) -> tuple[Tensor, Tensor]:
    """Return joint posteriors at ``X``, for all problems at once.

    Args:
        family: A key of ``radial.PROFILES``.
        rows: The observations.
        theta: Hyperparameters, ``(b, d + 2)``.
        known: The factors.
        X: Shape ``(*batch, q, d)``.

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
    told = _cross(family, rows, theta, others) @ known.inverse_root.mT
    return prior - _cross(family, rows, theta, X) @ (told @ known.inverse_root).mT


def _root(family: str, rows: Padded, theta: Tensor) -> Tensor:
    prior = covariance(kernels(family, theta), rows.x, rows.x)
    both = rows.seen.unsqueeze(-1) & rows.seen.unsqueeze(-2)
    noise = torch.where(rows.seen, theta[:, -1:].exp(), 1.0)
    return sure_root(torch.where(both, prior, 0.0) + torch.diag_embed(noise))


def _cross(family: str, rows: Padded, theta: Tensor, X: Tensor) -> Tensor:
    """Return the covariances of points with the rows of each problem, ``(b, m, n)``."""
    points = X if X.dim() == 3 else X.expand(len(rows.y), *X.shape)
    prior = covariance(kernels(family, theta), points, rows.x)
    return torch.where(rows.seen.unsqueeze(-2), prior, 0.0)
