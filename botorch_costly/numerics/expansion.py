r"""Second-order expansion of the posterior around points, for every round until the next observation.

The mean ``m`` and the explained variance ``q`` of the closed form are computed once, with gradients and
Hessians. With ``delta_i = u - u_i`` in the units of the rows,

    grad phi_i = -psi_i delta_i,    Hess phi_i = -psi_i I + chi_i delta_i delta_i',

so that, with ``J`` the gradients of all ``phi_i`` and ``v = B'B phi``,

    Hess m = sum_i alpha_i Hess phi_i,    Hess q = 2 (B J)'(B J) + 2 sum_i v_i Hess phi_i.

After a wait with retention ``a`` the bound is ``a m + w sigma`` with ``sigma^2 = s - a^2 q``, and

    grad sigma = -a^2 grad q / (2 sigma),
    Hess sigma = -a^2 Hess q / (2 sigma) - grad sigma grad sigma' / sigma.

So the cost of a further round does not depend on the number of observations.

Notation: ``n`` observations, ``j`` points, ``d`` columns.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.numerics.closed_form import ClosedForm, distances, scaled
from botorch_costly.numerics.radial import PROFILES


class Quadratic(NamedTuple):
    """Second-order expansion of a function around each of several points."""

    value: Tensor  # shape: (*batch, j)
    gradient: Tensor  # shape: (*batch, j, d)
    hessian: Tensor  # shape: (*batch, j, d, d)

    def at(self, step: Tensor) -> Tensor:
        """Return the values at the points plus steps (``*batch x j x d``)."""
        bend = (step.unsqueeze(-2) @ self.hessian).squeeze(-2)
        return self.value + (step * torch.add(self.gradient, bend, alpha=0.5)).sum(-1)


class Expansion(NamedTuple):
    """Mean and explained variance around configurations."""

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
    gradients, hessians = _gradient_and_hessian(factors * psi, factors * chi, delta)
    slopes = (psi.unsqueeze(-1) * delta).transpose(-3, -2)  # -J, shape: (*batch, n, j, d)
    white = (form.solver @ slopes.flatten(-2)).unflatten(-1, slopes.shape[-2:]).transpose(-3, -2)
    hessians[1].add_(white.mT @ white).mul_(2)
    unit = form.unit.expand(X.shape[-1])
    gradients, hessians = gradients * unit, hessians * (unit * unit.unsqueeze(-1))
    return Expansion(
        points=X,
        mean=Quadratic((phi @ form.alpha).squeeze(-1), gradients[0], hessians[0]),
        explained=Quadratic(projected.square().sum(-1), 2 * gradients[1], hessians[1]),
    )


def _gradient_and_hessian(
    psi: Tensor,  # weighted psi_i of mean and explained variance, shape: (2, *batch, j, n)
    chi: Tensor,  # weighted chi_i of both, shape: (2, *batch, j, n)
    delta: Tensor,  # shape: (*batch, j, n, d)
) -> tuple[Tensor, Tensor]:
    """Return ``-sum_i psi_i delta_i`` and ``sum_i chi_i delta_i delta_i' - sum_i psi_i I``."""
    gradient = -(psi.unsqueeze(-2) @ delta).squeeze(-2)
    trace = psi.sum(-1, keepdim=True).expand_as(gradient)
    return gradient, delta.mT @ (chi.unsqueeze(-1) * delta) - torch.diag_embed(trace)


def expanded_upper_bound(
    around: Expansion, prior: Tensor, retained: Tensor | float, width: Tensor, floor: float
) -> Quadratic:
    """Return ``mean + width std`` around the points of an expansion, after waiting.

    Args:
        around: Expansion of the posterior in one round.
        prior: Prior variance, shape ``(*batch, 1)`` or ``()``.
        retained: Retention ``a`` since that round; for ``r`` later rounds, shape ``(r, *batch, 1)``.
        width: Number of standard deviations to add, same shape as ``retained``.
        floor: Least variance; a clamped variance has no gradient.
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
