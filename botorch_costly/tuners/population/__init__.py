"""Population-based tuning: several members of one run share one model."""

from botorch_costly.tuners.population.belief import PopulationBelief
from botorch_costly.tuners.population.tuner import PopulationTuner

__all__ = ["PopulationBelief", "PopulationTuner"]
