"""A guess at Hessians from differences of gradients, where a search begins."""

import torch
from torch import Tensor

from botorch_costly.optim.smooth import ValueAndGradient

_STEP = 1e-4  # of a difference, in widths of the box
_LEAST = 1e-2  # curvature, of the largest one at a point


def bent(
    value_and_gradient: ValueAndGradient,
    start: Tensor,  # shape: (n, d)
    bounds: Tensor,  # shape: (2, d)
) -> Tensor:  # shape: (n, d, d)
    """Return positive definite guesses at the Hessians at points of a box.

    A negative curvature counts as a positive one of the same size, so that a first step leads downhill.
    All points that differences are taken of are asked about at once.

    Args:
        value_and_gradient: Maps ``k x d`` points to ``k`` values and ``k x d`` gradients.
        start: Points.
        bounds: Lower and upper ones, finite.

    Example:
        >>> bowl = lambda x: ((x * x).sum(-1), 2 * x)
        >>> box = torch.tensor([[-1.0, -1.0], [1.0, 1.0]])
        >>> bent(bowl, torch.zeros(1, 2), box).round(decimals=3)
        tensor([[[2., 0.],
                 [0., 2.]]])
    """
    dim = start.shape[-1]
    middle = bounds.mean(0)
    step = _STEP * (bounds[1] - bounds[0]) * torch.where(start > middle, -1.0, 1.0).to(start)
    moved = start.unsqueeze(-2) + torch.diag_embed(step)  # coordinate by coordinate, into the box
    points = torch.cat([start.unsqueeze(-2), moved], -2)
    slope = value_and_gradient(points.reshape(-1, dim))[1].reshape(points.shape)
    found = (slope[:, 1:] - slope[:, :1]) / step.unsqueeze(-1)
    found = (0.5 * (found + found.mT)).nan_to_num(0.0, 0.0, 0.0)
    size, turn = torch.linalg.eigh(found)
    size = size.abs()
    least = (_LEAST * size.amax(-1, keepdim=True)).clamp_min(torch.finfo(size.dtype).eps)
    return turn @ ((size.clamp_min(least)).unsqueeze(-1) * turn.mT)
