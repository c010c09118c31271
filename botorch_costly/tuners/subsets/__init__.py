"""Bayesian optimization with evaluations on subsets of the data, or at other fidelities."""

from botorch_costly.tuners.subsets.belief import Sampling
from botorch_costly.tuners.subsets.optimizer import SubsetOptimizer
from botorch_costly.tuners.subsets.published import Fabolas

__all__ = ["Fabolas", "Sampling", "SubsetOptimizer"]
