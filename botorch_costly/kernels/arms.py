"""The kernel of finitely many arms that say nothing about one another."""

from typing import Any

import torch
from gpytorch.constraints import Positive
from gpytorch.kernels import Kernel
from torch import Tensor, nn

from botorch_costly.errors import InvalidArgumentError, check
from botorch_costly.kernels.columns import refuse_last_dim_batch


class ArmKernel(Kernel):
    """Covariance of independent arms: ``variance`` where two inputs are one arm, 0 elsewhere.

    Inputs are arm numbers (or any exact encoding: two inputs are one arm when all their columns
    agree). Multiply it with a ``ForgettingKernel`` for arms whose rewards drift.

    References:
        J. Wang, M. Ren, I. Bogunovic, Y. Xiong, R. Urtasun. Cost-efficient online hyperparameter
        optimization. 2021, appendix E.1 (k_space = I).

    Args:
        variance: Prior variance of each arm, learnable; scalar or ``batch_shape x 1 x 1``.
        **kwargs: ``batch_shape``, ``active_dims`` and the like, for ``gpytorch.kernels.Kernel``.

    Raises:
        InvalidArgumentError: If the variance is not positive.

    Example:
        >>> import torch
        >>> ArmKernel()(torch.tensor([[0.0], [1.0], [0.0]])).to_dense()[0].round().tolist()
        [1.0, 0.0, 1.0]
    """

    has_lengthscale = False

    def __init__(self, variance: float | Tensor = 1.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.register_parameter("raw_variance", nn.Parameter(torch.zeros(*self.batch_shape, 1, 1)))
        self.register_constraint("raw_variance", Positive())
        self.variance = variance

    @property
    def is_stationary(self) -> bool:
        """Only whether two arms differ matters."""
        return True

    @property
    def variance(self) -> Tensor:
        """Prior variance of each arm, shape ``batch_shape x 1 x 1``."""
        return self.raw_variance_constraint.transform(self.raw_variance)

    @variance.setter
    def variance(self, value: float | Tensor) -> None:
        wanted = torch.as_tensor(value, dtype=torch.float64, device=self.raw_variance.device)
        positive = bool((wanted > 0).all())
        check(positive, "variance", "a number > 0", value, InvalidArgumentError)
        raw = self.raw_variance_constraint.inverse_transform(wanted)
        self.initialize(raw_variance=raw.to(self.raw_variance.dtype))

    def forward(
        self,
        x1: Tensor,
        x2: Tensor,
        diag: bool = False,
        last_dim_is_batch: bool = False,
        **params: Any,
    ) -> Tensor:
        """Return the covariance of the arms ``x1`` (``... x n x d``) and ``x2`` (``... x m x d``)."""
        refuse_last_dim_batch("arms", last_dim_is_batch)
        if diag:
            return self.variance.squeeze(-1) * (x1 == x2).all(-1)
        return self.variance * (x1.unsqueeze(-2) == x2.unsqueeze(-3)).all(-1)
