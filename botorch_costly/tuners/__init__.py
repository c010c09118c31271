"""When: ask/tell tuners."""

from botorch_costly.tuners.bandits import BanditTuner
from botorch_costly.tuners.baselines import FixedTuner, RandomTuner
from botorch_costly.tuners.curves import Compression, CurveOptimizer
from botorch_costly.tuners.online import (
    BestValues,
    Design,
    Hold,
    Importance,
    Limits,
    OnlineTuner,
    Prior,
    Refit,
    Slice,
    Told,
    best_values,
    importance,
    slice_of,
)
from botorch_costly.tuners.population import PopulationTuner
from botorch_costly.tuners.subsets import Sampling, SubsetOptimizer
from botorch_costly.tuners.transfer import ByEvidence, ByGaps, TransferOptimizer
from botorch_costly.tuners.twins import Session, TwinTuner, tune

__all__ = [
    "BanditTuner",
    "BestValues",
    "ByEvidence",
    "ByGaps",
    "Compression",
    "CurveOptimizer",
    "Design",
    "FixedTuner",
    "Hold",
    "Importance",
    "Limits",
    "OnlineTuner",
    "PopulationTuner",
    "Prior",
    "RandomTuner",
    "Refit",
    "Sampling",
    "Session",
    "Slice",
    "SubsetOptimizer",
    "Told",
    "TransferOptimizer",
    "TwinTuner",
    "best_values",
    "importance",
    "slice_of",
    "tune",
]
