"""The record of a segment's outcome, made from the arguments of ``tell``."""

import math
from collections.abc import Sequence

from torch import Tensor

from botorch_costly.curve_records import CurveDecision, CurveObservation
from botorch_costly.errors import InvalidShapeError, check, check_positive
from botorch_costly.plain import as_number


def curve_observation_of(
    decision: CurveDecision,
    curve: Sequence[float | None] | Tensor | None,
    *,
    cost: float | None,
    broken: bool | None,
    priced: bool | None,
) -> CurveObservation:
    """Return the checked record of a segment.

    Args:
        decision: The segment.
        curve: A value for each iteration, or for the first ones; None for an iteration without a
            measurement. None in place of the curve if the segment failed.
        cost: Cost of the segment; if None, the number of its iterations, but at least one.
        broken: Whether the training has diverged; if None, whether its last value is not finite.
        priced: Whether earlier segments had costs; None before the first.

    Raises:
        InvalidShapeError: If the curve is empty, longer than the segment, or no row of numbers.
        InvalidArgumentError: If a value is no number, the cost is not positive, or only some segments
            have costs.
    """
    measured = [] if curve is None else _values(curve, decision)
    values = tuple(v if v is not None and math.isfinite(v) else None for v in measured)
    diverged = len(measured) > 0 and measured[-1] is not None and values[-1] is None
    consistent = priced in (None, cost is not None)
    check(consistent, "cost", "a cost, as before" if priced else "no cost, as before", cost)
    check(broken is None or isinstance(broken, bool), "broken", "a bool or None", broken)
    finite = [value for value in values if value is not None]
    return CurveObservation(
        decision.round,
        decision.config,
        finite[-1] if finite else None,
        failed=not finite,
        curve=values,
        cost=float(max(len(values), 1)) if cost is None else check_positive("cost", cost),
        broken=diverged if broken is None else broken,
    )


def _values(curve: Sequence[float | None] | Tensor, decision: CurveDecision) -> list[float | None]:
    """Return the values of a segment, None for iterations without a measurement."""
    if hasattr(curve, "tolist"):
        curve = curve.tolist()
    is_row = isinstance(curve, Sequence) and not isinstance(curve, str | bytes)
    expected = f"a list of {_expected(decision)}"
    check(is_row, "curve", expected, curve, InvalidShapeError)
    fits, received = 1 <= len(curve) <= decision.iterations, f"{len(curve)} values"
    check(fits, "curve", expected, received, InvalidShapeError)
    return [None if value is None else as_number("curve", value) for value in curve]


def _expected(decision: CurveDecision) -> str:
    """Return the values of which a curve of a segment consists, for a message."""
    first, last = decision.since + 1, decision.until
    before = ", and none before" if first > 1 else ""
    if last == first:
        return f"1 value, of iteration {last}{before}"
    return (
        f"1 to {decision.iterations} values, one for each iteration from {first} to {last}{before}"
    )
