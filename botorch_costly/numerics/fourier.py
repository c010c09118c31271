r"""Functions drawn from Gaussian processes: random Fourier features, and weights given observations.

A stationary kernel ``s phi(|x - x'| / l)`` is the mean of ``s cos(w.(x - x') / l)`` over frequencies
``w`` of its spectral density: normal for RBF; for Matérn multivariate t with ``2 nu`` degrees of freedom.
With ``M`` of these,

    F(x) = sqrt(s / M) [cos(w_1.x / l) .. cos(w_M.x / l), sin(w_1.x / l) .. sin(w_M.x / l)],

whose squared length is ``s`` exactly, so that nothing has to be normalized. Weights given observations
``y = F a + noise`` are drawn by Matheron's rule,

    a + F'(F F' + noise I)^{-1} (y - F a - e),

with ``a`` and ``e`` from the prior: the distribution of Bayesian linear regression at the cost of the
observations alone.

References:
    - A. Rahimi, B. Recht. Random features for large-scale kernel machines. NeurIPS 2008.
    - J. T. Wilson et al. Efficiently sampling functions from Gaussian process posteriors. ICML 2020.
"""

import torch
from torch import Generator, Tensor

from botorch_costly.errors import InvalidArgumentError, check
from botorch_costly.numerics.cholesky import sure_root
from botorch_costly.numerics.radial import SMOOTHNESS

_KNOWN = sorted([*SMOOTHNESS, "rbf"])


def frequencies(family: str, count: int, dim: int, generator: Generator) -> Tensor:
    """Draw frequencies of a kernel with lengthscale 1, ``count x dim``.

    Raises:
        InvalidArgumentError: If the family has no spectral density here.
    """
    check(family in _KNOWN, "family", f"one of {_KNOWN}", family, InvalidArgumentError)
    like = torch.empty(0, dtype=torch.float64, device=generator.device)
    normal = like.new_empty(count, dim).normal_(generator=generator)
    if family == "rbf":
        return normal
    nu = SMOOTHNESS[family]
    chi = 2 * torch._standard_gamma(like.new_full((count, 1), nu), generator=generator)
    return normal * (2 * nu / chi).sqrt()


def fourier_features(
    X: Tensor,  # shape: (*batch, m, d)
    draws: Tensor,  # shape: (M, d)
    lengthscale: Tensor,  # shape: (*batch, 1, d)
    variance: Tensor,  # shape: (*batch, 1, 1)
) -> Tensor:  # shape: (*batch, m, 2 M)
    """Return the features of points."""
    angle = (X / lengthscale) @ draws.mT.to(X)
    return (variance / len(draws)).sqrt() * torch.cat([angle.cos(), angle.sin()], -1)


def posterior_weights(
    features: Tensor,  # of the observations, 0 where there is none, shape: (*batch, n, 2 M)
    values: Tensor,  # 0 where there is none, shape: (*batch, n)
    noise: Tensor,  # shape: (*batch, 1)
    count: int,
    generator: Generator,
) -> Tensor:  # shape: (*batch, count, 2 M)
    """Draw weights of functions given observations, as many of each of the batch."""
    batch, (n, wide) = features.shape[:-2], features.shape[-2:]
    prior = _normal(features, (*batch, count, wide), generator)
    error = _normal(features, (*batch, count, n), generator)
    error = error * noise.sqrt().unsqueeze(-1)
    apart = values.unsqueeze(-2) - prior @ features.mT - error
    gram = features @ features.mT + torch.diag_embed(noise.expand(*batch, n))
    solved = torch.cholesky_solve(apart.mT, sure_root(gram))
    return prior + solved.mT @ features


def _normal(like: Tensor, shape: tuple[int, ...], generator: Generator) -> Tensor:
    """Draw standard normals that are alike in both precisions."""
    drawn = torch.empty(shape, dtype=torch.float64, device=generator.device)
    return drawn.normal_(generator=generator).to(like)
