"""Records of an optimizer with earlier tasks: evaluations, and the weights of the tasks."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from botorch_costly.errors import check, check_rate
from botorch_costly.records import Decision


@dataclass(frozen=True)
class TransferDecision(Decision):
    """An evaluation, and the weights of the earlier tasks when it was chosen.

    Args:
        round: Number of the evaluation, from 0.
        config: Configuration to evaluate; kept as a read-only dict.
        query: Always True, as every evaluation is observed.
        reason: Reason of the decision, in a short sentence.
        confidence: Smallest probability with which the configuration beats a rival, if computed.
        interval: Number of the interval, from 0; the round if omitted.
        share: Share of all tasks together, in [0, 1]; None if it was not recorded.
        weights: Weight of each task, in their order; empty if they were not recorded.

    Raises:
        InvalidArgumentError: If a field has the wrong type or range.
        InvalidConfigError: If ``config`` holds anything but plain values.

    Example:
        >>> decision = TransferDecision(
        ...     3, {"lr": 0.1}, query=True, reason="tasks", share=0.7, weights=(0.6, -0.1)
        ... )
        >>> decision.to_dict()["weights"]
        [0.6, -0.1]
    """

    unit: ClassVar[str] = "evaluation"

    _: KW_ONLY
    share: float | None = None
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.share is not None:
            check_rate("share", self.share)
        weights = self.weights
        is_valid = isinstance(weights, tuple | list) and all(
            isinstance(weight, int | float) and math.isfinite(weight) for weight in weights
        )
        check(is_valid, "weights", "a tuple of finite numbers", weights)
        object.__setattr__(self, "weights", tuple(weights))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values for JSON, with tuples as lists."""
        return {**super().to_dict(), "weights": list(self.weights)}
