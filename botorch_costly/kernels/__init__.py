"""Covariance functions, as GPyTorch kernels."""

from botorch_costly.kernels.arms import ArmKernel
from botorch_costly.kernels.forgetting import ForgettingKernel

__all__ = ["ArmKernel", "ForgettingKernel"]
