r"""Values in units that are not known: ``y = a + s z``, ``z`` Gaussian, for a grid of scales at once.

    a ~ N(offset, offset_std^2),    log s ~ N(log_scale, log_scale_std^2)

The offset is integrated out: given ``s``, ``(y - offset) / s ~ N(mean, K + (offset_std / s)^2 11')``. The
scale is one variable, summed over a grid.

*Slopes.* With ``B = [y - offset, mean, 1]``, ``A = K^{-1} B`` and ``G = B'A``, what depends on a scale
``s`` is a matter of three numbers each. With ``c = [1/s, -1, -w h]``, ``v = (offset_std / s)^2``,
``g = 1'K^{-1}1``, ``w = v / (1 + v g)`` and ``h = 1'K^{-1}(B0 / s - B1)``, by Sherman and Morrison,

    alpha = A c,    (K + v 11')^{-1} = K^{-1} - w A_1 A_1',    A_1 = K^{-1} 1,

so that of the log evidence, in which scales have the weights ``p``,

    d / d mean = A sum p c,    d / d K = (A [sum p (cc' + w e_3 e_3')] A' - K^{-1}) / 2.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.numerics.cholesky import sure_root

_WIDTH, _POINTS = 3.0, 13  # of the grid, in standard deviations


class Units(NamedTuple):
    """What is known of offset and scale beforehand."""

    offset: float
    offset_std: float
    log_scale: float
    log_scale_std: float


class Scaled(NamedTuple):
    """What values say of their units."""

    log_evidence: Tensor  # of the values, summed over all scales, shape: ()
    scale: Tensor  # the most probable one, shape: ()
    offset_variance: Tensor  # in units of that scale, shape: ()
    residual: Tensor  # of the values in units, less the mean, shape: (n,)
    root: Tensor  # L of K + offset_variance 11' = L L', shape: (n, n)


class Sloped(NamedTuple):
    """The log evidence and its slopes."""

    log_evidence: Tensor  # minus infinity where K is singular, and all slopes 0, shape: ()
    by_mean: Tensor  # shape: (n,)
    by_cov: Tensor  # as if its entries were n^2 numbers, symmetric, shape: (n, n)


def evidence_and_slopes(values: Tensor, mean: Tensor, cov: Tensor, units: Units) -> Sloped:
    """Return the log evidence of ``most_probable`` and its slopes, from one factor for all scales."""
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
    less = variance / (1 + variance * gram[2, 2])  # w
    own = torch.stack([1 / scale, -torch.ones_like(scale)], -1)
    common = own @ gram[:2, 2]  # h
    parts = torch.cat([own, (-less * common).unsqueeze(-1)], -1)  # c
    squares = ((own @ gram[:2, :2]) * own).sum(-1) - less * common.square()
    log_det = 2 * root.diagonal().log().sum() + (variance * gram[2, 2]).log1p()
    fits = -0.5 * (squares + log_det) - len(values) * (scale.log() + 0.5 * math.log(2 * math.pi))
    weight = torch.softmax(fits + prior, 0)
    middle = parts.mT @ (weight.unsqueeze(-1) * parts)
    middle[2, 2] += (weight * less).sum()
    by_cov = 0.5 * (solved @ middle @ solved.mT - inverse)
    return Sloped(torch.logsumexp(fits + prior, 0), solved @ (weight @ parts), by_cov)


def _grid(values: Tensor, units: Units) -> tuple[Tensor, Tensor]:
    """Return the logarithms of the weights of the scales, and the scales."""
    away = torch.linspace(-_WIDTH, _WIDTH, _POINTS, dtype=values.dtype, device=values.device)
    prior = torch.log_softmax(-0.5 * away.square(), 0)
    return prior, (units.log_scale + units.log_scale_std * away).exp()


def most_probable(values: Tensor, mean: Tensor, cov: Tensor, units: Units) -> Scaled:
    """Return the evidence of values, and the scale that explains them best.

    Args:
        values: Shape ``(n,)``; without any, all is as beforehand.
        mean: Of ``z``, shape ``(n,)``.
        cov: Of ``z``, noise included, positive definite, shape ``(n, n)``.
        units: What is known of offset and scale.
    """
    prior, scale = _grid(values, units)
    variance = (units.offset_std / scale).square()
    # An offset far more uncertain than the values rounds what is their own away.
    root = sure_root(cov + variance[:, None, None])
    residual = (values - units.offset) / scale[:, None] - mean
    white = torch.linalg.solve_triangular(root, residual.unsqueeze(-1), upper=False).squeeze(-1)
    log_det = root.diagonal(dim1=-2, dim2=-1).log().sum(-1) + len(values) * scale.log()
    constant = 0.5 * len(values) * math.log(2 * math.pi)
    fits = -0.5 * white.square().sum(-1) - log_det - constant
    best = (fits + prior).argmax()
    evidence = torch.logsumexp(fits + prior, 0)
    return Scaled(evidence, scale[best], variance[best], residual[best], root[best])
