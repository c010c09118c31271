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

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.numerics.closed_form import ClosedForm, deviation, distances, scaled, unclamped
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


class _Around(NamedTuple):
    """Covariances of points with the observations and their slopes."""

    delta: Tensor  # rows minus scaled points, shape: (*batch, j, d, n)
    phi: Tensor  # shape: (*batch, j, n)
    psi: Tensor  # shape: (*batch, j, n)
    chi: Tensor  # shape: (*batch, j, n)
    factor: float  # of psi, chi and J, which are all without it
    white: Tensor  # B J, transposed, and B phi below it, shape: (*batch, j, d + 1, n)

    @property
    def slopes(self) -> Tensor:
        """``B J``, transposed, shape ``(*batch, j, d, n)``."""
        return self.white[..., :-1, :]

    @property
    def projected(self) -> Tensor:
        """``B phi``, shape ``(*batch, j, n)``."""
        return self.white[..., -1, :]


def _around(form: ClosedForm, X: Tensor, columns: Tensor) -> _Around:
    """Return the covariances; the columns are ``form.rows``, transposed and contiguous."""
    profile = PROFILES[form.family]
    points = scaled(form, X)
    delta = columns.unsqueeze(-3) - points.unsqueeze(-1)
    s = distances(form, points)  # ten times as fast as the norms of the differences
    phi, psi = profile.bare_slope(s)
    black = torch.cat([psi.unsqueeze(-2) * delta, phi.unsqueeze(-2)], -2)
    white = (black.flatten(-3, -2) @ form.solver.mT).unflatten(-2, black.shape[-3:-1])
    return _Around(delta, phi, psi, profile.chi(s, phi, psi), profile.factor, white)


def expand(form: ClosedForm, X: Tensor) -> Expansion:
    """Expand a posterior around configurations ``X``, shape ``(*batch, j, d)``."""
    around = _around(form, X, form.rows.mT.contiguous())
    gradient, hessian = _weighted(around, form.alpha.mT)
    slope, bend = _weighted(around, around.projected @ form.solver)  # v
    bend = torch.add(bend, around.slopes @ around.slopes.mT, alpha=around.factor).mul_(2)
    unit, square = _units(form)
    return Expansion(
        points=X,
        mean=Quadratic((around.phi @ form.alpha).squeeze(-1), gradient * unit, hessian * square),
        explained=Quadratic(
            around.projected.square().sum(-1), slope.mul_(2) * unit, bend.mul_(square)
        ),
    )


def upper_bound_with_hessian(
    form: ClosedForm, retained: float, width: Tensor, floor: float, scale: float = 1.0
) -> Callable[[Tensor], Quadratic]:
    """Return the upper confidence bound ``mean + width std`` of a round as a function to expand.

    All covariances have one weight, ``c_i = a alpha_i + r v_i`` with ``r = -w a^2 / sigma``, and with
    ``h = grad q / 2`` and the formulas above

        Hess = sum_i c_i Hess phi_i + r ((B J)'(B J) + a^2 / sigma^2 h h').

    The result is that of ``expanded_upper_bound``, in half of the operations.

    Args:
        form: Closed form of the posterior in a reference round.
        retained: Retention ``a`` since that round.
        width: Number of standard deviations to add, shape ``()`` or ``(*batch, 1)``.
        floor: Least variance; a clamped variance has no gradient.
        scale: Factor of the bound.

    Returns:
        A function of configurations ``*batch x j x d``.
    """
    squared = retained * retained

    @cache
    def constants() -> tuple[Tensor, ...]:
        """Return the tensors that all calls share, prepared at the first call."""
        alpha, columns = (scale * retained) * form.alpha, form.rows.mT.contiguous()
        return (
            alpha,
            scale * width,
            (-squared * scale * width).unsqueeze(-1),
            columns,
            *_units(form),
        )

    def second_order(X: Tensor) -> Quadratic:
        alpha, scaled_width, steepness, columns, unit, square = constants()
        around = _around(form, X.detach(), columns)
        std = deviation(form, around.projected, squared, floor)
        divisor = unclamped(std, floor).unsqueeze(-1)
        rate = steepness / divisor  # r
        weights = torch.addcmul(alpha.mT, rate, around.projected @ form.solver)
        gradient, hessian = _weighted(around, weights)
        bend, h = (around.white @ around.slopes.mT).split([X.shape[-1], 1], -2)
        h = h / divisor.unsqueeze(-1)  # h / sigma
        bend = torch.addcmul(bend, h.mT, h, value=squared)
        return Quadratic(
            torch.addcmul((around.phi @ alpha).squeeze(-1), scaled_width, std),
            gradient.mul_(unit),
            hessian.addcmul_(rate.unsqueeze(-1), bend, value=around.factor).mul_(square),
        )

    return second_order


def _weighted(
    around: _Around,
    weights: Tensor,  # of the observations, shape: (*batch, j, n)
) -> tuple[Tensor, Tensor]:  # shapes: (*batch, j, d), (*batch, j, d, d)
    """Return gradient and Hessian of the weighted sum of all ``phi_i``."""
    psi = weights * around.psi
    gradient = (around.delta @ psi.unsqueeze(-1)).squeeze(-1)
    hessian = (around.delta * (weights * around.chi).unsqueeze(-2)) @ around.delta.mT
    hessian.diagonal(dim1=-2, dim2=-1).sub_(psi.sum(-1, keepdim=True))
    return gradient, hessian


def _units(form: ClosedForm) -> tuple[Tensor, Tensor]:  # shapes: (d,), (d, d)
    """Return the factors of gradients and Hessians, from the family and the units of the rows."""
    unit, factor = form.unit.expand(form.rows.shape[-1]), PROFILES[form.family].factor
    return factor * unit, factor * unit * unit.unsqueeze(-1)


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
