"""Hyperparameter tuning that pays only for the feedback worth its price."""

from botorch_costly.parameters import Choice, Integer, Real
from botorch_costly.query import (
    AlwaysQuery,
    BernoulliQuery,
    ConfidenceBoundQuery,
    ConfidenceQuery,
    MixedQuery,
    PricedQuery,
    QueryRule,
)
from botorch_costly.records import Decision, Observation
from botorch_costly.rewards import GainReward, GuardedReward, RewardScale
from botorch_costly.schedule import Schedule
from botorch_costly.simulation import GridPolicy, simulate
from botorch_costly.space import SearchSpace
from botorch_costly.tuners import OnlineTuner

__version__ = "0.1.0"

__all__ = [
    "AlwaysQuery",
    "BernoulliQuery",
    "Choice",
    "ConfidenceBoundQuery",
    "ConfidenceQuery",
    "Decision",
    "GainReward",
    "GridPolicy",
    "GuardedReward",
    "Integer",
    "MixedQuery",
    "Observation",
    "OnlineTuner",
    "PricedQuery",
    "QueryRule",
    "Real",
    "RewardScale",
    "Schedule",
    "SearchSpace",
    "simulate",
]
