"""Tuning by twins: configurations are compared from one saved state, and the best state is kept."""

from botorch_costly.tuners.twins.diagnosis import TwinDiagnosis
from botorch_costly.tuners.twins.session import Session
from botorch_costly.tuners.twins.tune import tune
from botorch_costly.tuners.twins.tuner import TwinTuner

__all__ = ["Session", "TwinDiagnosis", "TwinTuner", "tune"]
