"""Records of an optimizer that chooses fidelities: evaluations and their values."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from botorch_costly.errors import check, check_positive
from botorch_costly.parameters import Plain
from botorch_costly.plain import listed
from botorch_costly.records import Decision, FrozenConfig, Observation

Candidate = tuple[Mapping[str, Plain], Mapping[str, float]]
"""A configuration, and the setting of each fidelity."""


@dataclass(frozen=True)
class SubsetDecision(Decision):
    """An evaluation of a configuration at some fidelities.

    Args:
        round: Number of the evaluation, from 0.
        config: Configuration to train with; kept as a read-only dict.
        query: Always True, as every evaluation is paid for.
        reason: Reason of the decision, in a short sentence.
        confidence: Smallest probability with which the configuration beats a rival, if computed.
        interval: Number of the interval, from 0; the round if omitted.
        fidelities: Setting of each fidelity, such as the share of the data; kept as a read-only dict.

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

    unit: ClassVar[str] = "evaluation"

    _: KW_ONLY
    fidelities: Mapping[str, float]

    def __post_init__(self) -> None:
        super().__post_init__()
        fidelities = self.fidelities
        is_valid = isinstance(fidelities, Mapping) and len(fidelities) > 0
        check(is_valid, "fidelities", "a mapping", fidelities)
        object.__setattr__(self, "fidelities", FrozenConfig(fidelities))

    @property
    def fidelity(self) -> Mapping[str, float]:
        """The setting of each fidelity."""
        return self.fidelities

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values for JSON, with tuples as lists."""
        fidelities = {name: listed(value) for name, value in self.fidelities.items()}
        return {**super().to_dict(), "fidelities": fidelities}


@dataclass(frozen=True)
class SubsetObservation(Observation):
    """Value and cost of an evaluation.

    Args:
        round: Number of the evaluation.
        config: Configuration that was trained; kept as a read-only dict.
        reward: Value of the evaluation; None if it was not finite.
        failed: Whether the value was not finite.
        seconds: Duration of the evaluation in seconds, if measured.
        cost: Cost of the evaluation.

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
