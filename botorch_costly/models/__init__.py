"""Beliefs about the reward: BoTorch models."""

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
from botorch_costly.moved import moved_names

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

__getattr__ = moved_names(
    __name__, "botorch_costly.baselines", {"EmpiricalPriorGP", "RankWeightedGP", "ScaMLGP"}
)
