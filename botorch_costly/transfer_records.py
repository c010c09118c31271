"""What an optimizer that knows earlier tasks asks for: an evaluation, and what it believed of them."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

from botorch_costly.errors import check, check_rate
from botorch_costly.records import Decision


@dataclass(frozen=True)
class TransferDecision(Decision):
    """An evaluation, and what was believed of the earlier tasks when it was chosen.

    Args:
        round: Number of the evaluation, from 0.
        config: The configuration to evaluate; kept as a read-only dict.
        query: True: every evaluation is told.
        reason: The reason, in a short sentence.
        confidence: As in ``Decision``.
        interval: As in ``Decision``.
        share: Of all tasks together, in [0, 1]; None if it was not recorded.
        weights: Of each task, in their order; empty if they were not recorded.

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

    _: KW_ONLY
    share: float | None = None
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.share is not None:
            check_rate("share", self.share)
        given = self.weights
        listed = isinstance(given, tuple | list)
        finite = listed and all(isinstance(w, int | float) and math.isfinite(w) for w in given)
        check(finite, "weights", "a tuple of finite numbers", given)
        object.__setattr__(self, "weights", tuple(given))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in plain values that JSON keeps, tuples as lists."""
        return {**super().to_dict(), "weights": list(self.weights)}
