r"""The approximate value of a query, ``mean + H gain``, with a gradient in closed form.

The largest mean is taken over the configuration ``x`` itself and ``m`` lines ``x_j``. A query at ``x``
raises their means by

    slope_0 = v r,    slope_j = c_j r,    r = (v + noise)^(-1/2),

with the variance ``v`` of ``x`` and its covariances ``c_j`` with the lines. The gain is approximated by
strata of the outcome with means ``z_l`` and masses ``w_l``, of which line ``J_l`` is the highest:

    gain = sum_l w_l (level_{J_l} + z_l slope_{J_l}) - max level.

Where ``J`` stays as it is, with ``q_j`` the sum of ``w_l z_l`` over the strata in which line ``j`` is the
highest, and ``p`` the mass of those in which ``x`` itself is,

    d value = (1 + H (p - [x has the largest mean])) d mean
              + H (q_0 r - r^3 (q_0 v + sum_j q_j c_j) / 2) dv + H r sum_j q_j dc_j.

Mean, variance and covariances are sums over the profiles of ``x`` with observations and lines, so the
gradient costs one more product with each of their factors. Notation as in ``closed_form``.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.device import moved
from botorch_costly.numerics.closed_form import ClosedForm, distances_between, scaled
from botorch_costly.numerics.knowledge_gradient import FAR_OUTCOMES, rough_surprise, strata
from botorch_costly.numerics.projection import Projection
from botorch_costly.numerics.radial import PROFILES


class _Sums(NamedTuple):
    """Mean, variance and covariances as sums over profiles with ``n`` observations and ``m`` lines."""

    rows: Tensor  # scaled configurations, shape: (n + m, d)
    mean: Tensor  # a alpha, shape: (n, 1)
    solver: Tensor  # a B, shape: (n, n)
    cov: Tensor  # of profiles with all rows with the lines, shape: (n + m, m)


def promise_with_gradient(
    form: ClosedForm,
    lines: Projection,
    retained: float,
    noise: float,
    effective_horizon: Tensor,  # shape: (*batch, 1)
) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """Return the approximate value of a query as a function with a gradient, in units of the prior.

    Args:
        form: Closed form of the posterior in one round.
        lines: Projections of the lines.
        retained: Retention since that round.
        noise: Noise variance of a query.
        effective_horizon: Weight of the gain, for each function of a batch.

    Returns:
        A function of ``*batch x q x d`` points that returns values ``*batch x q`` and gradients
        ``*batch x q x d``.
    """
    sums, n = _sums(form, lines, retained), form.rows.shape[-2]
    level = retained * lines.mean
    outcomes, masses = (moved(tensor, level) for tensor in strata(FAR_OUTCOMES))
    outcomes, shares = outcomes.unsqueeze(-1), outcomes * masses
    slope_of = PROFILES[form.family].slope

    def value_and_gradient(X: Tensor) -> tuple[Tensor, Tensor]:
        points = scaled(form, X)
        phi, psi = slope_of(distances_between(form.family, points, sums.rows))
        observed = phi[..., :n]
        projected, own = observed @ sums.solver.mT, observed @ sums.mean  # (.., n) and (.., 1)
        variance = (form.prior - projected.square().sum(-1, True)).clamp_min_(0)
        surprise = rough_surprise(variance, noise, form.prior)
        root = surprise.rsqrt()
        cov = torch.cat([variance, phi @ sums.cov], -1)  # (.., 1 + m)
        levels = torch.cat([own, level.expand(*own.shape[:-1], -1)], -1)
        rises = (cov * root).unsqueeze(-2)
        highest, line = torch.addcmul(levels.unsqueeze(-2), rises, outcomes).max(-1)  # (.., l)
        best, number = levels.max(-1)
        value = own.squeeze(-1) + effective_horizon * (highest @ masses - best).clamp_min(0)
        weights = effective_horizon.unsqueeze(-1)
        q = torch.zeros_like(cov).scatter_add_(-1, line, shares.expand_as(highest)) * weights
        mass = ((line == 0) * masses).sum(-1) - (number == 0).to(masses)
        # Derivatives by mean, variance and covariances.
        by_mean = 1 + effective_horizon * mass
        by_root = -0.5 * root**3 * (surprise <= variance + noise)  # its derivative by the variance
        by_variance = q[..., :1] * root + by_root * (q * cov).sum(-1, True)
        through = (q[..., 1:] * root) @ sums.cov.mT
        explained = projected @ sums.solver
        through[..., :n] += by_mean.unsqueeze(-1) * sums.mean.mT - 2 * by_variance * explained
        through.mul_(psi)
        gradient = torch.addcmul(through @ sums.rows, through.sum(-1, True), points, value=-1)
        return value, gradient.mul_(form.unit)

    return value_and_gradient


def _sums(form: ClosedForm, lines: Projection, retained: float) -> _Sums:
    rows = torch.cat([form.rows, lines.points])
    solver = retained * form.solver
    explained = solver.mT @ lines.projected.mT
    own = form.prior * torch.eye(len(lines.points), dtype=rows.dtype, device=rows.device)
    cov = torch.cat([-retained * explained, own])
    return _Sums(rows, retained * form.alpha, solver, cov)
