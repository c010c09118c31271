"""Many trainings, each as long as it is worth: BOIL's question, and our answer."""

from botorch_costly.tuners.curves.optimizer import CurveOptimizer

__all__ = ["CurveOptimizer"]
