"""Whether to stop a run: how likely the rest of it is to improve the best value."""

import math

from botorch_costly.validation.belief import CurveBelief, Reading

LEAST = 5  # readings before a stop
_SLOWEST = -6  # rate of the slope of a curve that is flat, as a power of ten
_POINTS = 8  # steps of the rest of the run at which the value is forecast


def improves(readings: list[Reading], best: float, last: int) -> float:
    """Return an upper bound of the probability that the rest of a run has a value below ``best``.

    By the reflection principle a path without drift goes below a level with at most twice the probability
    of being below it at the end; the largest of a few later steps serves for one with a drift.

    The training loss of later steps is unknown, so the forecast is from the readings alone. Rare jumps
    are left out: with them the bound is several times the share of runs that do improve.

    Args:
        readings: Readings so far, in the order of their steps.
        best: Value that has to be undercut, lower is better.
        last: Last step of the run.
    """
    step = readings[-1].step
    if step >= last:
        return 0.0
    alone = [reading._replace(training=math.nan) for reading in readings]
    belief = CurveBelief(alone, slowest=_SLOWEST)
    ratio = math.log((last + 1) / (step + 1))
    steps = [(step + 1) * math.exp(ratio * k / _POINTS) - 1 for k in range(1, _POINTS + 1)]
    return min(1.0, 2 * max(belief.at(round(later)).below(best, jumps=0.0) for later in steps))
