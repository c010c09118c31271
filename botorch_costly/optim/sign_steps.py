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

from typing import NamedTuple

import torch
from torch import Tensor

from botorch_costly.optim.merging import points_at
from botorch_costly.optim.smooth import ValueAndGradient, evaluated

_GROW, _SHRINK = 1.2, 0.5  # the factors of the paper
_AHEAD, _TURNED = (_GROW - _SHRINK) / 2, (_GROW + _SHRINK) / 2
_LONGEST = 0.3  # longest step, in widths of the cube


class Climbers(NamedTuple):
    """Points on their way up, in the unit cube."""

    points: Tensor  # shape: (*batch, n, d)
    next_steps: Tensor  # signed, shape: (*batch, n, d)

    def at(self, numbers: Tensor) -> "Climbers":
        """Return some of the points by their numbers, ``(*batch, m)``."""
        return Climbers(points_at(self.points, numbers), points_at(self.next_steps, numbers))


def climbers_from(
    value_and_gradient: ValueAndGradient,
    start: Tensor,  # shape: (*batch, n, d)
    warm: int = 0,
    first: float | None = None,
) -> Climbers:
    """Return starts in the unit cube that are ready to climb.

    The first step is as long as the distance between neighbours of as many even points, so that few
    starts leave the neighbourhood of their maximum, unless its length is given.

    Args:
        value_and_gradient: Maps ``batch_shape x n x d`` points to values and gradients.
        start: Points of the unit cube.
        warm: Number of starts, the last ones, that will take no steps.
        first: Length of the first step in each variable, at most the longest step.

    Raises:
        InvalidShapeError: If values or gradients have other shapes than those of the points.
    """
    _, slopes = evaluated(value_and_gradient, start)
    drawn = start.shape[-2] - warm
    if first is None:
        first = max(drawn, 1) ** (-1 / start.shape[-1])
    next_steps = slopes.sign().mul_(min(first, _LONGEST))
    if warm:
        next_steps[..., drawn:, :] = 0.0
    return Climbers(start, next_steps)


def climb_by_signs(
    value_and_gradient: ValueAndGradient, climbers: Climbers, steps: int
) -> tuple[Climbers, Tensor]:  # values: shape (*batch, n)
    """Take steps uphill in the unit cube, at least one; return also the values at the last points.

    A point whose last value is not finite is returned unchanged, with the value -inf.

    Raises:
        InvalidShapeError: If values or gradients have other shapes than those of the points.
    """
    points, next_steps = climbers
    values = points[..., 0]
    for _ in range(steps):
        points = torch.add(points, next_steps).clamp_(0.0, 1.0)
        values, slopes = evaluated(value_and_gradient, points)
        # Times _GROW if the slope has the sign of the step; times -_SHRINK if the maximum is passed.
        turned = torch.copysign(next_steps, slopes)
        next_steps = (_AHEAD * next_steps).add_(turned, alpha=_TURNED).clamp_(-_LONGEST, _LONGEST)
    values = values.nan_to_num(-torch.inf, -torch.inf, -torch.inf)
    points = torch.where(values.unsqueeze(-1) > -torch.inf, points, climbers.points)
    return Climbers(points, next_steps), values
