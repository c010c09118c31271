"""A prior of a new task by the means of earlier tasks, which are columns of the inputs.

With the posterior means ``f_1 .. f_T`` of earlier tasks and their average ``f``, the new function is

    h f(x) + sum_i w_i f_i(x) + g(x),
    h ~ N(1/2, 1/4),    w_i ~ N(0, v / T),    log v ~ N(log 0.1, 9/4),

with ``g`` any Gaussian process. As ``h`` and ``w_i`` may be negative, tasks that mislead are informative,
too; with ``h = v = 0`` the tasks count nothing.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from gpytorch.means import ConstantMean
from gpytorch.priors import NormalPrior
from torch import Tensor

from botorch_costly.kernels import WeightedSumKernel
from botorch_costly.learnt import FreeNumber
from botorch_costly.priors import made

_SLOPE = 0.5, 0.5  # mean and standard deviation of h
_VARIANCE = math.log(0.1), 1.5  # mean and standard deviation of log v


class EarlierMean(ConstantMean):
    """A constant plus a multiple of the average of some columns.

    Args:
        columns: Columns of the means of earlier tasks.
        **kwargs: Further arguments of ``ConstantMean``.
    """

    slope = FreeNumber("Multiple of the average, ``batch_shape x 1``.")

    def __init__(self, columns: Sequence[int], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._columns = tuple(columns)
        shape = torch.Size([*self.batch_shape, 1])
        type(self).slope.add(self, _SLOPE[0], shape, prior=made(NormalPrior, *_SLOPE))

    def forward(self, x: Tensor) -> Tensor:
        """Return the prior means of inputs ``... x n x d``, ``... x n``."""
        average = x[..., self._columns].mean(-1)
        constant: Tensor = super().forward(x)
        return constant + self.slope.to(x) * average


def earlier_kernel(columns: Sequence[int], batch_shape: torch.Size) -> WeightedSumKernel:
    """Return the covariance of the weighted sum of the tasks, on the columns of their means."""
    location = _VARIANCE[0] - math.log(len(columns))
    return WeightedSumKernel(
        location, _VARIANCE[1], active_dims=tuple(columns), batch_shape=batch_shape
    )
