r"""The probability that a Gaussian vector is positive in every component, by expectation propagation.

    P(u > 0),    u = v + e,    v ~ N(mean, A A'),    e ~ N(0, width)    independent of all else.

Each factor ``P(u_i > 0 | v_i) = Phi(v_i / sqrt(width_i))`` is approximated by a *site*,

    exp(nu_i v_i - tau_i v_i^2 / 2)    up to a constant.

The posterior of ``v`` is then Gaussian with mean ``m`` and covariance ``C = (K^-1 + T)^-1``, where
``K = A A'`` and ``T = diag(tau)``; the diagonal of ``C`` is ``V``, whose elements may be 0. The *cavity*
is the distribution of ``v_i`` by the prior and all other sites:

    variance  c_i = V_i / (1 - tau_i V_i),    mean  (m_i - nu_i V_i) / (1 - tau_i V_i).

The sites that match the moments of the factors are

    tau = h / (1 - c h),    nu = tau mean_cavity + (r / s) / (1 - c h)

with ``s = sqrt(c + width)``, ``z = mean_cavity / s``, ``r = phi(z) / Phi(z)`` and
``h = r (r + z) / s^2``.

``width`` smooths the steps for numerical stability, and contains the variance of ``u`` that ``A`` omits.

References:
    - T. Minka. Expectation propagation for approximate Bayesian inference. UAI 2001.
    - J. Cunningham, P. Hennig, S. Lacoste-Julien. Gaussian probabilities and expectation propagation.
      2011.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.special import log_ndtr

from botorch_costly.numerics.improvement import mills_ratio

_LEAST = 1e-10  # least value of 1 - tau V and 1 - c h, which are in (0, 1]
_FAR = -1e6  # least z, so that logarithms of probabilities are finite
_EXCESS = 1.0  # by which log P_EP may exceed the least logarithm of the components' probabilities
_SURE = 30.0  # largest z for the ratio phi / Phi, which is 0 there


class Orthants(NamedTuple):
    """A batch of ``b`` problems with ``n`` components each."""

    factor: Tensor  # A, shape: (b, n, r)
    mean: Tensor  # shape: (b, n)
    width: Tensor  # > 0, shape: (b, n)

    def at(self, index: Tensor) -> "Orthants":
        """Return some of the problems."""
        return Orthants(self.factor[index], self.mean[index], self.width[index])


class Sites(NamedTuple):
    """Parameters of the Gaussian functions that approximate the factors."""

    tau: Tensor  # >= 0, shape: (b, n)
    nu: Tensor  # shape: (b, n)


class Belief(NamedTuple):
    """The posterior of ``v`` by the prior and the sites."""

    mean: Tensor  # shape: (b, n)
    half: Tensor  # H of C = H' H, shape: (b, r, n)
    root: Tensor  # diagonal of the Cholesky factor of I + A' T A, shape: (b, r)

    @property
    def log_det(self) -> Tensor:
        """The logarithms of the determinants of ``I + A' T A``, shape ``(b,)``."""
        return 2 * self.root.log().sum(-1)

    @property
    def variance(self) -> Tensor:
        """Variances, shape ``(b, n)``."""
        return self.half.square().sum(-2)


def posterior_of(orthants: Orthants, sites: Sites) -> Belief:
    """Return the posterior of ``v`` by the prior and the sites."""
    A, mean = orthants.factor, orthants.mean
    precision = (A * sites.tau.unsqueeze(-1)).mT @ A
    precision.diagonal(dim1=-2, dim2=-1).add_(1)
    upper, _ = torch.linalg.cholesky_ex(precision, upper=True)
    half = torch.linalg.solve_triangular(upper.mT, A.mT, upper=False)
    pull = (sites.nu - sites.tau * mean).unsqueeze(-1)
    shifted = mean + (half.mT @ (half @ pull)).squeeze(-1)
    return Belief(shifted, half, upper.diagonal(dim1=-2, dim2=-1))


class Cavity(NamedTuple):
    """The distribution of each ``v_i`` by the prior and all other sites, each field ``(b, n)``."""

    mean: Tensor
    variance: Tensor  # c
    s: Tensor  # sqrt(c + width)
    z: Tensor
    r: Tensor  # phi(z) / Phi(z)


def cavity_of(sites: Sites, mean: Tensor, variance: Tensor, width: Tensor) -> Cavity:
    """Return the cavities of sites and their posterior's means and variances."""
    share = (1 - sites.tau * variance).clamp_min(_LEAST)
    c, m = variance / share, (mean - sites.nu * variance) / share
    s = (c + width).sqrt()
    z = (m / s).clamp_min(_FAR)
    return Cavity(m, c, s, z, ratio_of(z))


def ratio_of(z: Tensor) -> Tensor:
    """Return ``phi(z) / Phi(z)``."""
    return 1 / mills_ratio(-z.clamp_max(_SURE))


def matching(sites: Sites, mean: Tensor, variance: Tensor, width: Tensor) -> Sites:
    """Return the sites that match the moments given the cavities of the current sites; elementwise."""
    m, c, s, z, r = cavity_of(sites, mean, variance, width)
    h = r * (r + z) / s.square()
    share = (1 - c * h).clamp_min(_LEAST)
    tau = (h / share).minimum(1 / width)  # rounding may exceed the curvature of the factor
    return Sites(tau, tau * m + r / (s * share))


def log_evidence(orthants: Orthants, sites: Sites, belief: Belief) -> Tensor:  # shape: (b,)
    """Return ``log P_EP``."""
    (tau, nu), mu, mean = sites, orthants.mean, belief.mean
    m, c, _, z, _ = cavity_of(sites, mean, belief.variance, orthants.width)
    inflated = 1 + tau * c
    # The integral of cavity times site, which normalizes the site.
    site = 0.5 * (2 * nu * m + c * nu.square() - tau * m.square()) / inflated - 0.5 * inflated.log()
    prior = 0.5 * ((nu - tau * mu) * (mean - mu) - tau * mu.square()) + nu * mu
    log_p = (log_ndtr(z) - site + prior).sum(-1) - 0.5 * belief.log_det
    # Where the iteration diverges, which needs contradictory components, log P_EP may be any number.
    sd = (orthants.factor.square().sum(-1) + orthants.width).sqrt()
    return log_p.minimum(log_ndtr((mu / sd).clamp_min(_FAR)).amin(-1) + _EXCESS)
