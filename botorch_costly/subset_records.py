"""What passes between an optimizer that chooses fidelities and its loop: evaluations and values."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

from botorch_costly.errors import check, check_positive
from botorch_costly.parameters import Plain
from botorch_costly.plain import listed
from botorch_costly.records import Decision, FrozenConfig, Observation

Candidate = tuple[Mapping[str, Plain], Mapping[str, float]]
"""A configuration, and the setting of each fidelity."""


@dataclass(frozen=True)
class SubsetDecision(Decision):
    """An evaluation: a configuration, and how much to spend on it.

    Args:
        round: Number of the evaluation, from 0.
        config: The configuration to train with; kept as a read-only dict.
        query: True: every evaluation is paid for.
        reason: The reason, in a short sentence.
        confidence: As in ``Decision``.
        interval: As in ``Decision``.
        fidelities: The setting of each fidelity, such as the share of the data; kept as a read-only
            dict.

    Raises:
        InvalidArgumentError: If a field has the wrong type or range.
        InvalidConfigError: If a configuration holds anything but plain values.

    Example:
        >>> decision = SubsetDecision(
        ...     0, {"lr": 0.1}, query=True, reason="first", fidelities={"fraction": 0.25}
        ... )
        >>> decision.fidelities["fraction"]
        0.25
    """

    _: KW_ONLY
    fidelities: Mapping[str, float]

    def __post_init__(self) -> None:
        super().__post_init__()
        given = self.fidelities
        check(isinstance(given, Mapping) and len(given) > 0, "fidelities", "a mapping", given)
        object.__setattr__(self, "fidelities", FrozenConfig(given))

    @property
    def fidelity(self) -> Mapping[str, float]:
        """The setting of each fidelity."""
        return self.fidelities

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in plain values that JSON keeps."""
        fidelities = {name: listed(value) for name, value in self.fidelities.items()}
        return {**super().to_dict(), "fidelities": fidelities}


@dataclass(frozen=True)
class SubsetObservation(Observation):
    """What an evaluation came to.

    Args:
        round: Number of the evaluation.
        config: The configuration that was trained; kept as a read-only dict.
        reward: The value; None if it was not finite.
        failed: Whether it was not.
        seconds: As in ``Observation``.
        cost: What the evaluation cost.

    Raises:
        InvalidArgumentError: If a field has the wrong type or range.
        InvalidConfigError: If a configuration holds anything but plain values.
    """

    _: KW_ONLY
    cost: float

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("cost", self.cost)

    @property
    def price(self) -> float:
        """The cost."""
        return self.cost
