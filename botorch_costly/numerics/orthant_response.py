r"""How the posterior of an orthant problem responds to its sites.

At the solution the *tilted* distribution of ``v_i``, cavity times factor, has the posterior's mean and
variance. In units of the posterior, with ``d = (dm / sqrt V, dV / V)`` and natural parameters
``theta = (s, q)`` of the sites, where ``dnu = m dtau + s / sqrt V`` and ``dtau = -2 q / V``,

    posterior   d = K theta,    K = diag(R, 2 Q),    R the correlations,    Q = R^2 elementwise;
    tilted      d = S (K_ii^-1 d - theta),    S = [[1, k3], [k3, 2 + k4]] for each i,

with the standardized cumulants ``k3`` and ``k4`` of the tilted distributions. Both are equal after

    (I + W K) theta = S^-1 e,    W = S^-1 - diag(1, 1 / 2) for each i,

where ``e`` is the tilted moments minus the posterior's: a step of Newton's method. If a parameter changes
the posterior by ``d`` at fixed sites, then the sites follow, and the total change is ``(I + K W)^-1 d``.
Derivatives need its transpose, the matrix of Newton's method.

``W`` does not mix sites, so that ``2 q = rest + (k4 / k3 - k3) s + k3 R s``, where ``rest`` depends on
the right side alone: a system of ``n`` unknowns in place of ``2 n``.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.numerics.orthant import Belief, Orthants, Sites, cavity_of, ratio_of

_LEAST = 1e-10  # least share of a cavity's variance that remains after the factor
_EXPONENTIAL = -30.0  # z below which a tilted distribution is exponential
_SMALLEST = 1e-24  # least variance of a component that responds


class Tilted(NamedTuple):
    """Moments of cavity times factor, each field ``(b, n)``."""

    mean: Tensor
    variance: Tensor
    k3: Tensor
    k4: Tensor
    k5: Tensor
    ratio: Tensor  # k4 / k3, also where both are 0

    @property
    def determinant(self) -> Tensor:
        """The determinant of ``S``."""
        return 2 + self.k4 - self.k3.square()


class Standardized(NamedTuple):
    """The posterior in its own units, and the tilted distributions."""

    tilted: Tilted
    variance: Tensor  # shape: (b, n)
    unit: Tensor  # 1 / sqrt V, 0 where V is 0, shape: (b, n)
    R: Tensor  # correlations, shape: (b, n, n)
    Q: Tensor  # shape: (b, n, n)

    @property
    def w(self) -> tuple[Tensor, Tensor, Tensor]:
        """The elements ``11``, ``12`` and ``22`` of ``W``."""
        k3, k4, determinant = self.tilted.k3, self.tilted.k4, self.tilted.determinant
        square = k3.square()
        return square / determinant, -k3 / determinant, 0.5 * (square - k4) / determinant


def standardized(orthants: Orthants, sites: Sites, belief: Belief) -> Standardized:
    """Return the posterior in its own units, and the tilted distributions."""
    variance = belief.variance
    unit = torch.where(variance > _SMALLEST, variance, torch.inf).rsqrt()
    half = belief.half * unit.unsqueeze(-2)
    R = half.mT @ half
    tilted = tilted_of(sites, belief.mean, variance, orthants.width)
    return Standardized(tilted, variance, unit, R, R.square())


def tilted_of(sites: Sites, mean: Tensor, variance: Tensor, width: Tensor) -> Tilted:
    """Return the tilted distributions given the sites and their posterior; elementwise."""
    m, c, s, z, r = cavity_of(sites, mean, variance, width)
    share = c / s.square()
    after = c * (1 - share * r * (r + z)).clamp_min(_LEAST)
    tilted_mean = m + c / s * r
    z = z.clamp_min(_EXPONENTIAL)
    r = ratio_of(z)
    # The derivatives of log Phi are r, -r y, r p, r p2 and r p3; t = y', and dp and ddp are p' and p''.
    y = z + r
    ry, yy = r * y, y * y
    t, p, double = 1 - ry, yy + ry - 1, 2 * y + r
    dp = t * double - ry * y
    ddp = r * (yy - t) * double + t * (2 * t - 3 * ry) + ry * yy
    p2 = dp - y * p
    p3 = ddp - t * p - y * (dp + p2)
    square = share / (1 - share * ry).clamp_min(_LEAST)
    scale = square.sqrt()
    k3, ratio = r * p * square * scale, p2 / p * scale
    return Tilted(tilted_mean, after, k3, k3 * ratio, r * p3 * square * square * scale, ratio)


class Response(NamedTuple):
    """The system ``(I + W K) theta = right``, factorized."""

    posterior: Standardized
    e: Tensor  # k4 / k3 - k3, shape: (b, n)
    w12: Tensor  # shape: (b, n)
    lu: Tensor  # shape: (b, n, n)
    pivots: Tensor  # shape: (b, n)

    def solve(self, first: Tensor, second: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return ``s``, ``2 q`` and ``R s``."""
        rest = 2 * second - self.e * first
        right = first - self.w12 * times(self.posterior.Q, rest)
        s = torch.linalg.lu_solve(self.lu, self.pivots, right.unsqueeze(-1)).squeeze(-1)
        moved = times(self.posterior.R, s)
        return s, rest + self.e * s + self.posterior.tilted.k3 * moved, moved


def response_of(posterior: Standardized) -> Response:
    """Return the response of a posterior."""
    k3, R, Q = posterior.tilted.k3, posterior.R, posterior.Q
    e, (w11, w12, _) = posterior.tilted.ratio - k3, posterior.w
    system = (Q * k3.unsqueeze(-2)) @ R
    system.addcmul_(Q, e.unsqueeze(-2)).mul_(w12.unsqueeze(-1))
    system.addcmul_(R, w11.unsqueeze(-1)).diagonal(dim1=-2, dim2=-1).add_(1)
    lu, pivots, _ = torch.linalg.lu_factor_ex(system)
    return Response(posterior, e, w12, lu, pivots)


def times(matrix: Tensor, vector: Tensor) -> Tensor:
    """Return matrices ``(b, n, n)`` times vectors ``(b, n)``."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)
