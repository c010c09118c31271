r"""Stationary covariances as plain functions of two point sets, differentiable once in reverse mode.

``k(x, x') = outputscale * phi(r)``, ``r = |(x - x') / lengthscale|``. GPyTorch's kernel modules are the
public interface. The streaming GP evaluates these functions instead, dozens of times per decision, to
avoid the overhead of lazy operators. Tests check that both agree.

Convention: where two points coincide, the slope of ``phi`` is 0; for Matérn-1/2, which has a kink there,
this is a choice.
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
    if kernel.family == ARMS:  # broadcast differences of thousands of arms would fill the memory
        same = torch.cdist(x1, x2, p=0) == 0
        return kernel.outputscale * same.to(x1)
    # Distances by inner products would lose half the digits of close points.
    exact = "donot_use_mm_for_euclid_dist"
    profile = PROFILES[kernel.family]
    unit = profile.constant / kernel.lengthscale
    s = torch.cdist(x1 * unit, x2 * unit, compute_mode=exact)
    return kernel.outputscale * profile.phi(s)


def information_share(cov: Tensor) -> float:
    """Return the share of the information about contrasts of the points that one query gives.

    With ``l_i`` the eigenvalues of the covariance of the points minus their average, it is
    ``sum l_i^2 / (sum l_i)^2``, the inverse of the effective number of contrasts. The average is removed
    because it does not tell which point is best; for long lengthscales in many dimensions it is most of
    the information of a query.

    Example:
        >>> round(information_share(0.5 + 0.5 * torch.eye(5)), 4)  # four contrasts of five points
        0.25
    """
    centered = cov - cov.mean(-1, keepdim=True)
    centered = centered - centered.mean(-2, keepdim=True)
    sums = centered.diagonal().sum(), cov.diagonal().sum(), centered.square().sum()
    total, prior, squares = map(float, read(*sums))
    # For a single point, or points that are certainly equal, the total is a rounding error.
    return squares / total**2 if total > 1e-9 * prior else 0.0
