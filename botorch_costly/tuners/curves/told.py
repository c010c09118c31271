"""What is told of a stretch: a curve, what it cost and whether it diverged, checked and made a record."""

import math
from collections.abc import Sequence

from torch import Tensor

from botorch_costly.curve_records import CurveDecision, CurveObservation
from botorch_costly.errors import InvalidShapeError, check, check_positive
from botorch_costly.plain import as_number


def observation_of(
    decision: CurveDecision,
    curve: Sequence[float | None] | Tensor | None,
    *,
    cost: float | None,
    broken: bool | None,
    priced: bool | None,
) -> CurveObservation:
    """Return the record of a stretch.

    Args:
        decision: The stretch.
        curve: A value for each of its iterations, or of the first ones; None where none was measured.
            None in its place if nothing came of the stretch.
        cost: Of the stretch; its iterations, at least one, if None.
        broken: Whether the training has diverged; if None, whether its last value is not finite.
        priced: Whether costs have been told of earlier stretches; None before the first.

    Raises:
        InvalidShapeError: If the curve is empty, longer than the stretch, or no row of numbers.
        InvalidArgumentError: If a value is no number, or the cost not positive, or told at times only.
    """
    shown = [] if curve is None else _values(curve, decision.iterations)
    values = tuple(v if v is not None and math.isfinite(v) else None for v in shown)
    diverged = len(shown) > 0 and shown[-1] is not None and values[-1] is None
    consistent = priced in (None, cost is not None)
    check(consistent, "cost", "a cost, as before" if priced else "no cost, as before", cost)
    check(broken is None or isinstance(broken, bool), "broken", "a bool or None", broken)
    known = [value for value in values if value is not None]
    return CurveObservation(
        decision.round,
        decision.config,
        known[-1] if known else None,
        failed=not known,
        curve=values,
        cost=float(max(len(values), 1)) if cost is None else check_positive("cost", cost),
        broken=diverged if broken is None else broken,
    )


def _values(curve: Sequence[float | None] | Tensor, most: int) -> list[float | None]:
    """Return the values of a curve, None where none was measured."""
    if hasattr(curve, "tolist"):
        curve = curve.tolist()
    row = isinstance(curve, Sequence) and not isinstance(curve, str | bytes)
    check(row, "curve", "a row of numbers", curve, InvalidShapeError)
    expected = f"1 to {most} values, one for each iteration"
    check(1 <= len(curve) <= most, "curve", expected, len(curve), InvalidShapeError)
    return [None if value is None else as_number("curve", value) for value in curve]
