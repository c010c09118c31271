"""Segments of training between two queries, without a return to an earlier state."""

from collections.abc import Sequence

from botorch_costly.records import Observation, TwinDecision


def segments(
    decisions: Sequence[TwinDecision], observations: Sequence[Observation]
) -> list[tuple[float, float]]:
    """Return the metrics before and after each segment.

    The metric before a return is left out: the state that a run returns to was chosen by its metric,
    which is better than that of the next round by chance alone.

    Args:
        decisions: All decisions so far.
        observations: Their queries; one without a finite metric ends a segment and begins none.
    """
    told = {outcome.round: outcome.reward for outcome in observations}
    found: list[tuple[float, float]] = []
    before: float | None = None
    for decision in decisions:
        if decision.restore is not None:
            before = None
        if decision.round in told:
            after = told[decision.round]
            if before is not None and after is not None:
                found.append((before, after))
            before = after
    return found
