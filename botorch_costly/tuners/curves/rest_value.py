"""Value of the rest of a training beside a new one, whose configuration an engine chooses."""

import torch
from torch import Tensor

from botorch_costly.ask_tell.design import sobol
from botorch_costly.device import check_tkwargs
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.curves.ends import Common, Outlook
from botorch_costly.tuners.curves.growth import GrowthBelief
from botorch_costly.tuners.curves.lengths import Ladder
from botorch_costly.tuners.curves.trainings import Training, Trainings
from botorch_costly.tuners.earlier.studies import EarlierStudies

_SPREAD = 256  # points that stand for what an engine may propose next


class RestValue:
    """Compares the rest of a training with a new configuration, in improvement per cost.

    The rest of a training is worth the expected improvement at its end over the best latest value, by
    the cost until then. A new configuration is worth the mean expected improvement of configurations
    spread over the space, by their mean cost: nothing is known of how an engine chooses. The belief is
    that of values, which grow (``curves.growth``); a training that stands still is worth less
    (``curves.standstill``).

    Args:
        space: Search space of the configurations.
        ladder: Iterations whose rewards enter the belief.
    """

    def __init__(self, space: SearchSpace, ladder: Ladder) -> None:
        tkwargs = check_tkwargs(torch.float64, "cpu")
        self._spread = sobol(space, _SPREAD, 0).to(**tkwargs)
        self._ladder = ladder
        none = EarlierStudies(space, (), 1.0, fill=None, tkwargs=tkwargs)
        self._belief = GrowthBelief(self._spread[:0], ladder, none)

    def log_ratio(self, trainings: Trainings, training: Training) -> float:
        """Return the logarithm of the value of a training's rest by that of a new configuration.

        Args:
            trainings: All trainings; at least two have a reward, and none is pending.
            training: One of them that may go on.
        """
        with torch.no_grad():
            outlook = self._belief.outlook(trainings, Common.of(trainings, self._ladder))
            (rest,) = outlook.promises([training], resumes=True)
            return rest - self._of_new(outlook)

    def _of_new(self, outlook: Outlook) -> float:
        """Return the logarithm of the mean improvement by the mean cost of the spread points."""
        improvement = outlook.log_improvement(self._spread)
        cost: Tensor = improvement - outlook.promise(self._spread)
        return float(improvement.logsumexp(0) - cost.logsumexp(0))
