"""Samplers of Optuna; their extra is ``botorch_costly[optuna]``."""

from botorch_costly.integrations.optuna.sampler import TransferSampler

__all__ = ["TransferSampler"]
