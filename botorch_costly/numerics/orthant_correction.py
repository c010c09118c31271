r"""The correction of an orthant's probability by third cumulants, and the derivatives of both.

Sites match two moments. The leading error comes from products of the standardized third cumulants of the
tilted distributions, with the posterior's correlations ``R``:

    log P - log P_EP  ~  sum_{i<k} k3_i k3_k R_ik^3 / 3!,

which makes errors two to four times smaller.

*Derivatives.* ``log P_EP`` is stationary in the sites. Its derivative by the mean is ``pull = nu - T m``,
that by ``K = A A'`` is ``(pull pull' - loss) / 2`` with ``loss = T - T C T``. The correction is not
stationary: it changes with the posterior, which changes at fixed sites by

    dm = E dmu + E dK pull,    dC = E dK E',    E = I - C T,

and with the sites, which follow the posterior (``numerics.orthant_response``).

References:
    M. Opper, U. Paquet, O. Winther. Perturbative corrections for approximate inference in Gaussian latent
    variable models. JMLR 14, 2013, section 4.
"""

import math
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.numerics.orthant import Orthants, Sites, log_evidence, posterior_of
from botorch_costly.numerics.orthant_response import (
    Standardized,
    response_of,
    standardized,
    times,
)


class Derivatives(NamedTuple):
    """Derivatives of ``log P``.

    By the mean ``pull + shift``, and by ``K``
    ``(pull pull' + shift pull' + pull shift') / 2 + diag(unit) rest diag(unit)``.
    """

    pull: Tensor  # shape: (b, n)
    shift: Tensor  # shape: (b, n)
    unit: Tensor  # shape: (b, n)
    rest: Tensor  # shape: (b, n, n)


class Solution:
    """Probabilities of orthants, from fitted sites."""

    def __init__(self, orthants: Orthants, sites: Sites, *, corrected: bool = True) -> None:
        self.orthants, self.sites, self.corrected = orthants, sites, corrected
        self.belief = posterior_of(orthants, sites)

    @property
    def pull(self) -> Tensor:
        """``pull``, by which the posterior mean is ``mean + K pull``, shape ``(b, n)``."""
        return self.sites.nu - self.sites.tau * self.belief.mean

    @property
    def loss(self) -> Tensor:
        """``loss``, by which the posterior covariance is ``K - K loss K``, shape ``(b, n, n)``."""
        half = self.belief.half * self.sites.tau.unsqueeze(-2)
        loss = (half.mT @ half).neg_()
        loss.diagonal(dim1=-2, dim2=-1).add_(self.sites.tau)
        return loss

    @cached_property
    def _posterior(self) -> Standardized:
        return standardized(self.orthants, self.sites, self.belief)

    @cached_property
    def _by_cumulant(self) -> Tensor:  # shape: (b, n)
        """The derivative of the correction by ``k3``."""
        k3 = self._posterior.tilted.k3
        cubes = times(self._posterior.R * self._posterior.Q, k3)
        return (cubes - k3 * (self._posterior.unit > 0)) / math.factorial(3)

    def log_probability(self) -> Tensor:  # shape: (b,)
        """Return ``log P``."""
        log_p = log_evidence(self.orthants, self.sites, self.belief)
        if not self.corrected:
            return log_p
        return log_p + 0.5 * (self._posterior.tilted.k3 * self._by_cumulant).sum(-1)

    def derivatives(self) -> Derivatives:
        """Return the derivatives of ``log P``."""
        pull = self.pull
        if not self.corrected:
            return Derivatives(
                pull, torch.zeros_like(pull), torch.ones_like(pull), -0.5 * self.loss
            )
        return Derivatives(pull, *self._of_correction())

    def _of_correction(self) -> tuple[Tensor, Tensor, Tensor]:
        """Return ``shift``, ``unit`` and ``rest``."""
        posterior, tau = self._posterior, self.sites.tau * self._posterior.variance
        R, k3, (_, w12, w22) = posterior.R, posterior.tilted.k3, posterior.w
        by_first, by_second = self._by_moments()
        by_C = posterior.Q * (0.25 * k3).unsqueeze(-1)
        by_C.mul_(k3.unsqueeze(-2)).diagonal(dim1=-2, dim2=-1).zero_()
        crossed = by_C @ R
        by_q = 2 * (crossed * R).sum(-2)  # sites change covariances by dC = -C dT C
        first, twice, moved = response_of(posterior).solve(
            by_first - w12 * by_q, by_second - w22 * by_q
        )
        shift = posterior.unit * (first - tau * moved)
        # All but the outer products is E' N with N = (by_C + diag(second)) E - T / 2.
        second = 0.5 * twice
        crossed.addcmul_(R, second.unsqueeze(-1))
        N = by_C.addcmul_(crossed, tau.unsqueeze(-2), value=-1)
        N.diagonal(dim1=-2, dim2=-1).add_(second - 0.5 * tau)
        return shift, posterior.unit, N.addcmul_(R @ N, tau.unsqueeze(-1), value=-1)

    def _by_moments(self) -> tuple[Tensor, Tensor]:
        """Return the derivatives by ``dm / sqrt V`` and ``dV / V`` through ``k3`` and the units.

        The cumulants follow the moments of the tilted distributions: ``dk3 = (k4, k5 + 6 k3) S^-1 d``.
        """
        _, _, k3, k4, k5, _ = self._posterior.tilted
        determinant, fifth = self._posterior.tilted.determinant, k5 + 6 * k3
        by_first = (k4 * (2 + k4) - k3 * fifth) / determinant
        by_second = (fifth - k3 * k4) / determinant - 3 * k3
        return self._by_cumulant * by_first, self._by_cumulant * by_second
