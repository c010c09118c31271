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

*Derivatives.* ``log P_EP`` is stationary in the sites. Its derivative by the mean is ``pull = nu - T m``,
that by ``K`` is ``(pull pull' - loss) / 2`` with ``loss = T - T C T``. The correction ``R`` is not
stationary; because the sites are a fixed point ``x = F(x)``, its derivative by a parameter ``theta`` is

    dR = R_theta + lambda' F_theta    where    (I - F_x') lambda = R_x.

*Correction.* Sites match two moments. The leading error comes from products of third cumulants:

    log P - log P_EP  ~  sum_{i<k} k_i k_k (C_ik / (V_i V_k))^3 / 3!

with the third cumulants ``k_i = r''(z_i) (c_i / s_i)^3`` of the tilted distributions. The correction
makes errors two to four times smaller.

References:
    - T. Minka. Expectation propagation for approximate Bayesian inference. UAI 2001.
    - J. Cunningham, P. Hennig, S. Lacoste-Julien. Gaussian probabilities and expectation propagation.
      2011.
    - M. Opper, U. Paquet, O. Winther. Perturbative corrections for approximate inference in Gaussian
      latent variable models. JMLR 14, 2013, section 4.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor
from torch.special import log_ndtr

from botorch_costly.numerics.anderson import fixed_points
from botorch_costly.numerics.improvement import mills_ratio

_TOLERANCE = 1e-5  # of a site, relative to 1 + its size
_LEAST = 1e-10  # least value of 1 - tau V and 1 - c h, which are in (0, 1]
_FAR = -1e6  # least z, so that logarithms of probabilities are finite
_SURE = 30.0  # largest z for the ratio phi / Phi, which is 0 there


class Orthants(NamedTuple):
    """A batch of ``b`` problems with ``n`` components each."""

    factor: Tensor  # A, shape: (b, n, r)
    mean: Tensor  # shape: (b, n)
    width: Tensor  # > 0, shape: (b, n)


class Sites(NamedTuple):
    """Parameters of the Gaussian functions that approximate the factors."""

    tau: Tensor  # >= 0, shape: (b, n)
    nu: Tensor  # shape: (b, n)


class Belief(NamedTuple):
    """The posterior of ``v`` by the prior and the sites."""

    mean: Tensor  # shape: (b, n)
    half: Tensor  # H of C = H' H, shape: (b, r, n)
    log_det: Tensor  # log determinant of I + A' T A, shape: (b,)

    @property
    def variance(self) -> Tensor:
        """Variances, shape ``(b, n)``."""
        return self.half.square().sum(-2)

    @property
    def covariance(self) -> Tensor:
        """Covariances, shape ``(b, n, n)``."""
        return self.half.mT @ self.half


def fitted_sites(orthants: Orthants) -> Sites:
    """Return the sites that match the moments of all factors."""
    n = orthants.mean.shape[-1]

    def image(index: Tensor, x: Tensor) -> Tensor:
        active = orthants
        if len(index) < len(orthants.mean):
            active = Orthants(*(tensor[index] for tensor in orthants))
        sites = Sites(x[:, :n], x[:, n:])
        belief = posterior_of(active, sites)
        return torch.cat(matching(sites, belief.mean, belief.variance, active.width), -1)

    start = torch.zeros_like(orthants.mean).repeat(1, 2)
    bound = torch.full_like(start[0], -torch.inf)
    bound[:n] = 0
    point = fixed_points(image, start, bound=bound, tolerance=_TOLERANCE).point
    return Sites(point[:, :n], point[:, n:])


def posterior_of(orthants: Orthants, sites: Sites) -> Belief:
    """Return the posterior of ``v`` by the prior and the sites."""
    A, mean = orthants.factor, orthants.mean
    precision = (A * sites.tau.unsqueeze(-1)).mT @ A
    precision.diagonal(dim1=-2, dim2=-1).add_(1)
    root, _ = torch.linalg.cholesky_ex(precision)
    half = torch.linalg.solve_triangular(root, A.mT, upper=False)
    pull = (sites.nu - sites.tau * mean).unsqueeze(-1)
    log_det = 2 * root.diagonal(dim1=-2, dim2=-1).log().sum(-1)
    return Belief(mean + (half.mT @ (half @ pull)).squeeze(-1), half, log_det)


class _Cavity(NamedTuple):
    mean: Tensor
    variance: Tensor
    s: Tensor  # sqrt(c + width)
    z: Tensor
    r: Tensor  # phi(z) / Phi(z)


def _cavity(sites: Sites, mean: Tensor, variance: Tensor, width: Tensor) -> _Cavity:
    share = (1 - sites.tau * variance).clamp_min(_LEAST)
    c, m = variance / share, (mean - sites.nu * variance) / share
    s = (c + width).sqrt()
    z = (m / s).clamp_min(_FAR)
    return _Cavity(m, c, s, z, 1 / mills_ratio(-z.clamp_max(_SURE)))


def matching(sites: Sites, mean: Tensor, variance: Tensor, width: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sites that match the moments given the cavities of the current sites; elementwise."""
    m, c, s, z, r = _cavity(sites, mean, variance, width)
    h = r * (r + z) / s.square()
    share = (1 - c * h).clamp_min(_LEAST)
    tau = h / share
    return tau, tau * m + r / (s * share)


def log_evidence(orthants: Orthants, sites: Sites, belief: Belief) -> Tensor:  # shape: (b,)
    """Return ``log P_EP``."""
    (tau, nu), mu, mean = sites, orthants.mean, belief.mean
    m, c, _, z, _ = _cavity(sites, mean, belief.variance, orthants.width)
    inflated = 1 + tau * c
    # The integral of cavity times site, which normalizes the site.
    site = 0.5 * (2 * nu * m + c * nu.square() - tau * m.square()) / inflated - 0.5 * inflated.log()
    prior = 0.5 * ((nu - tau * mu) * (mean - mu) - tau * mu.square()) + nu * mu
    return (log_ndtr(z) - site + prior).sum(-1) - 0.5 * belief.log_det


def third_order(
    sites: Sites, mean: Tensor, covariance: Tensor, width: Tensor
) -> Tensor:  # shape: (b,)
    """Return the correction ``R`` of ``log P_EP`` by third cumulants."""
    variance = covariance.diagonal(dim1=-2, dim2=-1)
    _, c, s, z, r = _cavity(sites, mean, variance, width)
    third = r * ((z + r) * (z + 2 * r) - 1)  # r''
    inflation = 1 + sites.tau * c  # c / V, which is 1 where V is 0
    k = third * (inflation / s).pow(3)
    pairs = torch.einsum("bi,bik,bk->b", k, covariance.pow(3), k)
    return (pairs - (k.square() * variance.pow(3)).sum(-1)) / (2 * math.factorial(3))


def log_probability(
    orthants: Orthants, sites: Sites, belief: Belief, *, corrected: bool = True
) -> Tensor:  # shape: (b,)
    """Return ``log P`` from fitted sites and their posterior."""
    log_p = log_evidence(orthants, sites, belief)
    if not corrected:
        return log_p
    return log_p + third_order(sites, belief.mean, belief.covariance, orthants.width)


def pull_of(sites: Sites, belief: Belief) -> Tensor:  # shape: (b, n)
    """Return the ``pull`` by which the posterior mean is ``mean + K pull``."""
    return sites.nu - sites.tau * belief.mean


def loss_of(sites: Sites, covariance: Tensor) -> Tensor:  # shape: (b, n, n)
    """Return the ``loss`` by which the posterior covariance is ``K - K loss K``."""
    tau = sites.tau
    return torch.diag_embed(tau) - tau.unsqueeze(-1) * covariance * tau.unsqueeze(-2)


def derivatives(
    orthants: Orthants, sites: Sites, *, corrected: bool = True
) -> tuple[Tensor, Tensor]:  # shapes: (b, n), (b, n, n)
    """Return the derivatives of ``log P`` by the mean and by ``K``."""
    belief = posterior_of(orthants, sites)
    pull, covariance = pull_of(sites, belief), belief.covariance
    outer = pull.unsqueeze(-1) * pull.unsqueeze(-2)
    by_mean, by_cov = pull, 0.5 * (outer - loss_of(sites, covariance))
    if not corrected:
        return by_mean, by_cov
    correction = _derivatives_of_correction(sites, belief.mean, covariance, pull, orthants.width)
    return by_mean + correction[0], by_cov + correction[1]


class _Elementwise(NamedTuple):
    """Derivatives of ``tau`` or ``nu`` of ``matching`` by its arguments, each ``(b, n)``."""

    tau: Tensor
    nu: Tensor
    mean: Tensor
    variance: Tensor


def _derivatives_of_correction(
    sites: Sites,
    mean: Tensor,  # shape: (b, n)
    C: Tensor,  # shape: (b, n, n)
    pull: Tensor,  # shape: (b, n)
    width: Tensor,  # shape: (b, n)
) -> tuple[Tensor, Tensor]:
    """Return the total derivatives of the correction by the mean and by ``K``, through the sites."""
    tau = sites.tau
    with torch.enable_grad():
        leaves = [tensor.detach().requires_grad_(True) for tensor in (*sites, mean, C)]
        total = third_order(Sites(leaves[0], leaves[1]), leaves[2], leaves[3], width).sum()
        r_tau, r_nu, r_mean, r_C = torch.autograd.grad(total, leaves)
        leaves[3] = C.diagonal(dim1=-2, dim2=-1).detach().requires_grad_(True)
        new_tau, new_nu = matching(Sites(leaves[0], leaves[1]), leaves[2], leaves[3], width)
        of_tau = _Elementwise(*torch.autograd.grad(new_tau.sum(), leaves, retain_graph=True))
        of_nu = _Elementwise(*torch.autograd.grad(new_nu.sum(), leaves))
    # The posterior changes with the sites: dC = -C dT C, dm = C (dnu - m dtau).
    moved = (C @ r_mean.unsqueeze(-1)).squeeze(-1)
    by_tau = r_tau - (C @ r_C @ C).diagonal(dim1=-2, dim2=-1) - mean * moved
    right = torch.cat([by_tau, r_nu + moved], -1).unsqueeze(-1)
    system = -_transposed_jacobian(mean, C, of_tau, of_nu)
    system.diagonal(dim1=-2, dim2=-1).add_(1)
    adjoint, _ = torch.linalg.solve_ex(system, right)
    for_tau, for_nu = adjoint.squeeze(-1).chunk(2, -1)
    bar_mean = r_mean + for_tau * of_tau.mean + for_nu * of_nu.mean
    bar_C = r_C + torch.diag_embed(for_tau * of_tau.variance + for_nu * of_nu.variance)
    # With E = I - C T:  dm = E dmu + E dK pull,  dC = E dK E'.
    by_mean = bar_mean - tau * (C @ bar_mean.unsqueeze(-1)).squeeze(-1)
    left = bar_C - tau.unsqueeze(-1) * (C @ bar_C)
    by_cov = left - (left @ C) * tau.unsqueeze(-2)
    outer = by_mean.unsqueeze(-1) * pull.unsqueeze(-2)
    return by_mean, by_cov + 0.5 * (outer + outer.mT)


def _transposed_jacobian(
    mean: Tensor, C: Tensor, of_tau: _Elementwise, of_nu: _Elementwise
) -> Tensor:  # shape: (b, 2n, 2n)
    """Return the transposed Jacobian ``F_x'`` of the map from sites to matching sites."""
    squared, scaled = C.square(), mean.unsqueeze(-1) * C
    columns = []
    for partial in (of_tau, of_nu):
        by_mean, by_variance = partial.mean.unsqueeze(-2), partial.variance.unsqueeze(-2)
        by_tau = torch.diag_embed(partial.tau) - squared * by_variance - scaled * by_mean
        by_nu = torch.diag_embed(partial.nu) + C * by_mean
        columns.append(torch.cat([by_tau, by_nu], -2))
    return torch.cat(columns, -1)
