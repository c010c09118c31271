"""Covariance functions, as GPyTorch kernels."""

import contextlib

from botorch_costly.kernels.arms import ArmKernel
from botorch_costly.kernels.forgetting import ForgettingKernel
from botorch_costly.kernels.freeze_thaw import FreezeThawKernel
from botorch_costly.kernels.shift import ShiftKernel
from botorch_costly.kernels.subset import SubsetKernel
from botorch_costly.kernels.weighted_sum import WeightedSumKernel

with contextlib.suppress(ImportError):  # other versions of BoTorch name these modules differently
    import botorch_costly.kernels.fourier_features  # noqa: F401

__all__ = [
    "ArmKernel",
    "ForgettingKernel",
    "FreezeThawKernel",
    "ShiftKernel",
    "SubsetKernel",
    "WeightedSumKernel",
]
