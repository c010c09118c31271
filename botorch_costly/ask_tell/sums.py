"""A check of told costs: sums, or readings of a clock, in place of the cost of each evaluation."""

import logging
import time
from collections.abc import Iterable, Sequence
from itertools import islice, pairwise

_COUNT = 10  # costs that are checked
_GROWN = 3.0  # times the first cost that the last one is at least, of sums
_APART = 1e-3  # of the first cost, by which readings of a clock differ at most, ...
_LATE = 1e-2  # ... or of the clock's time, by which the last reading is late at most
_logger = logging.getLogger(__name__)


def warn_of_rising(costs: Iterable[float]) -> None:
    """Warn if the first costs rise with each evaluation, as the sum of all costs and a clock do.

    Costs of separate evaluations rise ten times in a row with a probability of 1 / 10!. Costs that grow
    or drift may do so; they hardly differ by so little, or grow by so much. Call it with all costs so far
    after each of them: it warns at the tenth, or never.

    Args:
        costs: Costs of the evaluations that were asked for, in the order in which they were asked for:
            sums of evaluations side by side, which are told in another order, are not recognized.
    """
    first = list(islice(costs, _COUNT + 1))
    if len(first) != _COUNT or not all(cost > before for before, cost in pairwise(first)):
        return
    if _are_readings(first):
        _logger.warning(
            "The first %d costs rise with each evaluation, from %.12g to %.12g, as readings of a clock "
            "do. Tell how long each evaluation took: the difference of two readings.",
            *(_COUNT, first[0], first[-1]),
        )
    elif first[-1] >= _GROWN * first[0]:
        _logger.warning(
            "The first %d costs rise with each evaluation, from %.3g to %.3g. If they are sums, tell the "
            "cost of each evaluation alone.",
            *(_COUNT, first[0], first[-1]),
        )


def _are_readings(costs: Sequence[float]) -> bool:
    """Return whether rising costs hardly differ, or the last one is what a clock shows now.

    The second sign is that of a clock that began shortly ago, such as that of a machine just started.
    """
    now = time.time(), time.perf_counter()
    shown = any(0 <= clock - costs[-1] <= _LATE * clock for clock in now)
    return shown or costs[-1] - costs[0] <= _APART * costs[0]
