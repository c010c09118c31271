"""Kernels for which all columns together are one input."""

from collections.abc import Callable
from typing import Any, ClassVar

from gpytorch.kernels import Kernel
from torch import Tensor

from botorch_costly.errors import InvalidShapeError, check


def refuse_last_dim_batch(inputs: str, last_dim_is_batch: bool) -> None:
    """Raise InvalidShapeError if GPyTorch is to treat each input column as a batch entry."""
    expected, received = f"False ({inputs} are one input)", last_dim_is_batch
    check(not last_dim_is_batch, "last_dim_is_batch", expected, received, InvalidShapeError)


class JointKernel(Kernel):
    """Base of kernels that define ``_covariance`` and name their inputs."""

    has_lengthscale = False
    _inputs: ClassVar[str]
    _covariance: Callable[..., Tensor]  # of x1, x2, diag and further parameters

    def forward(
        self,
        x1: Tensor,
        x2: Tensor,
        diag: bool = False,
        last_dim_is_batch: bool = False,
        **params: Any,
    ) -> Tensor:
        """Return the covariance of inputs ``x1`` (``... x n x d``) and ``x2`` (``... x m x d``)."""
        refuse_last_dim_batch(self._inputs, last_dim_is_batch)
        return self._covariance(x1, x2, diag, **params)
