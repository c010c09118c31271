r"""Fixed points of many maps at once, by Anderson acceleration.

The residual is ``g(x) = F(x) - x``; a damped step goes to ``x + damping g``. Anderson's step subtracts
the part of it that the last few differences ``dX`` and ``dG`` explain by least squares:

    x' = x + damping g - (dX + damping dG) argmin_c |dG c - g|.

Converged problems leave the batch. How many are left is read from the device only every few steps.

References:
    H. F. Walker, P. Ni. Anderson acceleration for fixed-point iterations. SIAM J. Numer. Anal. 49, 2011.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

_RIDGE = 1e-10  # added to the diagonal of the Gram matrix, relative to its largest entry


class FixedPoints(NamedTuple):
    """The points after the iterations."""

    point: Tensor  # one step beyond the tolerance, or the point of least residual, shape: (b, p)
    residual: Tensor  # least max over the components of |g|, shape: (b,)
    steps: int  # number of steps of the batch


Map = Callable[[Tensor, Tensor], Tensor]
"""Maps the indices of some problems, ``(k,)``, and their points, ``(k, p)``, to the images ``(k, p)``."""


def fixed_points(
    image: Map,
    start: Tensor,  # shape: (b, p)
    *,
    bounds: Tensor,  # least and greatest values, may be infinite, shape: (2, p)
    tolerance: float,
    damping: float = 0.85,
    memory: int = 5,
    steps: int = 200,
    first: int = 4,
    every: int = 2,
    patience: int = 40,
) -> FixedPoints:
    """Iterate until the residuals of all problems are at most ``tolerance``, or for ``steps`` steps.

    Residuals are compared with ``tolerance`` after ``first`` steps, and then every ``every`` steps. All
    points stay within ``bounds``; the images must, too.
    """
    point, residual = start.clone(), start.new_full(start.shape[:1], torch.inf)
    under_way = torch.arange(len(start), device=start.device)
    x, best, least = start, start, residual
    history = _History(start.new_empty(len(start), 0, start.shape[-1]))
    taken = 0
    for taken in range(1, steps + 1):
        g = image(under_way, x) - x
        size = g.abs().amax(-1).nan_to_num(torch.inf)
        best = torch.where((size < least).unsqueeze(-1), x, best)
        least = torch.minimum(size, least)
        after = history.step(x, g, damping, memory) if taken <= patience else x + 0.5 * damping * g
        x = torch.where(after.isfinite().all(-1, keepdim=True), after, best).clamp(*bounds)
        if taken < steps and (taken < first or (taken - first) % every):
            continue
        left = size > tolerance
        point[under_way] = torch.where(left.unsqueeze(-1), best, x)
        residual[under_way] = least
        remaining = int(left.sum())
        if not remaining:
            break
        if remaining < 0.85 * len(left):
            kept = left.byte().argsort(descending=True)[:remaining]
            under_way, x, best, least = under_way[kept], x[kept], best[kept], least[kept]
            history.keep(kept)
    return FixedPoints(point, residual, taken)


class _History:
    """The last differences of points and residuals, each ``b x m x p``."""

    def __init__(self, empty: Tensor) -> None:
        self.moves, self.changes = empty, empty
        self.last: tuple[Tensor, Tensor] | None = None

    def step(self, x: Tensor, g: Tensor, damping: float, memory: int) -> Tensor:
        """Return the point after ``x`` and remember the difference from the point before."""
        if self.last is not None:
            dx, dg = x - self.last[0], g - self.last[1]
            kept = slice(max(0, self.moves.shape[1] + 1 - memory), None)
            self.moves = torch.cat([self.moves[:, kept], (dx + damping * dg).unsqueeze(1)], 1)
            self.changes = torch.cat([self.changes[:, kept], dg.unsqueeze(1)], 1)
        self.last = (x, g)
        after = x + damping * g
        if not self.moves.shape[1]:
            return after
        return after - (_explained(self.changes, g) @ self.moves).squeeze(1)

    def keep(self, kept: Tensor) -> None:
        """Keep some of the problems."""
        assert self.last is not None
        self.last = self.last[0][kept], self.last[1][kept]
        self.moves, self.changes = self.moves[kept], self.changes[kept]


def _explained(changes: Tensor, g: Tensor) -> Tensor:  # shape: (b, 1, m)
    """Return the coefficients of the changes that explain the residuals by least squares."""
    gram = changes @ changes.mT
    ridge = _RIDGE * gram.diagonal(dim1=-2, dim2=-1).amax(-1) + torch.finfo(gram.dtype).tiny
    gram.diagonal(dim1=-2, dim2=-1).add_(ridge.unsqueeze(-1))
    share, _ = torch.linalg.solve_ex(gram, changes @ g.unsqueeze(-1))
    return share.mT
