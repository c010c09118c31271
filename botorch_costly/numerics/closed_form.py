r"""The posterior of a streaming belief in one round, in closed form, with gradients and without a graph.

The observations of a streaming belief differ in configuration and in age. In a fixed round the ages
are numbers, and enter the factor once for all configurations asked about. With
``phi_i = phi(|u - u_i|)``, ``u = c x / l``, prior variance ``s`` and retentions ``a_i``,

    k_i = s a_i phi_i,    mean m = phi' alpha,    alpha = s a o (L^-T W)
                          explained q = |B phi|^2,    B = L^-1 diag(s a),    variance = s - q.

Waiting multiplies every ``a_i`` by one retention ``a``. So it multiplies ``m`` by ``a`` and ``q`` by
``a^2``; nothing else changes until the next query.

With ``psi = -phi' / |u - u_i|``, which is finite at 0 for all families but Matérn-1/2, the gradients are

    dm/dx = -(c / l) sum_i alpha_i psi_i (u - u_i),
    dq/dx = -(c / l) 2 sum_i v_i psi_i (u - u_i),    v = B' B phi,

two products with matrices that are there anyway: value and gradient cost five matrix products and
no graph. Distances come from inner products, ``|u|^2 + |u_i|^2 - 2 u'u_i``. What that rounds off a
squared distance reaches ``phi`` and ``psi`` at first order only; Matérn-1/2, which has a kink, and a
nugget, which is a jump, take differences.

Convention: ``Moments`` hold the *explained* variance ``q``, not the variance ``s - a^2 q``.

Notation: ``n`` observations, ``q`` configurations asked about, ``d`` columns.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.numerics.radial import ARMS, NUGGET, PROFILES
from botorch_costly.numerics.stationary import Stationary

_TOLD_APART = ("matern12", NUGGET)  # at whose kink or jump rounding would matter


class ClosedForm(NamedTuple):
    """What the posterior about ``f`` in one round is computed from, in units of its prior."""

    family: str
    prior: Tensor  # s, shape: () or (*batch, 1)
    unit: Tensor  # c / l, shape: (d,) or (1,)
    middle: Tensor  # of the scaled configurations, shape: (*batch, 1, d)
    rows: Tensor  # u_i less the middle, shape: (*batch, n, d)
    squares: Tensor  # |u_i|^2, shape: (*batch, 1, n)
    alpha: Tensor  # shape: (*batch, n, 1)
    solver: Tensor  # B, shape: (*batch, n, n)

    def to(self, dtype: torch.dtype) -> "ClosedForm":
        """Return it in another precision."""
        return ClosedForm(self.family, *(part.to(dtype) for part in self[1:]))


class Moments(NamedTuple):
    """Mean and explained variance of ``f``, in the round of the closed form."""

    mean: Tensor  # m, shape: (*batch, q)
    explained: Tensor  # q, by which the observations lower the prior variance, shape: (*batch, q)


def closed_form(
    kernel: Stationary,
    configurations: Tensor,  # shape: (*batch, n, d)
    retentions: Tensor,  # a_i, shape: (*batch, n)
    inverse: Tensor,  # L^-1, shape: (*batch, n, n)
    whitened: Tensor,  # W = L^-1 y, shape: (*batch, n, 1)
) -> ClosedForm:
    """Return the closed form of a posterior in the round to which the retentions count."""
    unit = PROFILES[kernel.family].constant / kernel.lengthscale
    rows = configurations * unit
    middle = rows.mean(-2, keepdim=True)  # near to what is asked about, so that squares stay small
    rows = rows - middle
    priors = (kernel.outputscale * retentions).unsqueeze(-1)  # s a_i
    return ClosedForm(
        family=kernel.family,
        prior=kernel.outputscale,
        unit=unit,
        middle=middle,
        rows=rows,
        squares=rows.square().sum(-1).unsqueeze(-2),
        alpha=priors * (inverse.mT @ whitened),
        solver=inverse * priors.mT,
    )


def scaled(form: ClosedForm, X: Tensor) -> Tensor:
    """Return configurations ``X`` (``*batch x q x d``) in the units of the rows."""
    return (X * form.unit).sub_(form.middle)  # to the last bit as the rows were


def distances(form: ClosedForm, points: Tensor) -> Tensor:  # shape: (*batch, q, n)
    """Return the distances of scaled configurations (``*batch x q x d``) to the rows."""
    if form.family == ARMS:
        return torch.cdist(points, form.rows, p=0)
    if form.family in _TOLD_APART:
        return torch.cdist(points, form.rows, compute_mode="donot_use_mm_for_euclid_dist")
    apart = torch.sub(form.squares, points @ form.rows.mT, alpha=2)
    return apart.add_(points.square().sum(-1, keepdim=True)).clamp_min_(0).sqrt_()


def moments(form: ClosedForm, X: Tensor) -> Moments:
    """Return mean and explained variance at configurations ``X``, shape ``(*batch, q, d)``."""
    phi = PROFILES[form.family].phi(distances(form, scaled(form, X)))
    return Moments(
        mean=(phi @ form.alpha).squeeze(-1),
        explained=(phi @ form.solver.mT).square_().sum(-1),
    )


def upper_bound_at(
    prior: Tensor, known: Moments, retained: Tensor | float, width: Tensor, floor: float
) -> Tensor:  # shape: (*batch, q)
    """Return ``mean + width std`` where the moments are known, after waiting.

    Args:
        prior: Prior variance ``s``.
        known: Moments in the round of the closed form.
        retained: Retention ``a`` since that round.
        width: Standard deviations to add.
        floor: Least variance.
    """
    variance = prior - retained * retained * known.explained
    return torch.addcmul(retained * known.mean, width, variance.clamp_min_(floor).sqrt_())


def upper_bound_with_gradient(
    form: ClosedForm, retained: float, width: Tensor, floor: float, scale: float = 1.0
) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """Return the upper confidence bound ``mean + width std`` as a function with a gradient.

    Args:
        form: Of the posterior in some round.
        retained: Retention ``a`` since that round.
        width: Standard deviations to add, shape ``()`` or ``(*batch, 1)``.
        floor: Least variance. Where the variance falls below it, it counts as this and has no gradient.
        scale: Multiplies the bound; -1 makes it a loss.

    Returns:
        From configurations ``*batch x q x d`` to values ``*batch x q`` and gradients ``*batch x q x d``.
    """
    slope, lowest = PROFILES[form.family].slope, torch.full_like(form.prior, floor)
    alpha, width = (scale * retained) * form.alpha, scale * width
    steepness = -(retained * retained) * width

    def value_and_gradient(X: Tensor) -> tuple[Tensor, Tensor]:
        points = scaled(form, X)
        phi, psi = slope(distances(form, points))
        projected = phi @ form.solver.mT  # B phi
        explained = projected.square().sum(-1)
        variance = torch.add(form.prior, explained, alpha=-(retained * retained))
        std = torch.maximum(variance, lowest).sqrt_()
        value = torch.addcmul((phi @ alpha).squeeze(-1), width, std)
        # d std = -a^2 v' dphi / std; the gradients of mean and std share one product with the rows.
        share = (steepness / std).mul_(variance > lowest).unsqueeze(-1)
        through = torch.addcmul(alpha.mT, share, projected @ form.solver).mul_(psi)
        pull = torch.addcmul(through @ form.rows, through.sum(-1, True), points, value=-1)
        return value, pull.mul_(form.unit)

    return value_and_gradient
