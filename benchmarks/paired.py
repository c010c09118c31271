"""Two methods on the same seeds."""

import math
from collections.abc import Sequence
from statistics import mean, stdev
from typing import NamedTuple


class Paired(NamedTuple):
    """How much one method has more than another, on average over seeds."""

    mean: float
    low: float  # of the 95 % interval
    high: float
    p: float  # of the paired t-test; NaN where the difference is the same on all seeds


def paired(ours: Sequence[float], theirs: Sequence[float]) -> Paired | None:
    """Compare results seed by seed; None if there are fewer than two.

    Args:
        ours: One number a seed.
        theirs: The same seeds in the same order.
    """
    from scipy.stats import ttest_rel

    differences = [a - b for a, b in zip(ours, theirs, strict=True)]
    if len(differences) < 2:
        return None
    middle = mean(differences)
    if stdev(differences) <= 1e-9:  # rounding alone
        return Paired(middle, middle, middle, math.nan)
    test = ttest_rel(ours, theirs)
    low, high = test.confidence_interval(0.95)
    return Paired(middle, float(low), float(high), float(test.pvalue))
