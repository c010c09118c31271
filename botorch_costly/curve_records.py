"""Records of an optimizer of trainings: the segments that it asks for, and their curves."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from botorch_costly.errors import check, check_count, check_positive
from botorch_costly.plain import Plain
from botorch_costly.records import Decision, Observation


@dataclass(frozen=True)
class CurveDecision(Decision):
    """A segment of consecutive iterations of a training.

    Args:
        round: Number of the segment, from 0.
        config: Configuration to train with; kept as a read-only dict.
        query: Always True, as every segment is paid for.
        reason: Reason of the decision, in a short sentence.
        confidence: Smallest probability with which the configuration beats a rival, if computed.
        interval: Number of the interval, from 0; the round if omitted.
        training: Number of the training, which is the round of its first segment.
        since: Iterations of the training before the segment; 0 for a training from scratch.
        until: Iterations of the training after the segment.

    Raises:
        InvalidArgumentError: If a field has the wrong type or range.
        InvalidConfigError: If ``config`` holds anything but plain values.

    Example:
        >>> decision = CurveDecision(
        ...     7, {"lr": 0.1}, query=True, reason="goes on", training=3, since=5, until=10
        ... )
        >>> decision.iterations
        5
    """

    unit: ClassVar[str] = "segment"

    _: KW_ONLY
    training: int
    since: int
    until: int

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("training", "since", "until"):
            object.__setattr__(self, name, check_count(name, getattr(self, name)))
        is_valid = self.training <= self.round
        check(is_valid, "training", f"at most the round, {self.round}", self.training)
        check(self.until > self.since, "until", f"more than {self.since}", self.until)

    @property
    def iterations(self) -> int:
        """Number of iterations of the segment."""
        return self.until - self.since

    @property
    def setting(self) -> dict[str, Plain]:
        """Configuration, and iterations of the training after the segment as ``"until"``."""
        # The last entry keeps a hyperparameter of that name.
        return {**self.config, "until": self.until, **self.config}


@dataclass(frozen=True)
class CurveObservation(Observation):
    """Curve and cost of a segment of a training.

    Args:
        round: Number of the segment.
        config: Configuration that was trained; kept as a read-only dict.
        reward: Last finite value of the curve; None if there is none.
        failed: Whether the curve has no finite value.
        seconds: Duration of the segment in seconds, if measured.
        curve: Value of each iteration of the segment, None if missing; empty if the segment failed.
        cost: Cost of the segment.
        broken: Whether the training has diverged and cannot go on.

    Raises:
        InvalidArgumentError: If a field has the wrong type or range.
        InvalidConfigError: If a configuration holds anything but plain values.
    """

    _: KW_ONLY
    curve: tuple[float | None, ...]
    cost: float
    broken: bool

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "curve", tuple(self.curve))
        finite = all(value is None or math.isfinite(value) for value in self.curve)
        check(finite, "curve", "finite numbers or None", self.curve)
        check_positive("cost", self.cost)
        check(isinstance(self.broken, bool), "broken", "a bool", self.broken)

    @property
    def price(self) -> float:
        """The cost."""
        return self.cost

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values for JSON, with tuples as lists."""
        return {**super().to_dict(), "curve": list(self.curve)}
