r"""Stationary covariances as plain functions of two point sets, differentiable once, in reverse.

``k(x, x') = outputscale * phi(r)``, ``r = |(x - x') / lengthscale|``. GPyTorch's kernel modules are
the public face; these are what the streaming belief evaluates dozens of times a decision, without
lazy operators in between. Tests hold the two together.

Convention: where two points coincide, the slope of ``phi`` is taken as zero, which it is for every family
but Matérn-1/2, whose kink has no derivative.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.device import read
from botorch_costly.numerics.radial import ARMS, PROFILES


class Stationary(NamedTuple):
    """A stationary covariance: its family and its parameters."""

    family: str  # a key of radial.PROFILES
    lengthscale: Tensor  # shape: (d,) or (1,)
    outputscale: Tensor  # prior variance, shape: ()


def covariance(kernel: Stationary, x1: Tensor, x2: Tensor) -> Tensor:
    """Return ``k(x1, x2)``.

    Args:
        kernel: The covariance.
        x1: Shape ``(*batch, n, d)``.
        x2: Shape ``(*batch, m, d)``.

    Returns:
        Shape ``(*batch, n, m)``.
    """
    if kernel.family == ARMS:  # the differences of thousands of arms would fill memory
        same = torch.cdist(x1, x2, p=0) == 0
        return kernel.outputscale * same.to(x1)
    # The fast way by inner products loses half the digits where points are close to each other.
    exact = "donot_use_mm_for_euclid_dist"
    profile = PROFILES[kernel.family]
    unit = profile.constant / kernel.lengthscale
    s = torch.cdist(x1 * unit, x2 * unit, compute_mode=exact)
    return kernel.outputscale * profile.phi(s)


def information_share(cov: Tensor) -> float:
    """Return the share that one query tells of what tells the points apart, from their covariance.

    With ``l_i`` the eigenvalues of the covariance of the points less their common average, it is
    ``sum l_i^2 / (sum l_i)^2``: one over the number of contrasts that such eigenvalues amount to. What
    all points have in common is left out, for it says nothing about which of them is best; at
    long lengthscales in many dimensions that is most of what a query tells.

    Example:
        >>> round(information_share(0.5 + 0.5 * torch.eye(5)), 4)  # four contrasts, whatever is common
        0.25
    """
    centred = cov - cov.mean(-1, keepdim=True)
    centred = centred - centred.mean(-2, keepdim=True)
    sums = centred.diagonal().sum(), cov.diagonal().sum(), centred.square().sum()
    total, prior, squares = map(float, read(*sums))
    # Only rounding is left of a single point, or of points that are known to be equal.
    return squares / total**2 if total > 1e-9 * prior else 0.0
