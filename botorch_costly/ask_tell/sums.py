"""A check of told costs: the sum so far in place of the cost of each evaluation."""

import logging
from collections.abc import Iterable
from itertools import islice, pairwise

_COUNT = 10  # costs that are checked
_GROWN = 3.0  # times the first cost that the last one is at least
_logger = logging.getLogger(__name__)


def warn_of_sums(costs: Iterable[float]) -> None:
    """Warn if the first costs rise with each evaluation, as the sum of all costs so far does.

    Costs of separate evaluations rise ten times in a row with a probability of 1 / 10!. Call it with all
    costs so far after each of them: it warns at the tenth, or never.

    Args:
        costs: Costs of the evaluations that were asked for, in the order in which they were asked for:
            sums of evaluations side by side, which are told in another order, are not recognized.
    """
    first = list(islice(costs, _COUNT + 1))
    if len(first) != _COUNT or first[-1] < _GROWN * first[0]:
        return
    if all(cost > before for before, cost in pairwise(first)):
        _logger.warning(
            "The first %d costs rise with each evaluation, from %.3g to %.3g. If they are sums, tell the "
            "cost of each evaluation alone.",
            *(_COUNT, first[0], first[-1]),
        )
