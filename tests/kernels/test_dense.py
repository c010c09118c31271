"""Covariances as plain tensors are those that GPyTorch's calls return, with their slopes."""

import pytest
import torch
from gpytorch.kernels import (
    AdditiveKernel,
    LinearKernel,
    MaternKernel,
    PeriodicKernel,
    ProductKernel,
    RBFKernel,
    ScaleKernel,
)

from botorch_costly.kernels import ShiftKernel, SubsetKernel
from botorch_costly.kernels.dense import against, covariance
from botorch_costly.models.subset import subset_kernel
from tests.registry.kernels import KERNELS

BATCH = torch.Size([3])
COMPOSED = {
    "fabolas": lambda: subset_kernel(4, (3,), "loss", BATCH, level=True, moving=(0, 2)),
    "two fidelities": lambda: subset_kernel(4, (2, 3), "loss", BATCH, level=True),
    "of one column": lambda: MaternKernel(0.5, active_dims=(2,), batch_shape=BATCH),
    "scaled": lambda: ScaleKernel(
        MaternKernel(1.5, ard_num_dims=2, active_dims=(0, 3), batch_shape=BATCH), batch_shape=BATCH
    ),
    "columns of columns": lambda: ScaleKernel(
        RBFKernel(active_dims=(1,), batch_shape=BATCH), active_dims=(0, 2), batch_shape=BATCH
    ),
    "sum of products": lambda: AdditiveKernel(
        ProductKernel(RBFKernel(ard_num_dims=4), PeriodicKernel(active_dims=(1,))),
        LinearKernel(active_dims=(0,)),
    ),
    "shifted shares": lambda: (
        ShiftKernel(RBFKernel(ard_num_dims=2), configs=(0, 1), fidelities=(2, 3))
        * SubsetKernel("cost", active_dims=(3,))
    ),
}


def random_numbers(kernel):
    generator = torch.Generator().manual_seed(1)
    kernel = kernel.double()
    for parameter in kernel.parameters():
        noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
        parameter.data += 0.3 * noise
    return kernel


def check_alike(kernel, x, others):
    leaf, twin = (x.clone().requires_grad_(True) for _ in range(2))
    ours, theirs = covariance(kernel, leaf, others), kernel(twin, others).to_dense()
    torch.testing.assert_close(ours, theirs)
    weight = torch.linspace(-1, 1, ours.numel(), dtype=torch.float64).reshape(ours.shape)
    slopes = [
        torch.autograd.grad((output * weight).sum(), at, allow_unused=True)[0]
        for output, at in ((ours, leaf), (theirs, twin))
    ]
    assert (slopes[0] is None) == (slopes[1] is None)
    if slopes[0] is not None:
        torch.testing.assert_close(*slopes, rtol=1e-5, atol=1e-8)
    with torch.no_grad():
        fixed = against(kernel, others)
        torch.testing.assert_close(fixed.variance(x), kernel(x, diag=True))
        for rows in (x, x[..., :2, :], others):
            torch.testing.assert_close(fixed.covariance(rows), kernel(rows, others).to_dense())
        torch.testing.assert_close(covariance(kernel, x, x), kernel(x).to_dense())


@pytest.mark.parametrize("name", COMPOSED)
def test_what_is_composed_is_what_gpytorch_returns(name):
    generator = torch.Generator().manual_seed(0)
    x, others = (torch.rand(3, n, 4, generator=generator, dtype=torch.float64) for n in (6, 5))
    check_alike(random_numbers(COMPOSED[name]()), x, others)


@pytest.mark.parametrize("name", KERNELS)
def test_any_kernel_of_the_registry_is_what_gpytorch_returns(name):
    case, generator = KERNELS[name], torch.Generator().manual_seed(0)
    kernel = random_numbers(case.make(torch.Size()))
    x, others = (case.inputs(n, generator).double() for n in (6, 5))
    check_alike(kernel, x, others)
