"""A pruner that weighs what the rest of a trial may bring against what it costs."""

from botorch_costly.integrations.optuna import CurvePruner

__all__ = ["CurvePruner"]
