"""Samplers of Optuna; their extra is ``botorch_costly[optuna]``."""

from botorch_costly.integrations.optuna.transfer import TransferSampler

__all__ = ["TransferSampler"]
