"""Many trainings, each as long as it is worth: BOIL's question, and our answer."""

from botorch_costly.tuners.curves.optimizer import CurveOptimizer
from botorch_costly.tuners.curves.scores import Compression

__all__ = ["Compression", "CurveOptimizer"]
