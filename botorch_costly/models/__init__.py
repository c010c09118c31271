"""Beliefs about the reward: BoTorch models."""

from botorch_costly.models.cost import LinearCost, LogCostGP, LogLinearCost
from botorch_costly.models.curve import CurveGP
from botorch_costly.models.curve_fitting import fit_curves
from botorch_costly.models.drifting_grid import DriftingGrid
from botorch_costly.models.ensemble import HyperparameterEnsemble, sample_hyperparameters
from botorch_costly.models.streaming import StreamingGP
from botorch_costly.models.subset import SubsetGP
from botorch_costly.models.time_varying import TimeVaryingGP

__all__ = [
    "CurveGP",
    "DriftingGrid",
    "HyperparameterEnsemble",
    "LinearCost",
    "LogCostGP",
    "LogLinearCost",
    "StreamingGP",
    "SubsetGP",
    "TimeVaryingGP",
    "fit_curves",
    "sample_hyperparameters",
]
