"""Models, acquisition functions and generation nodes for Ax; their extra is ``botorch_costly[ax]``."""

from botorch_costly.integrations.ax.acquisition import AnalyticAcquisition
from botorch_costly.integrations.ax.node import TransferNode
from botorch_costly.integrations.ax.storage import register
from botorch_costly.integrations.ax.subset_node import SubsetNode

__all__ = ["AnalyticAcquisition", "SubsetNode", "TransferNode", "register"]
