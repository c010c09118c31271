"""Covariances of GPyTorch kernels as plain tensors, without the overhead of GPyTorch's calls.

A call of a GPyTorch kernel checks shapes, selects columns and makes operators, and so does each kernel
within it. With few rows this takes several times as long as the arithmetic. The functions here compute
common kernels directly, and call all others as GPyTorch does.
"""

from functools import reduce
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
from botorch_costly.numerics.radial import PROFILES, SMOOTHNESS

_FAMILIES = {smoothness: family for family, smoothness in SMOOTHNESS.items()}


def covariance(
    kernel: Kernel,
    rows: Tensor,  # shape: (*batch, n, d)
    others: Tensor,  # shape: (*batch, m, d)
) -> Tensor:  # shape: (*batch, n, m)
    """Return ``kernel(rows, others)`` as a tensor; autograd differentiates it once.

    Example:
        >>> x = torch.tensor([[0.0], [1.0]])
        >>> covariance(ScaleKernel(RBFKernel()) + RBFKernel(), x, x).diagonal().tolist()
        [1.6931..., 1.6931...]
    """
    return _forward(kernel, _active_columns(kernel, rows), _active_columns(kernel, others))


def _forward(kernel: Any, rows: Tensor, others: Tensor) -> Tensor:
    """Return the covariance of rows that have only the kernel's columns."""
    kind = type(kernel)
    if kind in (ProductKernel, AdditiveKernel):
        return _combined(kernel, [covariance(inner, rows, others) for inner in kernel.kernels])
    if kind is ScaleKernel:  # its columns are those of its base kernel
        return kernel.outputscale[..., None, None] * _forward(kernel.base_kernel, rows, others)
    if kind in (MaternKernel, RBFKernel):
        profile = PROFILES["rbf" if kind is RBFKernel else _FAMILIES[kernel.nu]]
        unit = kernel.lengthscale / profile.constant
        return profile.phi(torch.cdist(rows / unit, others / unit))
    if kind is ShiftKernel:
        return covariance(kernel.base, kernel.moved(rows), kernel.moved(others))
    if kind is SubsetKernel:
        return kernel.forward(rows, others)
    with lazily_evaluate_kernels(False):
        return to_dense(kernel.forward(rows, others))


def variance(kernel: Kernel, rows: Tensor) -> Tensor:  # shapes: (*batch, n, d) -> (*batch, n)
    """Return the diagonal of ``kernel(rows, rows)``.

    Example:
        >>> variance(ScaleKernel(RBFKernel()), torch.zeros(2, 1)).tolist()
        [0.6931..., 0.6931...]
    """
    return _diagonal(kernel, _active_columns(kernel, rows))


def _diagonal(kernel: Any, rows: Tensor) -> Tensor:
    """Return the variance of rows that have only the kernel's columns."""
    kind = type(kernel)
    if kind in (ProductKernel, AdditiveKernel):
        return _combined(kernel, [variance(inner, rows) for inner in kernel.kernels])
    if kind is ScaleKernel:
        return kernel.outputscale.unsqueeze(-1) * _diagonal(kernel.base_kernel, rows)
    if kind is ShiftKernel:
        return variance(kernel.base, kernel.moved(rows))
    diagonal: Tensor = kernel.forward(rows, rows, diag=True)
    return diagonal


def _combined(kernel: Kernel, terms: list[Tensor]) -> Tensor:
    """Return the product or sum of covariances."""
    return reduce(mul if isinstance(kernel, ProductKernel) else add, terms)


def _active_columns(kernel: Kernel, rows: Tensor) -> Tensor:
    """Return the columns that the kernel depends on."""
    active = kernel.active_dims
    return rows if active is None else rows.index_select(-1, active)
