"""Several members of one run, tuned together by one belief."""

from botorch_costly.tuners.population.belief import PopulationBelief
from botorch_costly.tuners.population.tuner import PopulationTuner

__all__ = ["PopulationBelief", "PopulationTuner"]
