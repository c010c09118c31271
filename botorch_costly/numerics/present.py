r"""A belief seen from one round: its moments at any configuration, with slopes in closed form.

The rows of a streaming belief differ from the present in configuration and in age. Seen from one
round the ages are numbers, and move into the factor once for all questions of the round: with
``phi_i = phi(|u - u_i|)``, ``u = x / l``, prior variance ``s`` and retentions ``a_i``,

    k_i = s a_i phi_i,    mean m = phi' alpha,    alpha = s a o (L^-T W)
                          explained q = |B phi|^2,    B = L^-1 diag(s a),    variance = s - q.

A round of waiting multiplies every ``a_i`` by the same ``a``, so that it multiplies ``m`` by ``a`` and
``q`` by ``a^2``: nothing else changes while nobody looks.

With ``psi(r) = -phi'(r) / r``, which is finite at 0 for all families but Matérn-1/2, the slopes are

    dm/dx = -sum_i alpha_i psi_i (u - u_i) / l,
    dq/dx = -2 sum_i v_i psi_i (u - u_i) / l,    v = B' B phi,

two products with matrices that are there anyway: value and gradient cost five matrix products and
no graph. Distances come from inner products, ``|u|^2 + |u_i|^2 - 2 u'u_i``. What that rounds off
``r^2`` reaches ``phi`` and ``psi`` at first order in ``r^2`` only; Matérn-1/2, which has a kink, takes
differences.

Notation: ``n`` rows, ``q`` questions, ``d`` columns.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.numerics.stationary import BENDS, FAMILIES, Stationary


class Present(NamedTuple):
    """A belief about ``f`` in one round, in units of its prior."""

    kernel: Stationary
    rows: Tensor  # u_i less the middle of the rows, shape: (*batch, n, d)
    middle: Tensor  # shape: (*batch, 1, d)
    weights: Tensor  # alpha, shape: (*batch, n, 1)
    solver: Tensor  # B, shape: (*batch, n, n)


class Moments(NamedTuple):
    """Mean and explained variance at some configurations."""

    mean: Tensor  # m, shape: (*batch, q)
    explained: Tensor  # shape: (*batch, q)


def present(
    kernel: Stationary,
    configurations: Tensor,  # shape: (*batch, n, d)
    retentions: Tensor,  # a_i, shape: (*batch, n)
    inverse: Tensor,  # L^-1, shape: (*batch, n, n)
    whitened: Tensor,  # W = L^-1 y, shape: (*batch, n, 1)
) -> Present:
    """Return a belief as seen from the round that the retentions count to."""
    rows = configurations / kernel.lengthscale
    middle = rows.mean(-2, keepdim=True)  # near to the questions, so that squares stay small
    priors = (kernel.outputscale * retentions).unsqueeze(-1)  # s a_i
    return Present(
        kernel=kernel,
        rows=rows - middle,
        middle=middle,
        weights=priors * (inverse.mT @ whitened),
        solver=inverse * priors.mT,
    )


def moments(belief: Present, X: Tensor) -> Moments:
    """Return the moments at configurations ``X``, shape ``(*batch, q, d)``."""
    phi = FAMILIES[belief.kernel.family](distances(belief, scaled(belief, X)))
    return Moments(
        mean=(phi @ belief.weights).squeeze(-1),
        explained=(phi @ belief.solver.mT).square().sum(-1),
    )


def bound_at(
    belief: Present, found: Moments, keep: float, width: Tensor, floor: float
) -> Tensor:  # shape: (*batch, q)
    """Return ``mean + width std`` where the moments are known, after waiting for ``keep``."""
    variance = torch.add(belief.kernel.outputscale, found.explained, alpha=-(keep * keep))
    return torch.addcmul(keep * found.mean, width, variance.clamp_min(floor).sqrt())


def upper_bound(
    belief: Present,
    X: Tensor,  # shape: (*batch, q, d)
    keep: float,
    width: Tensor,  # shape: (*batch, 1) or ()
    floor: float,
) -> tuple[Tensor, Tensor]:  # shapes: (*batch, q), (*batch, q, d)
    """Return ``mean + width std`` and its gradient, after waiting for ``keep``.

    Args:
        belief: As seen from some round.
        X: Configurations.
        keep: Retention ``a`` since then.
        width: Standard deviations to add, the root of beta.
        floor: Least variance, below which it counts as this and has no slope.
    """
    points = scaled(belief, X)
    phi, psi, _ = BENDS[belief.kernel.family](distances(belief, points))
    projected = phi @ belief.solver.mT
    raw = torch.add(belief.kernel.outputscale, projected.square().sum(-1), alpha=-(keep * keep))
    std = raw.clamp_min(floor).sqrt()
    value = torch.addcmul(keep * (phi @ belief.weights).squeeze(-1), width, std)
    # d std = -a^2 dq / (2 std); both slopes are drawn through psi in one go.
    share = (width * (raw >= floor) * (keep * keep) / std).unsqueeze(-1)
    through = psi * torch.addcmul(keep * belief.weights.mT, share, projected @ belief.solver, value=-1)
    return value, _pull(belief, points, through)


def scaled(belief: Present, X: Tensor) -> Tensor:
    """Return configurations in units of the lengthscale, as the rows are."""
    return X / belief.kernel.lengthscale - belief.middle


def distances(belief: Present, points: Tensor) -> Tensor:  # shape: (*batch, q, n)
    """Return the distances of scaled configurations (``*batch x q x d``) to the rows."""
    if belief.kernel.family == "matern12":
        return torch.cdist(points, belief.rows, compute_mode="donot_use_mm_for_euclid_dist")
    squares = points.square().sum(-1, keepdim=True) + belief.rows.square().sum(-1).unsqueeze(-2)
    return torch.sub(squares, points @ belief.rows.mT, alpha=2).clamp_min_(0).sqrt_()


def _pull(belief: Present, points: Tensor, through: Tensor) -> Tensor:
    """Return ``-sum_i g_i (u - u_i) / l`` for weights ``g`` of shape ``(*batch, q, n)``."""
    back = through @ belief.rows - through.sum(-1, keepdim=True) * points
    return back / belief.kernel.lengthscale
