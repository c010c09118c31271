r"""The posterior of a streaming GP in one round, in closed form, with gradients and without a graph.

The observations of a streaming GP differ in configuration and in age. In a fixed round the ages are
constants, which enter the factor once for all query points. With
``phi_i = phi(|u - u_i|)``, ``u = c x / l``, prior variance ``s`` and retentions ``a_i``,

    k_i = s a_i phi_i,    mean m = phi' alpha,    alpha = s a o (L^-T W)
                          explained q = |B phi|^2,    B = L^-1 diag(s a),    variance = s - q.

Waiting multiplies every ``a_i`` by one retention ``a``, so ``m`` by ``a`` and ``q`` by ``a^2``. Nothing
else changes until the next observation.

With ``psi = -phi' / |u - u_i|``, which is finite at 0 for all families but Matérn-1/2, the gradients are

    dm/dx = -(c / l) sum_i alpha_i psi_i (u - u_i),
    dq/dx = -(c / l) 2 sum_i v_i psi_i (u - u_i),    v = B' B phi,

so value and gradient cost five matrix products in all. Distances are computed from differences, which
takes one operation; and inner products would round where a family has a kink or jump.

Convention: ``Moments`` hold the *explained* variance ``q``, not the variance ``s - a^2 q``.

Notation: ``n`` observations, ``q`` query points, ``d`` columns.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import threshold

from botorch_costly.numerics.radial import ARMS, PROFILES
from botorch_costly.numerics.stationary import Stationary

_ROUNDING = 1e-6  # relative, of the root of a number in single precision


class ClosedForm(NamedTuple):
    """Precomputed tensors of the posterior of ``f`` in one round, in units of its prior."""

    family: str
    prior: Tensor  # s, shape: () or (*batch, 1)
    unit: Tensor  # c / l, shape: (d,) or (1,)
    middle: Tensor  # mean of the scaled configurations, shape: (*batch, 1, d)
    rows: Tensor  # u_i minus the middle, shape: (*batch, n, d)
    alpha: Tensor  # shape: (*batch, n, 1)
    solver: Tensor  # B, shape: (*batch, n, n)

    def to(self, dtype: torch.dtype) -> "ClosedForm":
        """Return the closed form with tensors of another precision."""
        return ClosedForm(self.family, *(tensor.to(dtype) for tensor in self[1:]))

    def entries(self, rows: slice) -> "ClosedForm":
        """Return the closed forms of some posteriors of a batch."""
        prior = self.prior[rows] if self.prior.dim() else self.prior
        parts = (self.middle, self.rows, self.alpha, self.solver)
        middle, *others = (part[rows] for part in parts)
        return ClosedForm(self.family, prior, self.unit, middle, *others)


class Moments(NamedTuple):
    """Mean and explained variance of ``f``, in the round of the closed form."""

    mean: Tensor  # m, shape: (*batch, q)
    explained: Tensor  # q, reduction of the prior variance by the observations, shape: (*batch, q)


def closed_form(
    kernel: Stationary,
    configurations: Tensor,  # shape: (*batch, n, d)
    retentions: Tensor,  # a_i, shape: (*batch, n)
    inverse: Tensor,  # L^-1, shape: (*batch, n, n)
    whitened: Tensor,  # W = L^-1 y, shape: (*batch, n, 1)
) -> ClosedForm:
    """Return the closed form of the posterior in the round to which the retentions refer."""
    unit = PROFILES[kernel.family].constant / kernel.lengthscale
    rows = configurations * unit
    middle = rows.mean(-2, keepdim=True)  # close to the query points, which keeps the numbers small
    rows = rows - middle
    priors = (kernel.outputscale * retentions).unsqueeze(-1)  # s a_i
    return ClosedForm(
        family=kernel.family,
        prior=kernel.outputscale,
        unit=unit,
        middle=middle,
        rows=rows,
        alpha=priors * (inverse.mT @ whitened),
        solver=inverse * priors.mT,
    )


def scaled(form: ClosedForm, X: Tensor) -> Tensor:
    """Return configurations ``X`` (``*batch x q x d``) in the units of the rows."""
    return (X * form.unit).sub_(form.middle)  # same operations as for the rows, bit for bit


def distances(form: ClosedForm, points: Tensor) -> Tensor:  # shape: (*batch, q, n)
    """Return the distances of scaled configurations (``*batch x q x d``) to the rows."""
    return distances_between(form.family, points, form.rows)


def distances_between(
    family: str,
    points: Tensor,  # shape: (*batch, q, d)
    others: Tensor,  # shape: (*batch, n, d)
) -> Tensor:  # shape: (*batch, q, n)
    """Return the distances of scaled configurations to each other."""
    if family == ARMS:
        return torch.cdist(points, others, p=0)
    return torch.cdist(points, others, compute_mode="donot_use_mm_for_euclid_dist")


def moments(form: ClosedForm, X: Tensor) -> Moments:
    """Return mean and explained variance at configurations ``X``, shape ``(*batch, q, d)``."""
    phi = PROFILES[form.family].phi(distances(form, scaled(form, X)))
    return Moments(
        mean=(phi @ form.alpha).squeeze(-1),
        explained=(phi @ form.solver.mT).square_().sum(-1),
    )


class Slopes(NamedTuple):
    """Gradients of mean and explained variance of ``f``, in the round of the closed form."""

    mean: Tensor  # shape: (*batch, q, d)
    explained: Tensor  # shape: (*batch, q, d)


def moments_and_slopes(form: ClosedForm, X: Tensor) -> tuple[Moments, Slopes]:
    """Return ``moments`` and their gradients at configurations ``X``, shape ``(*batch, q, d)``."""
    points = scaled(form, X)
    phi, psi = PROFILES[form.family].slope(distances(form, points))
    projected = phi @ form.solver.mT  # B phi
    rows = torch.cat([form.rows, torch.ones_like(form.alpha)], -1)  # sums come with the products

    def gradient(weights: Tensor) -> Tensor:
        through = (weights * psi) @ rows
        return torch.addcmul(through[..., :-1], through[..., -1:], points, value=-1) * form.unit

    known = Moments((phi @ form.alpha).squeeze(-1), projected.square().sum(-1))
    return known, Slopes(gradient(form.alpha.mT), 2 * gradient(projected @ form.solver))


def upper_bound_at(
    prior: Tensor, known: Moments, retained: Tensor | float, width: Tensor, floor: float
) -> Tensor:  # shape: (*batch, q)
    """Return ``mean + width std`` after waiting, from moments that were computed before.

    Args:
        prior: Prior variance ``s``.
        known: Moments in the round of the closed form.
        retained: Retention ``a`` since that round.
        width: Number of standard deviations to add.
        floor: Least variance.
    """
    variance = prior - retained * retained * known.explained
    return torch.addcmul(retained * known.mean, width, variance.clamp_min_(floor).sqrt_())


def upper_bound_and_gradient_at(
    known: Moments, slopes: Slopes, retained: Tensor, width: Tensor, prior: Tensor, floor: float
) -> tuple[Tensor, Tensor]:  # shapes: (r, q), (r, q, d)
    """Return ``upper_bound_at`` and its gradient in ``r`` rounds.

    Args:
        known: Moments in the round of the closed form.
        slopes: Their gradients.
        retained: Retention ``a`` since that round, shape ``(r, 1)``.
        width: Number of standard deviations to add, shape ``(r, 1)``.
        prior: Prior variance ``s``.
        floor: Least variance; a clamped variance has no gradient.
    """
    variance = prior - retained * retained * known.explained
    std = variance.clamp_min(floor).sqrt()
    rate = width * (-0.5 * retained * retained) / std * (variance > floor)
    gradient = retained.unsqueeze(-1) * slopes.mean + rate.unsqueeze(-1) * slopes.explained
    return torch.addcmul(retained * known.mean, width, std), gradient


def deviation(form: ClosedForm, projected: Tensor, squared: float, floor: float) -> Tensor:
    """Return the standard deviation at points of projections ``B phi``, ``(*batch, q, n)``.

    Args:
        form: Closed form of the posterior in one round.
        projected: The projections.
        squared: Square of the retention since that round.
        floor: Least variance.
    """
    length = torch.linalg.vector_norm(projected, dim=-1)
    variance = torch.addcmul(form.prior, length, length, value=-squared)
    return variance.clamp_min_(floor).sqrt_()


def unclamped(std: Tensor, floor: float) -> Tensor:
    """Return a ``deviation`` to divide its slopes by: infinite, so that there are none, if clamped."""
    return threshold(std, (1 + _ROUNDING) * floor**0.5, torch.inf)


def upper_bound_with_gradient(
    form: ClosedForm, retained: float, width: Tensor, floor: float, scale: float = 1.0
) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """Return the upper confidence bound ``mean + width std`` as a function with a gradient.

    Args:
        form: Closed form of the posterior in one round.
        retained: Retention ``a`` since that round.
        width: Number of standard deviations to add, shape ``()`` or ``(*batch, 1)``.
        floor: Least variance; a clamped variance has no gradient.
        scale: Factor of the bound; -1 makes it a loss.

    Returns:
        A function of ``*batch x q x d`` points that returns values ``*batch x q`` and gradients
        ``*batch x q x d``.
    """
    profile, squared = PROFILES[form.family], retained * retained
    alpha, width = (scale * retained) * form.alpha, scale * width
    steepness, unit = -squared * width, profile.factor * form.unit
    rows = torch.cat([form.rows, torch.ones_like(form.alpha)], -1)  # sums come with the products
    solver = torch.cat([form.solver, alpha.mT], -2)  # and so does the mean

    def value_and_gradient(X: Tensor) -> tuple[Tensor, Tensor]:
        points = scaled(form, X)
        phi, psi = profile.bare_slope(distances(form, points))
        products = phi @ solver.mT
        projected, mean = products[..., :-1], products[..., -1]  # B phi
        std = deviation(form, projected, squared, floor)
        value = torch.addcmul(mean, width, std)
        # d std = -a^2 v' dphi / std; the gradients of mean and std share one product with the rows.
        share = (steepness / unclamped(std, floor)).unsqueeze(-1)
        through = torch.addcmul(alpha.mT, share, projected @ form.solver).mul_(psi) @ rows
        gradient = torch.addcmul(through[..., :-1], through[..., -1:], points, value=-1)
        return value, gradient.mul_(unit)

    return value_and_gradient
