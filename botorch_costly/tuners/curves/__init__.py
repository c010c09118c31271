"""Bayesian optimization over learning curves: the next training and its length are chosen together."""

from botorch_costly.tuners.curves.optimizer import CurveOptimizer
from botorch_costly.tuners.curves.scores import Compression

__all__ = ["Compression", "CurveOptimizer"]
