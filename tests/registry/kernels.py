"""Kernels: ``make(batch_shape)`` in the default dtype, and ``inputs(n, generator)`` that it is for."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from gpytorch.kernels import Kernel, MaternKernel, ScaleKernel

from botorch_costly.kernels import (
    ArmKernel,
    ForgettingKernel,
    FreezeThawKernel,
    ShiftKernel,
    SubsetKernel,
    WeightedSumKernel,
)
from tests.registry.inputs import (
    arm_and_round,
    arms,
    rounds,
    shares,
    times,
    unit_and_round,
    units_and_shares,
)


class KernelCase(NamedTuple):
    make: Callable[[torch.Size], Kernel]
    inputs: Callable[[int, torch.Generator], torch.Tensor]


def _matern(batch, **kwargs):
    return ScaleKernel(MaternKernel(1.5, batch_shape=batch, **kwargs), batch_shape=batch)


def _forgetting(batch, column=None):
    dims = None if column is None else (column,)
    return ForgettingKernel(0.2, batch_shape=batch, active_dims=dims)


def _subset(basis, batch):
    kernel = SubsetKernel(basis, batch_shape=batch)
    kernel.end, kernel.change = 1.3, 0.4
    kernel.link = 0.6
    return kernel


def _shift(batch):
    base = MaternKernel(2.5, ard_num_dims=2, batch_shape=batch)
    kernel = ShiftKernel(base, configs=(0, 2), fidelities=(1, 3), moving=(2,))
    kernel.shift = torch.tensor([[0.3], [-0.2]])
    return kernel


def _arm(batch, column=None):
    return ArmKernel(1.7, batch_shape=batch, active_dims=None if column is None else (column,))


KERNELS = {
    "forgetting": KernelCase(_forgetting, rounds),
    "arms": KernelCase(_arm, arms),
    "freeze-thaw": KernelCase(
        lambda batch: FreezeThawKernel(alpha=1.3, beta=0.7, batch_shape=batch), times
    ),
    "subset loss": KernelCase(lambda batch: _subset("loss", batch), shares),
    "subset cost": KernelCase(lambda batch: _subset("cost", batch), shares),
    "shift": KernelCase(_shift, units_and_shares),
    "weighted sum": KernelCase(
        lambda batch: WeightedSumKernel(0.3, 1.0, batch_shape=batch), units_and_shares
    ),
    "matern * forgetting": KernelCase(
        lambda batch: _matern(batch, active_dims=(0, 1)) * _forgetting(batch, 2), unit_and_round
    ),
    "arms * forgetting": KernelCase(
        lambda batch: _arm(batch, 0) * _forgetting(batch, 1), arm_and_round
    ),
}
SPECTRAL = ("forgetting", "matern * forgetting")  # whose features pathwise sampling draws
