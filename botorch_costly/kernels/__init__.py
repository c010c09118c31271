"""Covariance functions, as GPyTorch kernels."""

from botorch_costly.kernels.arms import ArmKernel
from botorch_costly.kernels.forgetting import ForgettingKernel
from botorch_costly.kernels.freeze_thaw import FreezeThawKernel
from botorch_costly.kernels.shift import ShiftKernel
from botorch_costly.kernels.subset import SubsetKernel

__all__ = ["ArmKernel", "ForgettingKernel", "FreezeThawKernel", "ShiftKernel", "SubsetKernel"]
