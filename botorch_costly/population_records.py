"""What passes between a population and its tuner: one decision a round for all members."""

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

from botorch_costly.errors import CostlyError, StateMismatchError, check, check_count
from botorch_costly.parameters import Plain
from botorch_costly.plain import listed
from botorch_costly.records import Decision, FrozenConfig, Observation

FAILED = "failed"  # how a metric that is no number is written as a plain value


@dataclass(frozen=True)
class PopulationDecision(Decision):
    """What every member of a population does in a round.

    Args:
        round: The round of training, from 0.
        config: The configuration of the leader.
        query: Whether any member validates after the round.
        reason: Why the round is as it is, in a short sentence.
        confidence: As in ``Decision``.
        interval: As in ``Decision``.
        configs: What each member trains with.
        origins: Whose weights each member goes on from, as they were at the end of the round before.
        queries: Whether each member validates after the round.

    Raises:
        InvalidArgumentError: If a field has the wrong type or range, or the members do not agree.
        InvalidConfigError: If a configuration holds anything but plain values.

    Example:
        >>> decision = PopulationDecision(
        ...     3, {"lr": 0.1}, query=True, reason="queried", configs=({"lr": 0.1}, {"lr": 0.3}),
        ...     origins=(0, 0), queries=(True, False),
        ... )
        >>> decision.members
        2
    """

    _: KW_ONLY
    configs: tuple[Mapping[str, Plain], ...] = ()
    origins: tuple[int, ...] = ()
    queries: tuple[bool, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "configs", tuple(FrozenConfig(one) for one in self.configs))
        origins = tuple(check_count("origins", one) for one in self.origins)
        object.__setattr__(self, "origins", origins)
        object.__setattr__(self, "queries", tuple(self.queries))
        alike = len(self.configs) == len(origins) == len(self.queries)
        lengths = len(self.configs), len(origins), len(self.queries)
        check(alike, "configs, origins, queries", "one of each for every member", lengths)
        known = all(one < self.members for one in origins)
        check(known, "origins", f"members below {self.members}", origins)
        flags = all(isinstance(one, bool) for one in self.queries)
        check(flags, "queries", "a bool for each member", self.queries)

    @property
    def members(self) -> int:
        """How many members there are."""
        return len(self.configs)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in plain values that JSON keeps, tuples as lists."""
        configs = [{name: listed(v) for name, v in one.items()} for one in self.configs]
        lists = {"origins": list(self.origins), "queries": list(self.queries)}
        return {**super().to_dict(), "configs": configs, **lists}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild a decision from ``to_dict``.

        Raises:
            StateMismatchError: If ``values`` are not those of a decision.
        """
        try:
            configs = tuple(FrozenConfig.from_json(one) for one in values["configs"])
        except (TypeError, KeyError, AttributeError, CostlyError) as error:
            expected = "the plain values of PopulationDecision.to_dict"
            raise StateMismatchError("PopulationDecision", expected, values) from error
        return super().from_dict({**values, "configs": configs})


@dataclass(frozen=True)
class PopulationObservation(Observation):
    """What was told of a round of a population.

    Args:
        round: The round of training, from 0.
        config: The configuration of the member with the best metric; of the leader where there was none.
        reward: The best metric among the members; None if there was none.
        failed: Whether members were queried and none had a finite metric.
        seconds: As in ``Observation``.
        metrics: Of each member; None where it was not queried, NaN where it failed.

    Raises:
        InvalidArgumentError: If a field has the wrong type or range.
    """

    _: KW_ONLY
    metrics: tuple[float | None, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        numbers = all(one is None or isinstance(one, float) for one in self.metrics)
        check(numbers, "metrics", "a float or None for each member", self.metrics)
        object.__setattr__(self, "metrics", tuple(self.metrics))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in plain values that JSON keeps; a failed metric is the text ``"failed"``."""
        said = [FAILED if one is not None and math.isnan(one) else one for one in self.metrics]
        return {**super().to_dict(), "metrics": said}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild an observation from ``to_dict``.

        Raises:
            StateMismatchError: If ``values`` are not those of an observation.
        """
        try:
            metrics = tuple(math.nan if one == FAILED else one for one in values["metrics"])
        except (TypeError, KeyError) as error:
            expected = "the plain values of PopulationObservation.to_dict"
            raise StateMismatchError("PopulationObservation", expected, values) from error
        return super().from_dict({**values, "metrics": metrics})
