"""Evaluations on parts of the data, or at other fidelities, that tell of the optimum of the whole."""

from botorch_costly.tuners.subsets.belief import Sampling
from botorch_costly.tuners.subsets.optimizer import SubsetOptimizer

__all__ = ["Sampling", "SubsetOptimizer"]
