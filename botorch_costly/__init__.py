"""Hyperparameter tuning that pays only for the feedback worth its price."""

from typing import TYPE_CHECKING

from botorch_costly.first_use import on_first_use

if TYPE_CHECKING:
    from botorch_costly.acquisition import PI as PI, UCB as UCB, LogEI as LogEI
    from botorch_costly.ask_tell.saving import load, save
    from botorch_costly.ask_tell.search import Search as Search
    from botorch_costly.curve_records import (
        CurveDecision as CurveDecision,
        CurveObservation as CurveObservation,
    )
    from botorch_costly.parameters import Choice, Integer, Real, Scheduled
    from botorch_costly.population_records import (
        PopulationDecision as PopulationDecision,
        PopulationObservation as PopulationObservation,
    )
    from botorch_costly.query import (
        AlwaysQuery,
        BernoulliQuery as BernoulliQuery,
        ConfidenceBoundQuery as ConfidenceBoundQuery,
        ConfidenceQuery,
        MixedQuery as MixedQuery,
        PricedQuery,
        QueryRule as QueryRule,
    )
    from botorch_costly.records import Decision, Observation
    from botorch_costly.rewards import (
        BeforeAfterReward,
        GainReward,
        GoodState as GoodState,
        GuardedReward,
        RewardScale,
    )
    from botorch_costly.schedule import Schedule
    from botorch_costly.simulation import GridPolicy as GridPolicy
    from botorch_costly.simulation.simulate import simulate as simulate
    from botorch_costly.space import SearchSpace
    from botorch_costly.subset_records import (
        SubsetDecision as SubsetDecision,
        SubsetObservation as SubsetObservation,
    )
    from botorch_costly.task_readers import (
        task_from_ax,
        task_from_history,
        task_from_optuna,
        tasks_from_csv,
        tasks_from_history,
        tasks_from_mlflow,
        tasks_from_wandb,
    )
    from botorch_costly.task_records import Task
    from botorch_costly.transfer_records import TransferDecision as TransferDecision
    from botorch_costly.tuners import (
        BanditTuner,
        ByEvidence as ByEvidence,
        ByGaps,
        Compression,
        CurveOptimizer,
        Design as Design,
        Fabolas as Fabolas,
        FixedTuner as FixedTuner,
        Hold as Hold,
        Limits as Limits,
        OnlineTuner,
        PopulationTuner,
        Prior as Prior,
        RandomTuner as RandomTuner,
        Refit as Refit,
        Sampling as Sampling,
        Session,
        SubsetOptimizer,
        TransferOptimizer,
        TwinTuner,
        tune,
    )
    from botorch_costly.validation import Validation

__version__ = "0.1.0"

# What programs need most. The names above that are imported "as" themselves are found, too; their modules
# list them.
__all__ = [
    "AlwaysQuery",
    "BanditTuner",
    "BeforeAfterReward",
    "ByGaps",
    "Choice",
    "Compression",
    "ConfidenceQuery",
    "CurveOptimizer",
    "Decision",
    "GainReward",
    "GuardedReward",
    "Integer",
    "Observation",
    "OnlineTuner",
    "PopulationTuner",
    "PricedQuery",
    "Real",
    "RewardScale",
    "Schedule",
    "Scheduled",
    "SearchSpace",
    "Session",
    "SubsetOptimizer",
    "Task",
    "TransferOptimizer",
    "TwinTuner",
    "Validation",
    "load",
    "save",
    "task_from_ax",
    "task_from_history",
    "task_from_optuna",
    "tasks_from_csv",
    "tasks_from_history",
    "tasks_from_mlflow",
    "tasks_from_wandb",
    "tune",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = on_first_use(
        __name__,
        {
            "acquisition": ("PI", "UCB", "LogEI"),
            "ask_tell.search": ("Search",),
            "ask_tell.saving": ("load", "save"),
            "curve_records": ("CurveDecision", "CurveObservation"),
            "parameters": ("Choice", "Integer", "Real", "Scheduled"),
            "population_records": ("PopulationDecision", "PopulationObservation"),
            "query": (
                "AlwaysQuery",
                "BernoulliQuery",
                "ConfidenceBoundQuery",
                "ConfidenceQuery",
                "MixedQuery",
                "PricedQuery",
                "QueryRule",
            ),
            "records": ("Decision", "Observation"),
            "rewards": (
                "BeforeAfterReward",
                "GainReward",
                "GoodState",
                "GuardedReward",
                "RewardScale",
            ),
            "schedule": ("Schedule",),
            "simulation": ("GridPolicy",),
            "simulation.simulate": ("simulate",),
            "space": ("SearchSpace",),
            "subset_records": ("SubsetDecision", "SubsetObservation"),
            "task_readers": (
                "task_from_ax",
                "task_from_history",
                "task_from_optuna",
                "tasks_from_csv",
                "tasks_from_history",
                "tasks_from_mlflow",
                "tasks_from_wandb",
            ),
            "task_records": ("Task",),
            "transfer_records": ("TransferDecision",),
            "tuners": (
                "BanditTuner",
                "ByEvidence",
                "ByGaps",
                "Compression",
                "CurveOptimizer",
                "Design",
                "Fabolas",
                "FixedTuner",
                "Hold",
                "Limits",
                "OnlineTuner",
                "PopulationTuner",
                "Prior",
                "RandomTuner",
                "Refit",
                "Sampling",
                "Session",
                "SubsetOptimizer",
                "TransferOptimizer",
                "TwinTuner",
                "tune",
            ),
            "validation": ("Validation",),
        },
    )
