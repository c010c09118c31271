r"""Gaussian values in unknown units, ``y = a + s z`` with ``z`` Gaussian, on a grid of scales.

    a ~ N(offset, offset_std^2),    log s ~ N(log_scale, log_scale_std^2)

The offset is integrated out: given ``s``, ``(y - offset) / s ~ N(mean, K + (offset_std / s)^2 11')``. The
scale is summed over a grid.

*Gradients.* Let ``B = [y - offset, mean, 1]``, ``A = K^{-1} B`` and ``G = B'A``. Then only a few scalars
depend on ``s``: with ``c = [1/s, -1, -w h]``, ``v = (offset_std / s)^2``, ``g = 1'K^{-1}1``,
``w = v / (1 + v g)`` and ``h = 1'K^{-1}(B0 / s - B1)``, by the Sherman-Morrison formula,

    alpha = A c,    (K + v 11')^{-1} = K^{-1} - w A_1 A_1',    A_1 = K^{-1} 1,

and with ``p`` the posterior weights of the scales, the log evidence has the gradients

    d / d mean = A sum p c,    d / d K = (A [sum p (cc' + w e_3 e_3')] A' - K^{-1}) / 2.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.numerics.cholesky import squared_norm_and_log_det, sure_root

_WIDTH, _POINTS = 3.0, 13  # half width of the grid in standard deviations, number of points


class Units(NamedTuple):
    """Prior of offset and scale."""

    offset: float
    offset_std: float
    log_scale: float
    log_scale_std: float


class Scaled(NamedTuple):
    """Log evidence of values, and the posterior at the most probable scale."""

    log_evidence: Tensor  # of the values, summed over all scales, shape: ()
    scale: Tensor  # the most probable scale, shape: ()
    offset_variance: Tensor  # in units of that scale, shape: ()
    residual: Tensor  # (values - offset) / scale - mean, shape: (n,)
    root: Tensor  # L of K + offset_variance 11' = L L', shape: (n, n)


class Sloped(NamedTuple):
    """The log evidence and its gradients."""

    log_evidence: Tensor  # -inf where K is singular, with all gradients 0, shape: ()
    by_mean: Tensor  # shape: (n,)
    by_cov: Tensor  # with all n^2 entries as independent variables, symmetric, shape: (n, n)


def evidence_and_slopes(values: Tensor, mean: Tensor, cov: Tensor, units: Units) -> Sloped:
    """Return the log evidence of ``most_probable`` and its gradients, with one factorization."""
    prior, scale = _grid(values, units)
    root, info = torch.linalg.cholesky_ex(cov)
    if bool(info > 0):
        nothing = torch.zeros_like(cov)
        return Sloped(nothing.new_tensor(-torch.inf), nothing[0], nothing)
    inverse = torch.cholesky_inverse(root)
    columns = torch.stack([values - units.offset, mean, torch.ones_like(mean)], -1)  # B
    solved = inverse @ columns  # A
    gram = columns.mT @ solved
    variance = (units.offset_std / scale).square()
    w = variance / (1 + variance * gram[2, 2])
    pairs = torch.stack([1 / scale, -torch.ones_like(scale)], -1)
    h = pairs @ gram[:2, 2]
    c = torch.cat([pairs, (-w * h).unsqueeze(-1)], -1)
    squares = ((pairs @ gram[:2, :2]) * pairs).sum(-1) - w * h.square()
    log_det = 2 * root.diagonal().log().sum() + (variance * gram[2, 2]).log1p()
    fits = -0.5 * (squares + log_det) - len(values) * (scale.log() + 0.5 * math.log(2 * math.pi))
    weight = torch.softmax(fits + prior, 0)
    middle = c.mT @ (weight.unsqueeze(-1) * c)
    middle[2, 2] += (weight * w).sum()
    by_cov = 0.5 * (solved @ middle @ solved.mT - inverse)
    return Sloped(torch.logsumexp(fits + prior, 0), solved @ (weight @ c), by_cov)


def _grid(values: Tensor, units: Units) -> tuple[Tensor, Tensor]:
    """Return the log prior weights of the scales, and the scales."""
    z = torch.linspace(-_WIDTH, _WIDTH, _POINTS, dtype=values.dtype, device=values.device)
    prior = torch.log_softmax(-0.5 * z.square(), 0)
    return prior, (units.log_scale + units.log_scale_std * z).exp()


def most_probable(values: Tensor, mean: Tensor, cov: Tensor, units: Units) -> Scaled:
    """Return the log evidence of values, and the most probable scale.

    Args:
        values: Values ``y``, shape ``(n,)``; without any, the prior is returned.
        mean: Mean of ``z``, shape ``(n,)``.
        cov: Covariance of ``z`` with noise, positive definite, shape ``(n, n)``.
        units: Prior of offset and scale.
    """
    prior, scale = _grid(values, units)
    variance = (units.offset_std / scale).square()
    # A very uncertain offset makes this singular by rounding, which `sure_root` handles.
    root = sure_root(cov + variance[:, None, None])
    residual = (values - units.offset) / scale[:, None] - mean
    squares, log_det = squared_norm_and_log_det(root, residual)
    constant = 0.5 * len(values) * math.log(2 * math.pi)
    fits = -0.5 * squares - (log_det + len(values) * scale.log()) - constant
    best = (fits + prior).argmax()
    evidence = torch.logsumexp(fits + prior, 0)
    return Scaled(evidence, scale[best], variance[best], residual[best], root[best])
