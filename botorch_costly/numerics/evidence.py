r"""The log evidence of GP hyperparameters, its gradient and its curvature.

The rewards ``y`` at configurations ``x`` in rounds ``t`` are modelled as

    y ~ N(0, K),   K_ik = s phi(|u_i - u_k|) a_ik + (noise + e_i) [i = k],   u_ij = c x_ij / l_j,
    a_ik = (1 - eps)^(lag_ik / 2) = exp(-lam lag_ik / 2),   lag_ik = |t_i - t_k|.

Notation: ``alpha = K^{-1} y``, ``P = K^{-1}``, ``G = alpha alpha' - P``; ``theta``: the unknowns in log
units, ``[log l_1 .. log l_d, log s, log noise]`` and, if the rate is learnt, ``log lam`` of
``lam = -log(1 - eps)``. (The logit of the rate would be flat near 1.) The further noise ``e_i`` of single
rewards is known; it is 0 unless given, and ``E`` is its diagonal matrix.

*Evidence.* With ``K = L L'``: ``log p(y) = -1/2 y'alpha - sum_i log L_ii - n/2 log 2 pi``.

*Gradient.* ``d log p / d theta = 1/2 tr(G dK/dtheta)`` needs no product of two n x n matrices. Because
``K = K_f + noise I + E``, ``tr(G K) = y'alpha - n`` and ``tr G = |alpha|^2 - tr P``,

    log noise   1/2 noise tr G
    log s       1/2 (y'alpha - n - noise tr G - tr(G E))
    log lam     -lam/4 sum_ik G_ik K_ik lag_ik                        (lag is 0 on the diagonal)
    log l_j     1/2 sum_ik W_ik (u_ij - u_kj)^2,   W = G o M,   M = s a o psi
                = (x_j^2 . W 1 - x_j'W x_j) c^2 / l_j^2               (W is symmetric)

with ``phi``, ``psi`` and ``c`` from ``numerics.radial``. The last line costs a product of ``W`` with the
``n x d`` inputs. It subtracts numbers of the size of ``x^2``, so the columns of ``x`` are centred first.
Setting ``psi`` of Matérn-1/2 to 0 where rows coincide is exact, because ``x_ij = x_kj`` there.

*Curvature.* With ``K_a = dK / dtheta_a``, minus the second derivatives of the evidence are

    alpha'K_a P K_b alpha - 1/2 tr(P K_a P K_b) - 1/2 tr(G K_ab),

with expectation ``1/2 tr(P K_a P K_b)``, as that of ``G`` is 0. Both need products of n x n matrices.
In their average, without the last term, the traces cancel: the *average information*

    A_ab = 1/2 (K_a alpha)' P (K_b alpha)

costs O(d n^2), has the same expectation, and is positive semidefinite.

Convention: the leading dimensions of ``theta`` broadcast with those of the rows. Where ``K`` is singular
(a squared pivot of at most ``n`` rounding errors of the largest variance, without ``E``) or a number is
not finite, the evidence is ``-inf`` and its gradient 0; other problems of the batch are not affected. All
tensors must be float64.

References:
    - C. E. Rasmussen, C. K. I. Williams. Gaussian Processes for Machine Learning. 2006, section 5.4.1.
    - A. R. Gilmour, R. Thompson, B. R. Cullis. Average information REML: an efficient algorithm for
      variance parameter estimation in linear mixed models. Biometrics 51, 1995.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError, check
from botorch_costly.numerics.drift import retention
from botorch_costly.numerics.radial import PROFILES, SCALED

LOG_TWO_PI = math.log(2 * math.pi)


class Rows(NamedTuple):
    """Data and derived tensors that do not depend on the unknowns."""

    x: Tensor  # configurations minus their mean, shape: (*batch, n, d)
    y: Tensor  # shape: (*batch, n)
    lag: Tensor  # shape: (*batch, n, n)
    retentions: Tensor | None  # a_ik, or None if the rate is unknown, shape: (*batch, n, n)
    extra: Tensor | None = None  # e_i, or None if it is 0, shape: (*batch, n)

    @property
    def unknowns(self) -> int:
        """Number of entries of ``theta``."""
        return self.x.shape[-1] + (3 if self.retentions is None else 2)


class _Solved(NamedTuple):
    """Intermediate results for the evidence and its derivatives by ``p`` unknowns."""

    log_prob: Tensor  # shape: (*batch,)
    failed: Tensor  # bool, shape: (*batch,)
    noisy: Tensor  # K, shape: (*batch, n, n)
    slope: Tensor  # M, shape: (*batch, n, n)
    inverse: Tensor  # P, shape: (*batch, n, n)
    alpha: Tensor  # shape: (*batch, n)
    values: Tensor  # exp(theta), shape: (*batch, p)
    unit: Tensor  # c / l_j, shape: (*batch, d)


def prepare(
    inputs: Tensor, y: Tensor, forgetting: Tensor | None = None, extra: Tensor | None = None
) -> Rows:
    """Return the rows for ``log_evidence`` and its companions.

    Args:
        inputs: Rows ``[configuration, round]``, ``(*batch, n, d + 1)``.
        y: Rewards in units of the prior, ``(*batch, n)``.
        forgetting: Rate in [0, 1] per round, ``(*batch,)``; ``None`` if it is among the unknowns.
        extra: Known variance of each reward beyond the noise, in squared units of the prior,
            ``(*batch, n)``; 0 if omitted.

    Raises:
        InvalidShapeError: If shapes do not fit each other, or a tensor is not in float64.
        InvalidArgumentError: If a number is not finite, a rate outside [0, 1], or a variance negative.
    """
    shape, expected = tuple(inputs.shape), "n >= 1 rows [configuration, round]"
    fits = inputs.dim() >= 2 and shape[-1] >= 2 and shape[-2] >= 1
    check(fits, "inputs", expected, shape, InvalidShapeError)
    check(y.shape == shape[:-1], "y", f"shape {shape[:-1]}", tuple(y.shape), InvalidShapeError)
    named = {"inputs": inputs, "y": y, "forgetting": forgetting, "extra": extra}
    for name, tensor in named.items():
        if tensor is not None:
            double = tensor.dtype == torch.float64
            check(double, name, "a float64 tensor", tensor.dtype, InvalidShapeError)
            finite = bool(tensor.isfinite().all())
            check(finite, name, "finite numbers", tensor, InvalidArgumentError)
    if extra is not None:
        fits = extra.shape == y.shape
        check(fits, "extra", f"shape {shape[:-1]}", tuple(extra.shape), InvalidShapeError)
        check(bool((extra >= 0).all()), "extra", "numbers >= 0", extra, InvalidArgumentError)
    x, t = inputs[..., :-1], inputs[..., -1]
    lag = (t.unsqueeze(-1) - t.unsqueeze(-2)).abs()
    x = x - x.mean(-2, keepdim=True)
    if forgetting is None:
        return Rows(x, y, lag, None, extra)
    in_range = bool(((forgetting >= 0) & (forgetting <= 1)).all())
    check(in_range, "forgetting", "rates in [0, 1]", forgetting, InvalidArgumentError)
    fits = forgetting.shape in (torch.Size(), y.shape[:-1])
    check(fits, "forgetting", f"shape {shape[:-2]}", tuple(forgetting.shape), InvalidShapeError)
    return Rows(x, y, lag, retention(forgetting[..., None, None], lag), extra)


@torch.no_grad()
def log_evidence(family: str, rows: Rows, theta: Tensor) -> tuple[Tensor, Tensor]:
    """Return the log evidence and its gradient for all problems of the batch.

    Args:
        family: One of ``radial.SCALED``.
        rows: Result of ``prepare``; its batch dimensions broadcast with those of ``theta``.
        theta: Unknowns in log units, ``(*batch, p)``.

    Returns:
        Values ``(*batch,)`` and gradients ``(*batch, p)``.

    Raises:
        InvalidArgumentError: If the family has no lengthscale.
        InvalidShapeError: If ``theta`` does not have one entry per unknown, or is not in float64.
    """
    return _value_and_gradient(rows, _solve(family, rows, theta))


@torch.no_grad()
def log_evidence_and_slopes(
    family: str, rows: Rows, theta: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the log evidence, its gradient, and its gradient by the rewards, ``-alpha``.

    Arguments and errors are those of ``log_evidence``; ``y`` may have more batch dimensions.

    Returns:
        Values ``(*batch,)`` and gradients ``(*batch, p)`` and ``(*batch, n)``.
    """
    solved = _solve(family, rows, theta)
    value, gradient = _value_and_gradient(rows, solved)
    return value, gradient, torch.where(value.unsqueeze(-1) > -torch.inf, -solved.alpha, 0.0)


@torch.no_grad()
def average_information(family: str, rows: Rows, theta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return the log evidence, its gradient and its average information, ``(*batch, p, p)``.

    Arguments and errors are those of ``log_evidence``. The information of a singular problem is 0.
    """
    solved = _solve(family, rows, theta)
    changes = _changes(rows, solved)
    information = 0.5 * changes.mT @ (solved.inverse @ changes)
    information = torch.where(solved.failed[..., None, None], 0.0, information)
    return *_value_and_gradient(rows, solved), information


def _solve(family: str, rows: Rows, theta: Tensor) -> _Solved:
    """Factorize ``K`` and solve for ``alpha``."""
    _check_theta(family, rows, theta)
    values, dim, profile = theta.exp(), rows.x.shape[-1], PROFILES[family]
    unit = profile.constant / values[..., :dim]
    scaled = rows.x * unit.unsqueeze(-2)
    # Distances by inner products would lose half the digits of close points.
    s = torch.cdist(scaled, scaled, compute_mode="donot_use_mm_for_euclid_dist")
    retentions = rows.retentions
    if retentions is None:
        retentions = (rows.lag * (-0.5 * values[..., -1:, None])).exp_()
    amplitude = retentions * values[..., dim, None, None]
    phi, psi = profile.slope(s)
    noisy = phi * amplitude  # not in place: psi may be phi
    slope = psi.mul_(amplitude)
    noisy.diagonal(dim1=-2, dim2=-1).add_(values[..., dim + 1, None])

    prior = noisy.diagonal(dim1=-2, dim2=-1).amax(-1)
    if rows.extra is not None:  # after the maximum: it makes no other row singular
        noisy.diagonal(dim1=-2, dim2=-1).add_(rows.extra)
    chol, info = torch.linalg.cholesky_ex(noisy)
    failed = (info > 0) | _is_singular(chol, prior)
    if bool(failed.any()):  # the inverse would raise
        identity = torch.eye(chol.shape[-1], dtype=chol.dtype, device=chol.device)
        chol = torch.where(failed[..., None, None], identity, chol)
    # LAPACK returns contiguous columns; the transposition makes rows contiguous (P is symmetric).
    inverse = torch.cholesky_inverse(chol).mT
    alpha = (inverse @ rows.y.unsqueeze(-1)).squeeze(-1)
    log_det = chol.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    log_prob = -0.5 * (rows.y * alpha).sum(-1) - log_det - 0.5 * rows.y.shape[-1] * LOG_TWO_PI
    return _Solved(log_prob, failed, noisy, slope, inverse, alpha, values, unit)


def _is_singular(
    chol: Tensor,  # shape: (*batch, n, n)
    largest: Tensor,  # largest entry of the diagonal of the matrix, shape: (*batch,)
) -> Tensor:  # shape: (*batch,), bool
    """Return whether a squared pivot is within rounding errors of zero, ``n eps`` of ``largest``.

    Unlike a failure of the factorization, this does not depend on the rounding of the processor.
    """
    pivot = chol.diagonal(dim1=-2, dim2=-1).square().amin(-1)
    return pivot <= chol.shape[-1] * torch.finfo(chol.dtype).eps * largest


def _value_and_gradient(rows: Rows, solved: _Solved) -> tuple[Tensor, Tensor]:
    log_prob, failed, noisy, slope, inverse, alpha, values, unit = solved
    dim, n = rows.x.shape[-1], rows.y.shape[-1]
    trace = alpha.square().sum(-1) - inverse.diagonal(dim1=-2, dim2=-1).sum(-1)  # tr G
    by_noise = values[..., dim + 1] * trace
    by_scale = (rows.y * alpha).sum(-1) - n - by_noise
    if rows.extra is not None:  # tr(G E)
        trace_of = alpha.square() - inverse.diagonal(dim1=-2, dim2=-1)
        by_scale = by_scale - (rows.extra * trace_of).sum(-1)
    parts = [by_scale.unsqueeze(-1), by_noise.unsqueeze(-1)]

    outer = alpha.unsqueeze(-1) * alpha.unsqueeze(-2)
    outer -= inverse  # G
    if rows.retentions is None:
        total = (outer * noisy).mul_(rows.lag).sum((-2, -1))
        parts.append((-0.5 * values[..., -1] * total).unsqueeze(-1))
    outer *= slope  # W
    cross = (rows.x * (outer @ rows.x)).sum(-2)  # x_j'W x_j
    squares = (rows.x.square() * outer.sum(-1, keepdim=True)).sum(-2)  # x_j^2 . W 1
    by_lengthscale = 2 * (squares - cross) * unit.square()
    gradient = 0.5 * torch.cat([by_lengthscale, *parts], -1)

    finite = ~failed & ((log_prob + gradient.sum(-1)).abs() < torch.inf)
    value = torch.where(finite, log_prob, -torch.inf)
    return value, torch.where(finite.unsqueeze(-1), gradient, 0.0)


def _changes(rows: Rows, solved: _Solved) -> Tensor:
    """Return ``K_a alpha`` for each unknown ``a``, shape ``(*batch, n, p)``.

    For a lengthscale this is ``sum_k M_ik (u_ij - u_kj)^2 alpha_k``, three products with ``M``.
    """
    _, _, noisy, slope, _, alpha, values, unit = solved
    dim = rows.x.shape[-1]
    a, x = alpha.unsqueeze(-1), rows.x
    ones, linear, square = (slope @ (a * power) for power in (torch.ones_like(x), x, x.square()))
    by_lengthscale = x.square() * ones - 2 * x * linear + square
    by_noise = values[..., dim + 1, None, None] * a
    of_function = rows.y.unsqueeze(-1) - by_noise  # K_f alpha = y - noise alpha - E alpha
    if rows.extra is not None:
        of_function = of_function - rows.extra.unsqueeze(-1) * a
    parts = [
        by_lengthscale * unit.square().unsqueeze(-2),
        of_function,
        by_noise,
    ]
    if rows.retentions is None:
        parts.append(-0.5 * values[..., -1, None, None] * ((noisy * rows.lag) @ a))
    return torch.cat(parts, -1)


def _check_theta(family: str, rows: Rows, theta: Tensor) -> None:
    families = sorted(SCALED)
    check(family in families, "family", f"one of {families}", family, InvalidArgumentError)
    p, shape = rows.unknowns, tuple(theta.shape)
    fits = theta.dim() >= 1 and shape[-1] == p
    check(fits, "theta", f"{p} entries", shape, InvalidShapeError)
    double = theta.dtype == torch.float64
    check(double, "theta", "a float64 tensor", theta.dtype, InvalidShapeError)
