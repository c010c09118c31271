"""Models, acquisition functions and a generation node for Ax; their extra is ``botorch_costly[ax]``."""

from botorch_costly.integrations.ax.acquisition import AnalyticAcquisition
from botorch_costly.integrations.ax.node import TransferNode
from botorch_costly.integrations.ax.storage import register

__all__ = ["AnalyticAcquisition", "TransferNode", "register"]
