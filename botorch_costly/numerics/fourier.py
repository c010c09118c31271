r"""Samples of functions from Gaussian processes: random Fourier features and posterior weights.

A stationary kernel ``s phi(|x - x'| / l)`` is the mean of ``s cos(w.(x - x') / l)`` over frequencies
``w`` of its spectral density: normal for RBF; for Matérn multivariate t with ``2 nu`` degrees of freedom.
The features with ``M`` frequencies,

    F(x) = sqrt(s / M) [cos(w_1.x / l) .. cos(w_M.x / l), sin(w_1.x / l) .. sin(w_M.x / l)],

have the squared length ``s`` exactly. Weights given observations ``y = F a + noise`` are drawn by
Matheron's rule,

    a + F'(F F' + noise I)^{-1} (y - F a - e),

with ``a`` and ``e`` from the prior. They follow the posterior of Bayesian linear regression, and the cost
is cubic in the number of observations, not in that of the features.

References:
    - A. Rahimi, B. Recht. Random features for large-scale kernel machines. NeurIPS 2008.
    - J. T. Wilson et al. Efficiently sampling functions from Gaussian process posteriors. ICML 2020.
"""

import torch
from torch import Generator, Tensor

from botorch_costly.errors import InvalidArgumentError, check
from botorch_costly.numerics.cholesky import sure_root
from botorch_costly.numerics.radial import SMOOTHNESS

_FAMILIES = sorted([*SMOOTHNESS, "rbf"])


def frequencies(family: str, count: int, dim: int, generator: Generator) -> Tensor:
    """Draw frequencies of a kernel with lengthscale 1, ``count x dim``.

    Raises:
        InvalidArgumentError: If the spectral density of the family is not implemented.
    """
    check(family in _FAMILIES, "family", f"one of {_FAMILIES}", family, InvalidArgumentError)
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
    """Return the Fourier features ``F`` of points."""
    angle = (X / lengthscale) @ draws.mT.to(X)
    return (variance / len(draws)).sqrt() * torch.cat([angle.cos(), angle.sin()], -1)


def posterior_weights(
    features: Tensor,  # of the observations, 0 in padded rows, shape: (*batch, n, 2 M)
    values: Tensor,  # 0 in padded rows, shape: (*batch, n)
    noise: Tensor,  # shape: (*batch, 1)
    count: int,
    generator: Generator,
) -> Tensor:  # shape: (*batch, count, 2 M)
    """Draw ``count`` posterior weights for each problem of the batch."""
    batch, (n, width) = features.shape[:-2], features.shape[-2:]
    prior = _normal(features, (*batch, count, width), generator)
    error = _normal(features, (*batch, count, n), generator)
    error = error * noise.sqrt().unsqueeze(-1)
    residual = values.unsqueeze(-2) - prior @ features.mT - error
    gram = features @ features.mT + torch.diag_embed(noise.expand(*batch, n))
    solved = torch.cholesky_solve(residual.mT, sure_root(gram))
    return prior + solved.mT @ features


def _normal(like: Tensor, shape: tuple[int, ...], generator: Generator) -> Tensor:
    """Draw standard normals in float64, so that both precisions get the same draws."""
    drawn = torch.empty(shape, dtype=torch.float64, device=generator.device)
    return drawn.normal_(generator=generator).to(like)
