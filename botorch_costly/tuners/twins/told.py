"""The metrics that a run was told, and whether it has passed the best: the latest ones are worse."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from botorch_costly.records import Observation
from botorch_costly.rewards.metric_gain import Kind
from botorch_costly.rewards.shares import TENS, examples_of

_FEWEST = 6  # different metrics with which it may be said; few values are those of few examples
_LATEST = 3  # metrics whose median is compared with the best one
_LEAST = 0.15  # log loss by which they have to be worse, and
_NOISE = 6.0  # standard deviations of the noise, for the best of many is good by chance, too, and
_ERRORS = 3.0  # standard errors of a share of examples
_DEVIATION = 1.4826 / math.sqrt(6.0)  # of the noise, by the median bend of three successive levels


class Passed(NamedTuple):
    """The best metric of a run that is clearly worse by now."""

    round: int
    best: float
    now: float


class Told(NamedTuple):
    """A finite metric that was told, and its level."""

    round: int
    metric: float
    level: float  # infinite for a loss of 0 before any above 0


def noun_of(kind: Kind) -> str:
    """Return the name of the quantity that falls as a network learns."""
    return "error" if kind == "accuracy" else "loss"


def told_in(outcomes: Iterable[Observation], level_of: Callable[[float], float]) -> list[Told]:
    """Return the finite metrics of queries, with their levels."""
    metrics = [(outcome.round, outcome.reward) for outcome in outcomes]
    levels = [(n, metric, level_of(metric)) for n, metric in metrics if metric is not None]
    return [Told(n, m, math.inf if math.isnan(level) else level) for n, m, level in levels]


def sentence_on(kind: Kind, told: Sequence[Told]) -> str:
    """Return a sentence on the first, the best and the latest of some metrics."""
    best = max(told, key=lambda each: each.level)
    return (
        f"{kind}: {told[0].metric:.4g} at first, {best.metric:.4g} at best (round {best.round}), "
        f"{told[-1].metric:.4g} at last"
    )


def examples_in(kind: Kind, told: Sequence[Told]) -> int | None:
    """Return the number of examples of which losses are shares; None if they are none."""
    examples = examples_of([each.metric for each in told]) if kind == "loss" else None
    return None if examples in TENS else examples


def passed_by(run: Sequence[Told]) -> Passed | None:
    """Return the best metric of a run if its latest ones are clearly worse; None if they are not.

    Args:
        run: Metrics of the states that the present one comes from, in the order of the rounds.
    """
    run = [told for told in run if math.isfinite(told.level)]
    if len({told.metric for told in run}) < _FEWEST:
        return None
    best = max(run, key=lambda told: told.level)
    moves = [later.level - told.level for told, later in pairwise(run)]
    noise = _NOISE * _DEVIATION * statistics.median(abs(b - a) for a, b in pairwise(moves))
    behind = best.level - statistics.median(told.level for told in run[-_LATEST:])
    if behind < max(_LEAST, noise, _ERRORS * _error_of(run, math.exp(-best.level))):
        return None
    return Passed(best.round, best.metric, run[-1].metric)


def _error_of(run: Sequence[Told], share: float) -> float:
    """Return the standard error of the logarithm of a share of errors; 0 if the metrics are no shares."""
    examples = examples_of([told.metric for told in run])
    if examples is None:
        return 0.0
    share = max(share, 1 / examples)
    return math.sqrt((1 - share) / (share * examples))
