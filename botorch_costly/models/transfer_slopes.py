r"""Moments of a ``TransferGP``, with analytic gradients.

In the notation of ``models.transfer``, where ``T`` tasks have the posterior means ``f`` at a point, with
average ``m`` and summed variance ``v``, and with ``u^2 = q v``, ``q = spread / T + (level / T)^2``,

    mean     = level m + k'w,                                    w = K^{-1} residual
    variance = common m^2 + own + u^2 + spread / T |f|^2 + offset - k'K^{-1}k,
    k_i      = offset + f'B_i + (own + u u_i) phi_i,             B_i = (common m_i + spread f_i) / T.

``g mean + h variance`` then has the slopes, with ``G = g w - 2 h K^{-1}k``,

    by f   (g level + 2 h common m) / T + 2 h spread / T f + sum_i G_i B_i
    by u   2 h u + sum_i G_i u_i phi_i,                                    by v   q / (2 u) times that
    by x   -c^2 / l_j^2 sum_i G_i (own + u u_i) psi_i (x_j - x_ij)         where f and v do not change.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.numerics.cholesky import inverse_root
from botorch_costly.numerics.radial import PROFILES

LEAST_UNKNOWN = 1e-24  # lower bound of u^2: the derivative of its root at 0 is not finite
LEAST_VARIANCE = 1e-12


class Conditioned(NamedTuple):
    """A target conditioned on its values, in units."""

    kernel: str
    x: Tensor  # inputs, shape: (n, d)
    means: Tensor  # of the tasks at the inputs, shape: (n, T)
    unknown: Tensor  # u_i, shape: (n,)
    root: Tensor  # L of K = L L', shape: (n, n)
    residual: Tensor  # shape: (n,)
    level: Tensor  # shape: ()
    spread: Tensor  # shape: ()
    own: Tensor  # shape: ()
    lengthscale: Tensor  # shape: (d,)
    common: float
    offset: Tensor  # variance of the offset, shape: ()


class _Ready(NamedTuple):
    """Terms that do not depend on the points."""

    target: Conditioned
    unit: Tensor  # c / l, shape: (d,)
    scaled: Tensor  # inputs times ``unit``, shape: (n, d)
    rate: Tensor  # q, shape: ()
    linear: Tensor  # B, shape: (n, T)
    inverse_root: Tensor  # L^{-1}, shape: (n, n)
    weights: Tensor  # w, shape: (n,)


class SlopesOf(NamedTuple):
    """Gradients with respect to a point and to the tasks' moments there."""

    by_points: Tensor  # shape: (m, d)
    by_means: Tensor  # shape: (m, T)
    by_variance: Tensor  # of the tasks, summed, shape: (m,)


class Asked(NamedTuple):
    """Moments in units, and the way back from their slopes."""

    mean: Tensor  # shape: (m,)
    std: Tensor  # shape: (m,)
    vjp: Callable[[Tensor, Tensor], SlopesOf]  # slopes by mean and std, (m,) each


Ask = Callable[[Tensor, Tensor, Tensor], Asked]


def moments_and_vjp(target: Conditioned) -> Ask:
    """Return what maps points ``m x d``, means ``m x T`` and summed variances there to moments."""
    ready = _ready(target)
    return lambda X, means, variance: _asked(ready, X, means, variance)


def _ready(target: Conditioned) -> _Ready:
    count = target.means.shape[-1]
    unit = PROFILES[target.kernel].constant / target.lengthscale
    average = target.means.mean(-1, keepdim=True)
    inverse = inverse_root(target.root)
    return _Ready(
        target,
        unit,
        target.x * unit,
        target.spread / count + (target.level / count).square(),
        (target.common * average + target.spread * target.means) / count,
        inverse,
        inverse.mT @ (inverse @ target.residual),
    )


def _asked(ready: _Ready, X: Tensor, means: Tensor, variance: Tensor) -> Asked:
    target, unit, scaled, rate, linear, inverse, weights = ready
    count, common, each = means.shape[-1], target.common, target.spread / means.shape[-1]
    exact = "donot_use_mm_for_euclid_dist"
    distance = torch.cdist(X * unit, scaled, compute_mode=exact)
    phi, psi = PROFILES[target.kernel].slope(distance)
    squared = (rate * variance).clamp_min(LEAST_UNKNOWN)  # u^2
    unknown = squared.sqrt()
    amplitude = torch.addcmul(target.own, unknown.unsqueeze(-1), target.unknown)
    cross = torch.addcmul(target.offset, amplitude, phi) + means @ linear.mT
    white = cross @ inverse.mT
    average = means.mean(-1)
    prior = squared + common * average.square() + each * means.square().sum(-1)
    left = prior + (target.own + target.offset) - white.square().sum(-1)
    std = left.clamp_min(LEAST_VARIANCE).sqrt()

    def vjp(by_mean: Tensor, by_std: Tensor) -> SlopesOf:
        half = torch.where(left > LEAST_VARIANCE, by_std / std, 0.0)  # 2 h
        # G
        by_cross = by_mean.unsqueeze(-1) * weights - (half.unsqueeze(-1) * white) @ inverse
        by_average = (by_mean * target.level + (common * half) * average) / count
        by_means = (half * each).unsqueeze(-1) * means + by_average.unsqueeze(-1)
        by_means = by_means + by_cross @ linear
        by_unknown = half * unknown + (by_cross * phi) @ target.unknown
        is_inside = squared > LEAST_UNKNOWN
        by_variance = torch.where(is_inside, 0.5 * rate / unknown * by_unknown, 0.0)
        pulled = by_cross * amplitude * psi
        away = pulled @ target.x - pulled.sum(-1, keepdim=True) * X
        return SlopesOf(unit.square() * away, by_means, by_variance)

    return Asked(target.level * average + cross @ weights, std, vjp)
