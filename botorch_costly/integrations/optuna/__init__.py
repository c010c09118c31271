"""Samplers and a pruner of Optuna; their extra is ``botorch_costly[optuna]``."""

from botorch_costly.integrations.optuna.curves import CurveSampler
from botorch_costly.integrations.optuna.pruner import CurvePruner
from botorch_costly.integrations.optuna.subsets import SubsetSampler
from botorch_costly.integrations.optuna.transfer import TransferSampler
from botorch_costly.integrations.optuna.trials import checkpoint_of

__all__ = ["CurvePruner", "CurveSampler", "SubsetSampler", "TransferSampler", "checkpoint_of"]
