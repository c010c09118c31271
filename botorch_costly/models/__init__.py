"""Beliefs about the reward: BoTorch models."""

import importlib
import warnings
from typing import Any

from botorch_costly.models.cost import LinearCost, LogCostGP, LogLinearCost
from botorch_costly.models.curve import CurveGP
from botorch_costly.models.curve_fitting import fit_curves
from botorch_costly.models.drifting_grid import DriftingGrid
from botorch_costly.models.ensemble import HyperparameterEnsemble, sample_hyperparameters
from botorch_costly.models.similarity import adapt_similarity, learn_similarity
from botorch_costly.models.streaming import StreamingGP
from botorch_costly.models.subset import SubsetGP
from botorch_costly.models.task_ensemble import TaskEnsemble
from botorch_costly.models.task_paths import TaskPaths
from botorch_costly.models.time_varying import TimeVaryingGP
from botorch_costly.models.transfer import Similarity, TransferGP

__all__ = [
    "CurveGP",
    "DriftingGrid",
    "HyperparameterEnsemble",
    "LinearCost",
    "LogCostGP",
    "LogLinearCost",
    "Similarity",
    "StreamingGP",
    "SubsetGP",
    "TaskEnsemble",
    "TaskPaths",
    "TimeVaryingGP",
    "TransferGP",
    "adapt_similarity",
    "fit_curves",
    "learn_similarity",
    "sample_hyperparameters",
]


_MOVED = {"EmpiricalPriorGP", "RankWeightedGP", "ScaMLGP"}


def __getattr__(name: str) -> Any:
    """Return a name that is in ``baselines`` now, and warn; for one version."""
    if name not in _MOVED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    said = f"`{name}` is in `botorch_costly.baselines` now."
    warnings.warn(said, FutureWarning, stacklevel=2)
    return getattr(importlib.import_module("botorch_costly.baselines"), name)
