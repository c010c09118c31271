"""Covariances of GPyTorch kernels as plain tensors, without the overhead of GPyTorch's calls.

A call of a GPyTorch kernel checks shapes, selects columns and makes operators, and so does each kernel
within it. With few rows this takes several times as long as the arithmetic. The functions here compute
common kernels directly, and call all others as GPyTorch does.

A model is asked for the covariance of its data with other rows again and again. ``against`` computes the
side of the data, and all hyperparameters, once.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, reduce
from operator import add, mul
from typing import Any

import torch
from gpytorch.kernels import (
    AdditiveKernel,
    Kernel,
    MaternKernel,
    ProductKernel,
    RBFKernel,
    ScaleKernel,
)
from gpytorch.settings import lazily_evaluate_kernels
from linear_operator import to_dense
from torch import Tensor

from botorch_costly.kernels.shift import ShiftKernel
from botorch_costly.kernels.subset import SubsetKernel
from botorch_costly.numerics.radial import PROFILES, SMOOTHNESS, Profile

_FAMILIES = {smoothness: family for family, smoothness in SMOOTHNESS.items()}


class Against(ABC):
    """The covariances of rows, ``*batch x m x d``, with others that stay the same.

    Hyperparameters are those of the time when it was made.
    """

    @abstractmethod
    def covariance(self, rows: Tensor) -> Tensor:
        """Return the covariances with all others, ``*batch x m x n``; autograd differentiates them."""

    @abstractmethod
    def variance(self, rows: Tensor) -> Tensor:
        """Return the prior variances of the rows, ``*batch x m``."""


def against(kernel: Kernel, others: Tensor) -> Against:  # others of shape (*batch, n, d)
    """Return the covariances of a kernel with these rows, whose side is computed once.

    Example:
        >>> x = torch.tensor([[0.0], [1.0]])
        >>> against(ScaleKernel(RBFKernel()) + RBFKernel(), x).covariance(x).diagonal().tolist()
        [1.6931..., 1.6931...]
    """
    active = kernel.active_dims
    if active is None:
        return _prepared(kernel, others)
    columns = partial(torch.index_select, dim=-1, index=active)
    return _Transformed(columns, _prepared(kernel, columns(others)))


def covariance(
    kernel: Kernel,
    rows: Tensor,  # shape: (*batch, m, d)
    others: Tensor,  # shape: (*batch, n, d)
) -> Tensor:  # shape: (*batch, m, n)
    """Return ``kernel(rows, others)`` as a tensor; autograd differentiates it once."""
    return against(kernel, others).covariance(rows)


def _prepared(kernel: Any, others: Tensor) -> Against:
    """Return the covariances with rows that have only the kernel's columns."""
    kind = type(kernel)
    if kind in (ProductKernel, AdditiveKernel):
        combined = mul if kind is ProductKernel else add
        return _Combined(combined, [against(inner, others) for inner in kernel.kernels])
    if kind is ScaleKernel:  # its columns are those of its base kernel
        return _Scaled(kernel.outputscale, _prepared(kernel.base_kernel, others))
    if kind in (MaternKernel, RBFKernel):
        profile = PROFILES["rbf" if kind is RBFKernel else _FAMILIES[kernel.nu]]
        unit = kernel.lengthscale / profile.constant
        return _Radial(profile, unit, others / unit)
    if kind is ShiftKernel:
        moved = partial(kernel.moved, shifts=kernel.shifts())
        return _Transformed(moved, against(kernel.base, moved(others)))
    if kind is SubsetKernel:
        features = partial(kernel.features, root=kernel.root())
        return _Transformed(features, _Linear(features(others)))
    return _AsGPyTorch(kernel, others)


@dataclass(frozen=True)
class _Transformed(Against):
    transform: Callable[[Tensor], Tensor]  # of the rows
    inner: Against

    def covariance(self, rows: Tensor) -> Tensor:
        return self.inner.covariance(self.transform(rows))

    def variance(self, rows: Tensor) -> Tensor:
        return self.inner.variance(self.transform(rows))


@dataclass(frozen=True)
class _Combined(Against):
    operator: Callable[[Any, Any], Any]
    terms: list[Against]

    def covariance(self, rows: Tensor) -> Tensor:
        return reduce(self.operator, [term.covariance(rows) for term in self.terms])

    def variance(self, rows: Tensor) -> Tensor:
        return reduce(self.operator, [term.variance(rows) for term in self.terms])


@dataclass(frozen=True)
class _Scaled(Against):
    scale: Tensor  # shape: (*batch,)
    base: Against

    def covariance(self, rows: Tensor) -> Tensor:
        return self.scale[..., None, None] * self.base.covariance(rows)

    def variance(self, rows: Tensor) -> Tensor:
        return self.scale.unsqueeze(-1) * self.base.variance(rows)


@dataclass(frozen=True)
class _Radial(Against):
    profile: Profile
    unit: Tensor  # lengthscales over the profile's constant, shape: (*batch, 1, d)
    others: Tensor  # in that unit

    def covariance(self, rows: Tensor) -> Tensor:
        return self.profile.phi(torch.cdist(rows / self.unit, self.others))

    def variance(self, rows: Tensor) -> Tensor:
        shape = torch.broadcast_shapes(self.unit.shape[:-2], rows.shape[:-2])
        return rows.new_ones(*shape, rows.shape[-2])


@dataclass(frozen=True)
class _Linear(Against):
    others: Tensor

    def covariance(self, rows: Tensor) -> Tensor:
        return rows @ self.others.mT

    def variance(self, rows: Tensor) -> Tensor:
        return rows.square().sum(-1)


@dataclass(frozen=True)
class _AsGPyTorch(Against):
    kernel: Any
    others: Tensor

    def covariance(self, rows: Tensor) -> Tensor:
        with lazily_evaluate_kernels(False):
            return to_dense(self.kernel.forward(rows, self.others))

    def variance(self, rows: Tensor) -> Tensor:
        diagonal: Tensor = self.kernel.forward(rows, rows, diag=True)
        return diagonal
