"""The kernel of a weighted sum of columns."""

from typing import Any

import torch
from gpytorch.priors import LogNormalPrior
from torch import Tensor

from botorch_costly.kernels.columns import JointKernel
from botorch_costly.learnt import PositiveNumber
from botorch_costly.priors import made


class WeightedSumKernel(JointKernel):
    r"""Covariance of ``sum_i w_i x_i`` with independent weights ``w_i ~ N(0, variance)``.

    Unlike GPyTorch's ``LinearKernel`` it is dense, because sums of few columns and a full covariance are
    factored faster and more exactly than an update of low rank.

    Args:
        location: Mean of the logarithm of the variance; the first value is its exponential.
        scale: Standard deviation of that logarithm.
        **kwargs: Further arguments of ``gpytorch.kernels.Kernel``, such as ``active_dims``.

    Example:
        >>> kernel = WeightedSumKernel(0.0, 1.0)
        >>> kernel(torch.tensor([[1.0, 2.0], [0.0, 1.0]])).to_dense()
        tensor([[5., 2.],
                [2., 1.]], grad_fn=...)
    """

    _inputs = "columns of a sum"
    variance = PositiveNumber("Variance of each weight, ``batch_shape x 1``.")

    def __init__(self, location: float, scale: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        prior = made(LogNormalPrior, location, scale)
        start = prior.loc.exp()
        type(self).variance.add(self, start, torch.Size([*self.batch_shape, 1]), prior=prior)

    def _covariance(self, x1: Tensor, x2: Tensor, diag: bool, **params: Any) -> Tensor:
        variance = self.variance.to(x1)
        if diag:
            return variance * (x1 * x2).sum(-1)
        return variance.unsqueeze(-1) * (x1 @ x2.mT)
