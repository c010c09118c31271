"""Earlier studies that start a new one fast, and cannot harm it for long."""

from botorch_costly.tuners.transfer.optimizer import TransferOptimizer
from botorch_costly.tuners.transfer.options import ByEvidence, ByGaps

__all__ = ["ByEvidence", "ByGaps", "TransferOptimizer"]
