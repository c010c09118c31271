"""CE-GP-UCB: tuning inside one training run."""

from botorch_costly.tuners.online.importance import Importance, importance
from botorch_costly.tuners.online.options import Design, Hold, Limits, Prior, Refit
from botorch_costly.tuners.online.slices import BestValues, Slice, Told, best_values, slice_of
from botorch_costly.tuners.online.tuner import OnlineTuner

__all__ = [
    "BestValues",
    "Design",
    "Hold",
    "Importance",
    "Limits",
    "OnlineTuner",
    "Prior",
    "Refit",
    "Slice",
    "Told",
    "best_values",
    "importance",
    "slice_of",
]
