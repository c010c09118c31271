"""Bayesian optimization with evaluations on subsets of the data, or at other fidelities."""

from botorch_costly.tuners.subsets.belief import Sampling
from botorch_costly.tuners.subsets.optimizer import SubsetOptimizer

__all__ = ["Sampling", "SubsetOptimizer"]
