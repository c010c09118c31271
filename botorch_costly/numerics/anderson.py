r"""Fixed points of many maps at once, by Anderson acceleration.

The residual is ``g(x) = F(x) - x``; a damped step goes to ``x + damping g``. Anderson's step subtracts
the part of it that the last few differences ``dX`` and ``dG`` explain by least squares:

    x' = x + damping g - (dX + damping dG) argmin_c |dG c - g|.

Converged problems leave the batch. After ``patience`` steps the remaining problems take damped steps
only, which are slower and more reliable.

References:
    H. F. Walker, P. Ni. Anderson acceleration for fixed-point iterations. SIAM J. Numer. Anal. 49, 2011.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

_WARM_UP = 3  # damped steps at the start: differences far from the solution explain nothing
_RIDGE = 1e-10  # added to the diagonal of the Gram matrix, relative to its largest entry


class FixedPoints(NamedTuple):
    """The best points of the iterations."""

    point: Tensor  # point of least residual, shape: (b, p)
    residual: Tensor  # max over the components of |g| / (1 + |x|), shape: (b,)
    steps: int  # number of steps of the batch


Map = Callable[[Tensor, Tensor], Tensor]
"""Maps the indices of some problems, ``(k,)``, and their points, ``(k, p)``, to the images ``(k, p)``."""


def fixed_points(
    image: Map,
    start: Tensor,  # shape: (b, p)
    *,
    bound: Tensor,  # shape: (p,), -inf where there is no bound
    tolerance: float,
    damping: float = 0.7,
    memory: int = 4,
    patience: int = 40,
    steps: int = 200,
) -> FixedPoints:
    """Iterate until the residuals of all problems are at most ``tolerance``, or for ``steps`` steps.

    All points stay at or above ``bound``; the images must, too.
    """
    best, least = start.clone(), start.new_full(start.shape[:1], torch.inf)
    under_way = torch.arange(len(start), device=start.device)
    x, xs, gs = start, start.new_empty(0), start.new_empty(0)
    taken = 0
    for taken in range(1, steps + 1):
        g = image(under_way, x) - x
        size = (g.abs() / (1 + x.abs())).amax(-1).nan_to_num(torch.inf)
        better = size < least[under_way]
        best[under_way[better]], least[under_way[better]] = x[better], size[better]
        left = size > tolerance
        remaining = int(left.sum())
        if not remaining:
            break
        plain = taken <= _WARM_UP or taken > patience
        length = 0 if plain else memory
        xs, gs = _appended(xs, x, length), _appended(gs, g, length)
        x = x + (0.5 * damping if taken > patience else damping) * g
        if len(xs) > 1 and not plain:
            x = x - _explained(xs, gs, damping)
        x = torch.where(x.isfinite().all(-1, keepdim=True), x, best[under_way]).maximum(bound)
        if remaining < 0.7 * len(left):
            under_way, x, xs, gs = under_way[left], x[left], xs[:, left], gs[:, left]
    return FixedPoints(best, least, taken)


def _appended(history: Tensor, latest: Tensor, memory: int) -> Tensor:
    """Return the last ``memory`` points of the history, followed by the latest ones."""
    if memory == 0 or not len(history):
        return latest.unsqueeze(0)
    return torch.cat([history[-memory:], latest.unsqueeze(0)])


def _explained(
    xs: Tensor,  # shape: (m + 1, b, p)
    gs: Tensor,  # shape: (m + 1, b, p)
    damping: float,
) -> Tensor:  # shape: (b, p)
    """Return the part of the step that the differences explain."""
    scale = 1 / (1 + xs[-1].abs())
    dx, dg = xs.diff(dim=0), gs.diff(dim=0)
    scaled = (dg * scale).movedim(0, -1)  # b x p x m
    gram = scaled.mT @ scaled
    ridge = _RIDGE * gram.diagonal(dim1=-2, dim2=-1).amax(-1) + torch.finfo(gram.dtype).tiny
    gram.diagonal(dim1=-2, dim2=-1).add_(ridge.unsqueeze(-1))
    explained = scaled.mT @ (gs[-1] * scale).unsqueeze(-1)
    share, _ = torch.linalg.solve_ex(gram, explained)  # b x m x 1
    return torch.einsum("mbp,bm->bp", dx + damping * dg, share.squeeze(-1))
