"""The kernel of configurations whose optimum moves with the fidelity."""

from collections.abc import Sequence
from typing import Any

import torch
from gpytorch.kernels import Kernel
from gpytorch.priors import NormalPrior
from linear_operator import to_dense
from torch import Tensor

from botorch_costly.device import columns_of
from botorch_costly.errors import InvalidShapeError, check, check_positive
from botorch_costly.kernels.columns import JointKernel
from botorch_costly.learnt import FreeNumber
from botorch_costly.priors import made


class ShiftKernel(JointKernel):
    r"""Covariance of configurations whose optimum moves linearly with the fidelities.

    ``k([x, s], [x', s']) = base(x + A' (1 - s), x' + A' (1 - s'))``

    The matrix ``A`` of shifts is learnt. At the target, where all fidelities are 1, there is no shift.
    With logarithmic encodings, an optimum that is a power of the size moves linearly; the scaling laws of
    language models say so of learning rate and batch size.

    References:
        H. Li et al. Predictable scale: Part I, Step Law. 2025: powers of model size and data.

    Args:
        base: Covariance of configurations, over as many columns as ``configs``.
        configs: Columns of the configurations.
        fidelities: Columns of the fidelities, in [0, 1].
        moving: Columns of the configurations whose optimum moves; all if omitted.
        spread: Standard deviation of the normal prior of each entry of ``A``.

    Raises:
        InvalidShapeError: If ``configs`` or ``fidelities`` are empty, or ``moving`` are not among
            ``configs``.
        InvalidArgumentError: If the spread is not positive.

    Example:
        >>> from gpytorch.kernels import RBFKernel
        >>> kernel = ShiftKernel(RBFKernel(), configs=(0,), fidelities=(1,))
        >>> kernel.shift = 0.5
        >>> kernel(torch.tensor([[0.2, 0.0], [0.7, 1.0]])).to_dense()
        tensor([[1., 1.],
                [1., 1.]], grad_fn=...)
    """

    _inputs = "configurations and fidelities"
    shift = FreeNumber(
        "Shift of the optimum from fidelity 0 to 1, ``batch_shape x fidelities x moving``."
    )

    def __init__(
        self,
        base: Kernel,
        *,
        configs: Sequence[int],
        fidelities: Sequence[int],
        moving: Sequence[int] | None = None,
        spread: float = 0.2,
    ) -> None:
        super().__init__(batch_shape=base.batch_shape)
        moving = configs if moving is None else moving
        nonempty = len(configs) > 0 and len(fidelities) > 0
        check(nonempty, "configs", "columns of both", (configs, fidelities), InvalidShapeError)
        inside = set(moving) <= set(configs)
        check(inside, "moving", f"columns of {tuple(configs)}", moving, InvalidShapeError)
        self.base = base
        self._configs, self._fidelities = tuple(configs), tuple(fidelities)
        indices = [self._configs.index(column) for column in moving]
        self.register_buffer("_selector", torch.eye(len(configs))[indices])  # moving x configs
        shape = torch.Size([*self.batch_shape, len(fidelities), len(moving)])
        prior = made(NormalPrior, 0.0, check_positive("spread", spread))
        type(self).shift.add(self, 0.0, shape, prior=prior)

    def _covariance(self, x1: Tensor, x2: Tensor, diag: bool, **params: Any) -> Tensor:
        covariance = self.base(self.moved(x1), self.moved(x2), diag=diag, **params)
        return covariance if diag else to_dense(covariance)

    def moved(self, x: Tensor, shifts: Tensor | None = None) -> Tensor:
        """Return the configurations of inputs (``... x n x d``), shifted to the target fidelity.

        Args:
            x: Inputs.
            shifts: The result of ``shifts``, if it is at hand.
        """
        shifts = (self.shifts() if shifts is None else shifts).to(x)
        return columns_of(x, self._configs) + (1 - columns_of(x, self._fidelities)) @ shifts

    def shifts(self) -> Tensor:
        """Return the shift of each configuration column, ``batch_shape x fidelities x configs``."""
        return self.shift @ self._selector
