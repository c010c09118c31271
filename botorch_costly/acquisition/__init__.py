"""Where to query: BoTorch acquisition functions and exploration schedules."""

from botorch_costly.acquisition.beta import (
    BetaSchedule,
    CompactDomainBeta,
    ConstantBeta,
    FiniteDomainBeta,
    LogBeta,
)
from botorch_costly.acquisition.cost_weighted import PBGI, LogEIPerCost
from botorch_costly.acquisition.entropy_search import EntropySearch, EntropySearchPerCost
from botorch_costly.acquisition.factories import PI, UCB, AcquisitionFactory, LogEI, as_factory
from botorch_costly.acquisition.fixed_round import at_round
from botorch_costly.acquisition.improvement import (
    TimeVaryingEI,
    TimeVaryingLogEI,
    TimeVaryingPI,
    best_mean,
)
from botorch_costly.acquisition.knowledge_gradient import TimeVaryingKG
from botorch_costly.acquisition.representers import representers
from botorch_costly.acquisition.robust_meta import RMGPUCB, Blend, TaskUCB
from botorch_costly.acquisition.robust_meta_sampling import RMGPTS
from botorch_costly.acquisition.ucb import TimeVaryingUCB
from botorch_costly.moved import moved_names

__all__ = [
    "PBGI",
    "PI",
    "RMGPTS",
    "RMGPUCB",
    "UCB",
    "AcquisitionFactory",
    "BetaSchedule",
    "Blend",
    "CompactDomainBeta",
    "ConstantBeta",
    "EntropySearch",
    "EntropySearchPerCost",
    "FiniteDomainBeta",
    "LogBeta",
    "LogEI",
    "LogEIPerCost",
    "TaskUCB",
    "TimeVaryingEI",
    "TimeVaryingKG",
    "TimeVaryingLogEI",
    "TimeVaryingPI",
    "TimeVaryingUCB",
    "as_factory",
    "at_round",
    "best_mean",
    "representers",
]

__getattr__ = moved_names(__name__, "botorch_costly.baselines", {"TAF"})
