"""Covariances of GPyTorch kernels as plain tensors, without what its calls cost beside the arithmetic.

A call of a GPyTorch kernel checks shapes, selects columns and makes operators, and so does each kernel
that it is made of. Where rows are few this takes several times as long as the numbers. Sums and products
are computed here as such; a kernel of another kind is called as GPyTorch calls it.
"""

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
    return _forward(kernel, _own(kernel, rows), _own(kernel, others))


def _forward(kernel: Any, rows: Tensor, others: Tensor) -> Tensor:
    """Return the covariance over columns that are selected already."""
    kind = type(kernel)
    if kind in (ProductKernel, AdditiveKernel):
        return _together(kernel, [covariance(part, rows, others) for part in kernel.kernels])
    if kind is ScaleKernel:  # it has selected the columns of what it scales
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
    return _diagonal(kernel, _own(kernel, rows))


def _diagonal(kernel: Any, rows: Tensor) -> Tensor:
    """Return the variance over columns that are selected already."""
    kind = type(kernel)
    if kind in (ProductKernel, AdditiveKernel):
        return _together(kernel, [variance(part, rows) for part in kernel.kernels])
    if kind is ScaleKernel:
        return kernel.outputscale.unsqueeze(-1) * _diagonal(kernel.base_kernel, rows)
    if kind is ShiftKernel:
        return variance(kernel.base, kernel.moved(rows))
    diagonal: Tensor = kernel.forward(rows, rows, diag=True)
    return diagonal


def _together(kernel: Kernel, parts: list[Tensor]) -> Tensor:
    total, *others = parts
    for part in others:
        total = total * part if isinstance(kernel, ProductKernel) else total + part
    return total


def _own(kernel: Kernel, rows: Tensor) -> Tensor:
    """Return the columns that a kernel is over."""
    active = kernel.active_dims
    return rows if active is None else rows.index_select(-1, active)
