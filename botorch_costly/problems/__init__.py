"""Problems whose optimum is known, to compare methods on."""

from botorch_costly.problems.curves import CurveProblem
from botorch_costly.problems.drifting import DriftingFunction
from botorch_costly.problems.drifting_arms import DriftingArms
from botorch_costly.problems.landscapes import DriftingHartmann, DriftingPath, DriftingSample
from botorch_costly.problems.subsets import SubsetProblem

__all__ = [
    "CurveProblem",
    "DriftingArms",
    "DriftingFunction",
    "DriftingHartmann",
    "DriftingPath",
    "DriftingSample",
    "SubsetProblem",
]
