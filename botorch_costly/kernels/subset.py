"""The kernel of a loss or a cost as a function of a fidelity, such as the fraction of the data."""

from collections.abc import Callable
from typing import Any

import torch
from gpytorch.priors import LogNormalPrior, NormalPrior
from torch import Tensor

from botorch_costly.errors import InvalidShapeError, check
from botorch_costly.kernels.columns import JointKernel
from botorch_costly.learnt import FreeNumber, PositiveNumber
from botorch_costly.priors import made

BASES: dict[str, Callable[[Tensor], Tensor]] = {
    "loss": lambda s: (1 - s).square(),
    "cost": lambda s: s,
}
"""The second feature ``phi_2``; the first is 1. It vanishes at 1 for a loss, and at 0 for a cost."""


class SubsetKernel(JointKernel):
    r"""Covariance over a fidelity ``s`` in [0, 1], such as the fraction of the data.

    ``k(s, s') = phi(s)' Sigma phi(s')`` with ``phi(s) = (1, (1 - s)^2)`` for a loss and
    ``phi(s) = (1, s)`` for a cost.

    A draw from the prior is ``a + b phi_2(s)`` with ``(a, b) ~ N(0, Sigma)``. A loss thus falls or rises
    towards its value on all data, where its slope is 0. ``Sigma`` is a full matrix, so that the value on
    all data may correlate with the slope. Multiply this kernel by one over configurations, and by one for
    each further fidelity.

    References:
        A. Klein, S. Falkner, S. Bartels, P. Hennig, F. Hutter. Fast Bayesian optimization of machine
        learning hyperparameters on large datasets. AISTATS 2017, equations 6 and 7.

    Args:
        basis: ``"loss"`` or ``"cost"``.
        **kwargs: Further arguments of ``gpytorch.kernels.Kernel``, such as ``batch_shape``.

    Raises:
        InvalidArgumentError: If the basis is unknown.

    Example:
        >>> kernel = SubsetKernel("loss")
        >>> kernel(torch.tensor([[0.0], [1.0]])).to_dense()
        tensor([[2., 1.],
                [1., 1.]], grad_fn=...)
    """

    _inputs = "fidelities"
    end = PositiveNumber("Standard deviation of the constant, ``batch_shape x 1``.")
    change = PositiveNumber(
        "Standard deviation of the slope given the constant, ``batch_shape x 1``."
    )
    link = FreeNumber(
        "Mean of the slope if the constant is one standard deviation, ``batch_shape x 1``."
    )

    def __init__(self, basis: str = "loss", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        check(basis in BASES, "basis", f"one of {sorted(BASES)}", basis)
        self.basis = basis
        shape = torch.Size([*self.batch_shape, 1])
        type(self).end.add(self, 1.0, shape, prior=made(LogNormalPrior, 0.0, 1.0))
        type(self).change.add(self, 1.0, shape, prior=made(LogNormalPrior, 0.0, 1.0))
        type(self).link.add(self, 0.0, shape, prior=made(NormalPrior, 0.0, 1.0))

    @property
    def sigma(self) -> Tensor:
        """The covariance matrix of constant and slope, ``batch_shape x 2 x 2``."""
        root = self.root()
        return root @ root.mT

    def root(self) -> Tensor:
        """Return the lower Cholesky factor of Sigma, ``batch_shape x 2 x 2``."""
        first = torch.stack([self.end, torch.zeros_like(self.end)], -1)
        second = torch.stack([self.link, self.change], -1)
        return torch.cat([first, second], -2)

    def _covariance(self, x1: Tensor, x2: Tensor, diag: bool, **params: Any) -> Tensor:
        first, second = self.features(x1), self.features(x2)
        if diag:
            return (first * second).sum(-1)
        return first @ second.mT

    def features(self, x: Tensor, root: Tensor | None = None) -> Tensor:
        """Return features of fidelities whose products are covariances, ``... x n x 2``.

        Args:
            x: Fidelities, ``... x n x 1``.
            root: The result of ``root``, if it is at hand.
        """
        columns = x.shape[-1]
        check(columns == 1, "fidelities", "one column", columns, InvalidShapeError)
        phi = torch.cat([torch.ones_like(x), BASES[self.basis](x)], -1)
        return phi @ (self.root() if root is None else root).to(x)
