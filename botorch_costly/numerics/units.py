r"""Values in units that are not known: ``y = a + s z``, ``z`` Gaussian, for a grid of scales at once.

    a ~ N(offset, offset_std^2),    log s ~ N(log_scale, log_scale_std^2)

The offset is integrated out: given ``s``, ``(y - offset) / s ~ N(mean, K + (offset_std / s)^2 11')``. The
scale is one variable, summed over a grid.
"""

import math
from typing import NamedTuple

import torch
from torch import Tensor

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


def most_probable(values: Tensor, mean: Tensor, cov: Tensor, units: Units) -> Scaled:
    """Return the evidence of values, and the scale that explains them best.

    Args:
        values: Shape ``(n,)``, ``n >= 1``.
        mean: Of ``z``, shape ``(n,)``.
        cov: Of ``z``, noise included, positive definite, shape ``(n, n)``.
        units: What is known of offset and scale.
    """
    away = torch.linspace(-_WIDTH, _WIDTH, _POINTS, dtype=values.dtype, device=values.device)
    log_scale = units.log_scale + units.log_scale_std * away
    scale = log_scale.exp()
    variance = (units.offset_std / scale).square()
    root = torch.linalg.cholesky(cov + variance[:, None, None])
    residual = (values - units.offset) / scale[:, None] - mean
    white = torch.linalg.solve_triangular(root, residual.unsqueeze(-1), upper=False).squeeze(-1)
    log_det = root.diagonal(dim1=-2, dim2=-1).log().sum(-1) + len(values) * log_scale
    constant = 0.5 * len(values) * math.log(2 * math.pi)
    fits = -0.5 * white.square().sum(-1) - log_det - constant
    prior = torch.log_softmax(-0.5 * away.square(), 0)
    best = (fits + prior).argmax()
    evidence = torch.logsumexp(fits + prior, 0)
    return Scaled(evidence, scale[best], variance[best], residual[best], root[best])
