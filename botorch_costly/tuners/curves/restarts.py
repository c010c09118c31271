"""A check of continued trainings: curves that begin anew, and costs of all that was trained so far."""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, pairwise

from botorch_costly.curve_records import CurveDecision, CurveObservation

_RESTARTS = 3  # continued segments that begin anew before it is said
_MOST = 2 / 3  # share of them, from here on, among all continued segments that tell
_LATEST = 32  # segments that are read: a checkpoint is not forgotten later
_READ = 16  # first values of a segment that tell how wide and how noisy the values are
_NEARER = 2.0  # how much nearer a segment begins to where its training began
_CLEAR = 6.0  # progress that counts, in standard deviations of the noise ...
_WIDE = 0.1  # ... and in widths of the values so far, without the lowest and highest tenth
_SUMS = 4  # continued segments whose costs are checked
_APART = 0.4  # spread of their logarithms, by iteration of the segment, that tells anything ...
_LESS = 0.3  # ... and what is left of it, by iteration of the training, of sums
_FEWEST = 3  # bends of curves, from which on the noise is known
_NORMAL = 0.6745 * 6**0.5  # median absolute second difference of normal noise, over its deviation

Segment = tuple[CurveDecision, CurveObservation]


def seem_restarted(segments: Iterable[Segment]) -> bool:
    """Return whether several continued segments begin where their trainings began.

    A segment tells something if its training had made clear progress: more than noise explains, which the
    second differences of the curves show. It begins anew if its first value is far nearer to the value
    that the training had at first, after as many iterations, than to the training's latest value. Later
    segments change nothing once it is so.

    Args:
        segments: Segments with their outcomes, in order.
    """
    known: dict[int, dict[int, float]] = {}  # values of each training by iteration, the first ones
    # Number of the last measured iteration, and its value.
    latest: dict[int, tuple[int, float]] = {}
    values: list[float] = []
    bends: list[float] = []
    told: list[bool] = []
    for decision, outcome in islice(segments, _LATEST):
        curve = {n: v for n, v in enumerate(outcome.curve, 1) if v is not None}
        if not curve:
            continue
        number, since = decision.training, decision.since
        first = list(islice(curve.values(), _READ))
        values, bends = [*values, *first], [*bends, *_bends(first)]
        if since and number in latest:
            told += _votes(curve, known[number], latest[number], _least(values, bends))
        if sum(told) >= _RESTARTS:
            return sum(told) >= _MOST * len(told)
        for n, value in curve.items():
            known.setdefault(number, {}).setdefault(since + n, value)
            latest[number] = since + n, value
    return False


def begin_anew(segments: Sequence[Segment], latest: CurveObservation) -> bool:
    """Return whether ``seem_restarted`` holds since the latest outcome; False once that is past."""
    if latest.round not in [outcome.round for _, outcome in segments[:_LATEST]]:
        return False
    before = [segment for segment in segments if segment[1].round != latest.round]
    return seem_restarted(segments) and not seem_restarted(before)


def cost_sums(segments: Sequence[Segment], latest: CurveObservation) -> bool:
    """Return whether costs are those of trainings so far, at the fourth continued segment.

    By iteration of the segment such costs are far apart, and by iteration of the training they are not.

    Args:
        segments: Segments with their outcomes, in order.
        latest: The latest outcome.
    """
    told = [(decision.since, outcome) for decision, outcome in segments if outcome.curve]
    continued = [outcome for since, outcome in told if since]
    if len(continued) != _SUMS or latest not in continued:
        return False
    own = [math.log(outcome.cost / len(outcome.curve)) for _, outcome in told]
    whole = [math.log(outcome.cost / (since + len(outcome.curve))) for since, outcome in told]
    spread = statistics.stdev(own)
    return spread >= _APART and statistics.stdev(whole) <= _LESS * spread


def _votes(
    curve: Mapping[int, float],
    known: Mapping[int, float],
    latest: tuple[int, float],
    least: float,
) -> list[bool]:
    """Return whether a segment begins anew, as a list; an empty one if it cannot be said.

    Args:
        curve: Values of the segment by iteration, counted from its beginning.
        known: Values of the training before it, by iteration.
        latest: Last iteration of the training with a value, and the value.
        least: Least progress that tells anything.
    """
    offset, first = next(iter(curve.items()))
    began, (iteration, ended) = known.get(offset), latest
    if began is None or iteration <= offset or abs(ended - began) <= least:
        return []
    return [_NEARER * abs(first - began) < abs(first - ended)]


def _least(values: Sequence[float], bends: Sequence[float]) -> float:
    """Return the least clear progress; infinity as long as the noise is not known."""
    if len(bends) < _FEWEST:
        return float("inf")
    tenths = statistics.quantiles(values, n=10)
    noise = statistics.median(bends) / _NORMAL
    return max(_CLEAR * noise, _WIDE * (tenths[-1] - tenths[0]))


def _bends(curve: Sequence[float]) -> list[float]:
    """Return the absolute second differences of a curve."""
    steps = [after - before for before, after in pairwise(curve)]
    return [abs(after - before) for before, after in pairwise(steps)]
