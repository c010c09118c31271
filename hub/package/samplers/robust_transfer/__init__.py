"""A sampler that begins where earlier studies ended, and is not harmed for long if they mislead."""

from botorch_costly.integrations.optuna import TransferSampler

__all__ = ["TransferSampler"]
