"""When: ask/tell tuners."""

from typing import TYPE_CHECKING

from botorch_costly.first_use import on_first_use

if TYPE_CHECKING:
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
        slice_of,
    )
    from botorch_costly.tuners.online.importance import importance
    from botorch_costly.tuners.population import PopulationTuner
    from botorch_costly.tuners.subsets import Fabolas, Sampling, SubsetOptimizer
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
    "Fabolas",
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

if not TYPE_CHECKING:
    __getattr__, __dir__ = on_first_use(
        __name__,
        {
            "bandits": ("BanditTuner",),
            "baselines": ("FixedTuner", "RandomTuner"),
            "curves": ("Compression", "CurveOptimizer"),
            "online": (
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
                "slice_of",
            ),
            "online.importance": ("importance",),
            "population": ("PopulationTuner",),
            "subsets": ("Fabolas", "Sampling", "SubsetOptimizer"),
            "transfer": ("ByEvidence", "ByGaps", "TransferOptimizer"),
            "twins": ("Session", "TwinTuner", "tune"),
        },
    )
