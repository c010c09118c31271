r"""The posterior around some configurations, to second order, in every round until the next query.

Around a configuration the closed form is its second-order expansion: mean ``m`` and explained variance
``q`` with gradients and Hessians, computed once. With ``delta_i = u - u_i`` in the units of the rows,

    grad phi_i = -psi_i delta_i,    Hess phi_i = -psi_i I + chi_i delta_i delta_i',

so that, with ``J`` the gradients of all ``phi_i`` and ``v = B'B phi``,

    Hess m = sum_i alpha_i Hess phi_i,    Hess q = 2 (B J)'(B J) + 2 sum_i v_i Hess phi_i.

After waiting for a retention ``a`` the bound is ``a m + w sigma`` with ``sigma^2 = s - a^2 q``, and

    grad sigma = -a^2 grad q / (2 sigma),
    Hess sigma = -a^2 Hess q / (2 sigma) - grad sigma grad sigma' / sigma.

A further round of waiting costs these few numbers for each point, and nothing for an observation.

Notation: ``n`` observations, ``j`` points, ``d`` columns.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.numerics.closed_form import ClosedForm, distances, scaled
from botorch_costly.numerics.radial import PROFILES


class Quadratic(NamedTuple):
    """A function at some points, to second order."""

    value: Tensor  # shape: (*batch, j)
    gradient: Tensor  # shape: (*batch, j, d)
    hessian: Tensor  # shape: (*batch, j, d, d)

    def at(self, step: Tensor) -> Tensor:
        """Return the values after steps (``*batch x j x d``) from the points."""
        bend = (step.unsqueeze(-2) @ self.hessian).squeeze(-2)
        return self.value + (step * torch.add(self.gradient, bend, alpha=0.5)).sum(-1)


class Expansion(NamedTuple):
    """Mean and explained variance around some configurations."""

    points: Tensor  # shape: (*batch, j, d)
    mean: Quadratic
    explained: Quadratic


def expand(form: ClosedForm, X: Tensor) -> Expansion:
    """Expand a posterior around configurations ``X``, shape ``(*batch, j, d)``."""
    points = scaled(form, X)
    delta = points.unsqueeze(-2) - form.rows.unsqueeze(-3)  # (*batch, j, n, d)
    profile, s = PROFILES[form.family], distances(form, points)
    phi, psi = profile.slope(s)
    chi = profile.chi(s, phi, psi)
    projected = phi @ form.solver.mT  # B phi
    factors = torch.stack([form.alpha.mT.expand_as(phi), projected @ form.solver])  # alpha, v
    slopes, bends = _pull_twice(factors * psi, factors * chi, delta)
    ways = (psi.unsqueeze(-1) * delta).transpose(-3, -2)  # -J, shape: (*batch, n, j, d)
    seen = (form.solver @ ways.flatten(-2)).unflatten(-1, ways.shape[-2:]).transpose(-3, -2)
    bends[1].add_(seen.mT @ seen).mul_(2)
    unit = form.unit.expand(X.shape[-1])
    (up, steep), (bend, curve) = slopes * unit, bends * (unit * unit.unsqueeze(-1))
    return Expansion(
        points=X,
        mean=Quadratic((phi @ form.alpha).squeeze(-1), up, bend),
        explained=Quadratic(projected.square().sum(-1), 2 * steep, curve),
    )


def _pull_twice(once: Tensor, twice: Tensor, delta: Tensor) -> tuple[Tensor, Tensor]:
    """Return ``-sum_i g_i delta_i`` and ``sum_i h_i delta_i delta_i' - sum_i g_i I``.

    Args:
        once: ``g`` of mean and explained variance, shape ``(2, *batch, j, n)``.
        twice: ``h`` of both, shape ``(2, *batch, j, n)``.
        delta: Shape ``(*batch, j, n, d)``.
    """
    gradient = -(once.unsqueeze(-2) @ delta).squeeze(-2)
    trace = once.sum(-1, keepdim=True).expand_as(gradient)
    return gradient, delta.mT @ (twice.unsqueeze(-1) * delta) - torch.diag_embed(trace)


def expanded_upper_bound(
    around: Expansion, prior: Tensor, retained: Tensor | float, width: Tensor, floor: float
) -> Quadratic:
    """Return ``mean + width std`` around the points of an expansion, after waiting.

    Args:
        around: Of the posterior in some round.
        prior: Prior variance, shape ``(*batch, 1)`` or ``()``.
        retained: Retention ``a`` since that round; of several later rounds, shape ``(r, *batch, 1)``.
        width: Standard deviations to add, of the shape of ``retained``.
        floor: Least variance, below which it has no gradient.
    """
    mean, explained = around.mean, around.explained
    if not isinstance(retained, Tensor):
        retained = width.new_full((), retained)
    squared = retained.square()
    variance = prior - squared * explained.value
    std = variance.clamp_min(floor).sqrt()
    rate = (-0.5 * squared / std * (variance > floor)).unsqueeze(-1)
    slope = rate * explained.gradient  # grad sigma
    outer = slope.unsqueeze(-1) * (slope / std.unsqueeze(-1)).unsqueeze(-2)
    bend = rate.unsqueeze(-1) * explained.hessian - outer
    retained_1, width_1 = retained.unsqueeze(-1), width.unsqueeze(-1)
    return Quadratic(
        value=retained * mean.value + width * std,
        gradient=retained_1 * mean.gradient + width_1 * slope,
        hessian=retained_1.unsqueeze(-1) * mean.hessian + width_1.unsqueeze(-1) * bend,
    )
