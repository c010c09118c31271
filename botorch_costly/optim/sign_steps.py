"""The first steps of a climb from many starts at once, by the signs of the gradient alone.

Each variable of each start has a step length of its own. It grows while its slope keeps its sign, and is
halved where the sign changes, so that a maximum has been passed. Lengths do not depend on the size of
the gradient: flat tails and steep slopes are climbed equally fast. There is no line search, and nothing
is read, so that a device runs ahead; and beside its evaluation a step takes a tenth of the operations
of a quasi-Newton one.

References:
    - Riedmiller & Braun, *A direct adaptive method for faster backpropagation learning: the RPROP
      algorithm* (1993).
"""

import torch
from torch import Tensor

from botorch_costly.optim.smooth import ValueAndGradient, evaluated

_GROW, _SHRINK = 1.2, 0.5  # the factors of the paper
_LONGEST = 0.3  # longest step, in widths of the cube


def climb_by_signs(
    value_and_gradient: ValueAndGradient,
    start: Tensor,  # shape: (*batch, n, d)
    steps: int,
    warm: int = 0,
    first: float | None = None,
) -> tuple[Tensor, Tensor]:  # shapes: (*batch, n, d), (*batch, n)
    """Take a number of steps uphill in the unit cube; return the last points and their values.

    The first step is as long as the distance between neighbours of as many even points, so that few
    starts leave the neighbourhood of their maximum, unless its length is given. A start whose last value
    or point is not finite is returned unchanged, with the value -inf.

    Args:
        value_and_gradient: Maps ``batch_shape x n x d`` points to values and gradients.
        start: Points of the unit cube.
        steps: Number of steps; the function is evaluated once more.
        warm: Number of starts, the last ones, that take no steps and are evaluated once.
        first: Length of the first step in each variable, at most the longest step.

    Raises:
        InvalidShapeError: If values or gradients have other shapes than those of the points.
    """
    drawn = start.shape[-2] - warm
    value, slope = evaluated(value_and_gradient, start)
    point, stays = start.split([drawn, warm], -2)
    climbed, value_there = value.split([drawn, warm], -1)
    slope = slope[..., :drawn, :]
    if first is None:
        first = max(drawn, 1) ** (-1 / start.shape[-1])
    step = torch.full_like(point, min(first, _LONGEST))
    grow, shrink = start.new_full((), _GROW), start.new_full((), _SHRINK)
    for _ in range(steps if drawn else 0):
        point = torch.addcmul(point, step, slope.sign()).clamp_(0.0, 1.0)
        climbed, ahead = evaluated(value_and_gradient, point)
        has_passed = slope * ahead < 0
        step = torch.where(has_passed, shrink, grow).mul_(step).clamp_(max=_LONGEST)
        slope = ahead
    point, value = torch.cat([point, stays], -2), torch.cat([climbed, value_there], -1)
    finite = (value + point.sum(-1)).isfinite()
    value = value.masked_fill(~finite, -torch.inf)
    return torch.where(finite.unsqueeze(-1), point, start), value
