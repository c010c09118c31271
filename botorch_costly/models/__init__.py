"""Beliefs about the reward: BoTorch models."""

from botorch_costly.models.cost import LinearCost, LogCostGP, LogLinearCost
from botorch_costly.models.curve import CurveGP
from botorch_costly.models.curve_fitting import fit_curves
from botorch_costly.models.drifting_grid import DriftingGrid
from botorch_costly.models.streaming import StreamingGP
from botorch_costly.models.time_varying import TimeVaryingGP

__all__ = [
    "CurveGP",
    "DriftingGrid",
    "LinearCost",
    "LogCostGP",
    "LogLinearCost",
    "StreamingGP",
    "TimeVaryingGP",
    "fit_curves",
]
