"""From metrics to levels: minus the logarithm of a loss, whose differences have no unit."""

import math
import sys
from typing import Literal, get_args

from botorch_costly.errors import InvalidArgumentError, check
from botorch_costly.plain import as_number
from botorch_costly.tuners.twins.constants import CONSTANTS

Metric = Literal["loss", "accuracy"]


def check_metric(kind: str) -> str:
    """Return the kind of a metric if it is known.

    Raises:
        InvalidArgumentError: If it is not.
    """
    known = list(get_args(Metric))
    check(isinstance(kind, str) and kind in known, "metric", f"one of {known}", kind)
    return kind


def level_of(kind: str, value: float, least: float | None = None) -> float:
    """Return ``-log`` of a loss, or of the share of errors; -inf of what is not finite.

    Args:
        kind: ``"loss"``, at least 0 and smaller is better, or ``"accuracy"``, a fraction in [0, 1].
        value: Of the metric, a number or a scalar of NumPy or torch.
        least: The smallest loss above 0 so far, which a loss of exactly 0 counts as: one saturated
            query is no advantage that a later loss has fallen behind.

    Raises:
        InvalidArgumentError: If it is no number, or finite and impossible for its kind.
    """
    number = as_number("metric", value)
    if not math.isfinite(number):
        return -math.inf
    if kind == "loss":
        expected = "a loss >= 0 (of a metric to be maximized, say metric='accuracy')"
        check(number >= 0, "metric", expected, value, InvalidArgumentError)
        floor = sys.float_info.min if least is None else least
        return -math.log(number or floor)
    check(0 <= number <= 1, "metric", "an accuracy as a fraction in [0, 1]", value)
    return -math.log(max(1 - number, CONSTANTS.least_error))
