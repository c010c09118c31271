"""What passes between an optimizer of trainings and their loop: stretches asked for, curves told."""

import math
from dataclasses import KW_ONLY, dataclass
from typing import Any

from botorch_costly.errors import check, check_count, check_positive
from botorch_costly.records import Decision, Observation


@dataclass(frozen=True)
class CurveDecision(Decision):
    """A stretch of a training: from one of its iterations to another.

    Args:
        round: Number of the stretch, from 0.
        config: The configuration to train with; kept as a read-only dict.
        query: True: every stretch is paid for.
        reason: The reason, in a short sentence.
        confidence: As in ``Decision``.
        interval: As in ``Decision``.
        training: Number of the training: of its first stretch.
        since: Iterations after which it goes on; 0 is a training from scratch.
        until: Iterations that it is trained for then.

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

    _: KW_ONLY
    training: int
    since: int
    until: int

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("training", "since", "until"):
            object.__setattr__(self, name, check_count(name, getattr(self, name)))
        known = self.training <= self.round
        check(known, "training", f"at most the round, {self.round}", self.training)
        check(self.until > self.since, "until", f"more than {self.since}", self.until)

    @property
    def iterations(self) -> int:
        """Iterations of the stretch."""
        return self.until - self.since


@dataclass(frozen=True)
class CurveObservation(Observation):
    """What a stretch of a training has shown.

    Args:
        round: Number of the stretch.
        config: The configuration that was trained; kept as a read-only dict.
        reward: The last finite value of the curve; None without any.
        failed: Whether there was none.
        seconds: As in ``Observation``.
        curve: A value for each iteration of the stretch; None where there is none. It is empty if
            nothing came of the stretch.
        cost: What the stretch cost.
        broken: Whether the training has diverged, and cannot go on.

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
        good = all(value is None or math.isfinite(value) for value in self.curve)
        check(good, "curve", "finite numbers or None", self.curve)
        check_positive("cost", self.cost)
        check(isinstance(self.broken, bool), "broken", "a bool", self.broken)

    @property
    def price(self) -> float:
        """The cost."""
        return self.cost

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in plain values that JSON keeps, tuples as lists."""
        return {**super().to_dict(), "curve": list(self.curve)}
