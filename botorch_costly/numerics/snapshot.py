r"""A belief seen from one round: its moments at any configuration, with slopes in closed form.

The rows of a streaming belief differ from the present in configuration and in age. Seen from one
round the ages are numbers, and move into the factor once for all questions of the round: with
``phi_i = phi(|u - u_i|)``, ``u = c x / l``, prior variance ``s`` and retentions ``a_i``,

    k_i = s a_i phi_i,    mean m = phi' alpha,    alpha = s a o (L^-T W)
                          explained q = |B phi|^2,    B = L^-1 diag(s a),    variance = s - q.

A round of waiting multiplies every ``a_i`` by the same ``a``, so that it multiplies ``m`` by ``a`` and
``q`` by ``a^2``: nothing else changes while nobody queries.

With ``psi = -phi' / |u - u_i|``, which is finite at 0 for all families but Matérn-1/2, the slopes are

    dm/dx = -(c / l) sum_i alpha_i psi_i (u - u_i),
    dq/dx = -(c / l) 2 sum_i v_i psi_i (u - u_i),    v = B' B phi,

two products with matrices that are there anyway: value and gradient cost five matrix products and
no graph. Distances come from inner products, ``|u|^2 + |u_i|^2 - 2 u'u_i``. What that rounds off a
squared distance reaches ``phi`` and ``psi`` at first order only; Matérn-1/2, which has a kink, takes
differences.

Notation: ``n`` rows, ``q`` questions, ``d`` columns.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.numerics.radial import SHAPES
from botorch_costly.numerics.stationary import ARMS, Stationary


class Snapshot(NamedTuple):
    """A belief about ``f`` in one round, in units of its prior."""

    family: str
    prior: Tensor  # s, shape: () or (*batch, 1)
    unit: Tensor  # c / l, shape: (d,) or (1,)
    middle: Tensor  # of the scaled rows, shape: (*batch, 1, d)
    rows: Tensor  # u_i less the middle, shape: (*batch, n, d)
    squares: Tensor  # of the rows, shape: (*batch, 1, n)
    weights: Tensor  # alpha, shape: (*batch, n, 1)
    solver: Tensor  # B, shape: (*batch, n, n)

    def to(self, dtype: torch.dtype) -> "Snapshot":
        """Return it in another precision."""
        return Snapshot(self.family, *(part.to(dtype) for part in self[1:]))


class Moments(NamedTuple):
    """Mean and explained variance at some configurations."""

    mean: Tensor  # m, shape: (*batch, q)
    explained: Tensor  # q, shape: (*batch, q)


def snapshot(
    kernel: Stationary,
    configurations: Tensor,  # shape: (*batch, n, d)
    retentions: Tensor,  # a_i, shape: (*batch, n)
    inverse: Tensor,  # L^-1, shape: (*batch, n, n)
    whitened: Tensor,  # W = L^-1 y, shape: (*batch, n, 1)
) -> Snapshot:
    """Return a belief as seen from the round that the retentions count to."""
    unit = SHAPES[kernel.family].constant / kernel.lengthscale
    rows = configurations * unit
    middle = rows.mean(-2, keepdim=True)  # near to the questions, so that squares stay small
    rows = rows - middle
    priors = (kernel.outputscale * retentions).unsqueeze(-1)  # s a_i
    return Snapshot(
        family=kernel.family,
        prior=kernel.outputscale,
        unit=unit,
        middle=middle,
        rows=rows,
        squares=rows.square().sum(-1).unsqueeze(-2),
        weights=priors * (inverse.mT @ whitened),
        solver=inverse * priors.mT,
    )


def scaled(belief: Snapshot, X: Tensor) -> Tensor:
    """Return configurations ``X`` (``*batch x q x d``) in the units of the rows."""
    return (X * belief.unit).sub_(belief.middle)  # to the last bit as the rows were


def distances(belief: Snapshot, points: Tensor) -> Tensor:  # shape: (*batch, q, n)
    """Return the distances of scaled configurations (``*batch x q x d``) to the rows."""
    if belief.family == ARMS:
        return torch.cdist(points, belief.rows, p=0)
    if belief.family == "matern12":
        return torch.cdist(points, belief.rows, compute_mode="donot_use_mm_for_euclid_dist")
    apart = torch.sub(belief.squares, points @ belief.rows.mT, alpha=2)
    return apart.add_(points.square().sum(-1, keepdim=True)).clamp_min_(0).sqrt_()


def moments(belief: Snapshot, X: Tensor) -> Moments:
    """Return the moments at configurations ``X``, shape ``(*batch, q, d)``."""
    phi, _ = SHAPES[belief.family].slope(distances(belief, scaled(belief, X)))
    return Moments(
        mean=(phi @ belief.weights).squeeze(-1),
        explained=(phi @ belief.solver.mT).square_().sum(-1),
    )


def bound_at(
    prior: Tensor, found: Moments, keep: Tensor | float, width: Tensor, floor: float
) -> Tensor:  # shape: (*batch, q)
    """Return ``mean + width std`` where the moments are known, after waiting for ``keep``."""
    variance = prior - keep * keep * found.explained
    return torch.addcmul(keep * found.mean, width, variance.clamp_min_(floor).sqrt_())


def upper_bound(
    belief: Snapshot, keep: float, width: Tensor, floor: float, scale: float = 1.0
) -> Callable[[Tensor], tuple[Tensor, Tensor]]:
    """Return the upper confidence bound ``mean + width std`` as a function with a gradient.

    Args:
        belief: As seen from some round.
        keep: Retention ``a`` since then.
        width: Standard deviations to add, shape ``()`` or ``(*batch, 1)``.
        floor: Least variance, below which it counts as this and has no slope.
        scale: Multiplies the bound; -1 makes it a loss.

    Returns:
        From configurations ``*batch x q x d`` to values ``*batch x q`` and gradients ``*batch x q x d``.
    """
    slope, lowest = SHAPES[belief.family].slope, torch.full_like(belief.prior, floor)
    weights, width = (scale * keep) * belief.weights, scale * width
    steepness = -(keep * keep) * width

    def value_and_gradient(X: Tensor) -> tuple[Tensor, Tensor]:
        points = scaled(belief, X)
        phi, psi = slope(distances(belief, points))
        projected = phi @ belief.solver.mT  # B phi
        explained = projected.square().sum(-1)
        variance = torch.add(belief.prior, explained, alpha=-(keep * keep))
        std = torch.maximum(variance, lowest).sqrt_()
        value = torch.addcmul((phi @ weights).squeeze(-1), width, std)
        # d std = -a^2 v' dphi / std; both slopes are drawn through psi in one go.
        share = (steepness / std).mul_(variance > lowest).unsqueeze(-1)
        through = torch.addcmul(weights.mT, share, projected @ belief.solver).mul_(psi)
        pull = torch.addcmul(through @ belief.rows, through.sum(-1, True), points, value=-1)
        return value, pull.mul_(belief.unit)

    return value_and_gradient
