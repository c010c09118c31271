"""A check of told values: fractions where the earlier studies have percent, or the other way round."""

import logging
from collections.abc import Sequence
from statistics import median

from botorch_costly.ask_tell.protocol import Outcome

_VALUES = 3  # after which they are checked
_logger = logging.getLogger(__name__)
_APART = 20.0  # times that the median of percent is at least that of fractions


def warn_of_units(outcomes: Sequence[Outcome], latest: Outcome, earlier: Sequence[float]) -> None:
    """Warn if the first values seem fractions, and those of earlier studies percent, or vice versa.

    Call it after each outcome: it warns at the third with a value, or never.

    Args:
        outcomes: All outcomes so far.
        latest: The latest of them.
        earlier: Finite values of all earlier studies.
    """
    told = [outcome.reward for outcome in outcomes if outcome.reward is not None]
    if latest.reward is None or len(told) != _VALUES:
        return
    units = units_of(told, earlier)
    if units is not None:
        _logger.warning(
            "The first %d values seem %s, those of the tasks %s: percent against fractions. Tell "
            "values in the units of the tasks.",
            *(_VALUES, *units),
        )


def units_of(told: Sequence[float], earlier: Sequence[float]) -> tuple[str, str] | None:
    """Return the units of the values and of the earlier ones, if one are percent, the other fractions.

    Percent are all in (1, 100], fractions all in [0, 1], and their medians differ by a factor of 20; or
    the negatives of all of them, as of errors that are to be maximized.

    Args:
        told: Finite values, as they were told.
        earlier: Finite values of all earlier studies.

    Example:
        >>> units_of([0.91, 0.88, 0.93], [85.0, 91.5, 93.2, 90.1])
        ('fractions', 'percent')
    """
    if _are_percent_of(earlier, told):
        return "fractions", "percent"
    if _are_percent_of(told, earlier):
        return "percent", "fractions"
    return None


def _are_percent_of(percent: Sequence[float], fractions: Sequence[float]) -> bool:
    if not percent or not fractions:
        return False
    if all(value <= 0 for value in (*percent, *fractions)):
        percent, fractions = [-v for v in percent], [-v for v in fractions]
    within = all(1 < v <= 100 for v in percent) and all(0 <= v <= 1 for v in fractions)
    return within and median(percent) >= _APART * median(fractions)
