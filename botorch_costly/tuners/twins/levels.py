"""Levels of a metric, by whose differences configurations are compared."""

import math

from botorch_costly.rewards.metric_gain import Kind, check_metric, log_gain

_LEAST_ERROR = 1e-4  # share of errors; smaller ones count as this


def level_of(kind: Kind, value: float, least: float | None = None) -> float:
    """Return ``-log`` of a loss, or of the share of errors; -inf if the value is not finite.

    Differences of levels have no unit.

    Args:
        kind: ``"loss"``, at least 0 and smaller is better, or ``"accuracy"``, a fraction in [0, 1].
        value: Metric, a number or a scalar of NumPy or torch.
        least: Smallest loss above 0 so far, see ``log_gain``.

    Raises:
        InvalidArgumentError: If the value is not a number, or finite and impossible for its kind.
    """
    number = check_metric(kind, value)
    if not math.isfinite(number):
        return -math.inf
    if kind == "loss":
        return log_gain(number, least)
    return log_gain(max(1 - number, _LEAST_ERROR), None)
