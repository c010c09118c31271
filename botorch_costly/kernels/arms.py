"""The kernel of finitely many independent arms."""

from typing import Any

import torch
from torch import Tensor

from botorch_costly.kernels.columns import JointKernel
from botorch_costly.learnt import PositiveNumber


class ArmKernel(JointKernel):
    """Covariance of independent arms: ``variance`` if two inputs are the same arm, else 0.

    Inputs are arm numbers, or any exact encoding: two inputs are the same arm if all their columns are
    equal. Multiply the kernel by a ``ForgettingKernel`` for arms whose rewards drift.

    References:
        J. Wang, M. Ren, I. Bogunovic, Y. Xiong, R. Urtasun. Cost-efficient online hyperparameter
        optimization. 2021, appendix E.1 (k_space = I).

    Args:
        variance: Prior variance of each arm, learnable; scalar or ``batch_shape x 1 x 1``.
        **kwargs: Further arguments of ``gpytorch.kernels.Kernel``, such as ``batch_shape``.

    Raises:
        InvalidArgumentError: If the variance is not positive.

    Example:
        >>> import torch
        >>> ArmKernel()(torch.tensor([[0.0], [1.0], [0.0]])).to_dense()[0].round().tolist()
        [1.0, 0.0, 1.0]
    """

    _inputs = "arms"
    variance = PositiveNumber("Prior variance of each arm, ``batch_shape x 1 x 1``.")

    def __init__(self, variance: float | Tensor = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        shape = torch.Size([*self.batch_shape, 1, 1])
        type(self).variance.add(self, variance, shape)

    @property
    def is_stationary(self) -> bool:
        """True: the covariance depends only on whether two arms differ."""
        return True

    def _covariance(self, x1: Tensor, x2: Tensor, diag: bool, **params: Any) -> Tensor:
        if diag:
            return self.variance.squeeze(-1) * (x1 == x2).all(-1)
        return self.variance * (x1.unsqueeze(-2) == x2.unsqueeze(-3)).all(-1)
