"""What passes between a tuner and a training loop: frozen records of plain Python values.

No record holds a tensor, so each of them can be logged, compared, hashed, pickled, and written
to JSON by ``to_dict``.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from botorch_costly.errors import (
    CostlyError,
    InvalidConfigError,
    StateMismatchError,
    check,
    check_count,
    check_nonnegative,
    check_rate,
)
from botorch_costly.parameters import PLAIN_TYPES, Plain


class FrozenConfig(Mapping[str, Plain]):
    """A configuration that nobody can change: ``f(**config)`` works, ``config["lr"] = 1`` does not.

    Unlike ``types.MappingProxyType`` it owns its values, hashes, copies and pickles.

    Args:
        values: Plain values (str, int, finite float, bool, None) by name.

    Raises:
        InvalidConfigError: If a name is not a string or a value is not plain.

    Example:
        >>> config = FrozenConfig({"lr": 0.1, "policy": "light"})
        >>> dict(config, lr=0.2)
        {'lr': 0.2, 'policy': 'light'}
    """

    __slots__ = ("_values",)
    _values: dict[str, Plain]

    def __init__(self, values: Mapping[str, Plain]) -> None:
        check(isinstance(values, Mapping), "config", "a mapping", values, InvalidConfigError)
        for name, value in values.items():
            check(isinstance(name, str), "config", "string names", name, InvalidConfigError)
            plain = type(value) in PLAIN_TYPES
            plain = plain and not (isinstance(value, float) and not math.isfinite(value))
            expected = "a str, int, finite float, bool or None"
            check(plain, name, expected, value, InvalidConfigError)
        object.__setattr__(self, "_values", dict(values))

    def __getitem__(self, name: str) -> Plain:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is read-only.")

    def __hash__(self) -> int:
        return hash(frozenset(self._values.items()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._values})"

    def __reduce__(self) -> tuple[type, tuple[dict[str, Plain]]]:
        return type(self), (dict(self._values),)


Record = TypeVar("Record", "Decision", "Observation")


def _to_dict(record: "Decision | Observation") -> dict[str, Any]:
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    return {**values, "config": dict(record.config)}


def _from_dict(kind: type[Record], values: Mapping[str, Any]) -> Record:
    expected = f"the plain values of {kind.__name__}.to_dict"
    try:
        return kind(**values)
    except (TypeError, CostlyError) as error:
        raise StateMismatchError(kind.__name__, expected, values) from error


def _check_flag(name: str, value: object) -> None:
    check(isinstance(value, bool), name, "a bool", value)


@dataclass(frozen=True)
class Decision:
    """What to play in a round, and whether to pay for querying at the outcome.

    Args:
        round: The round, from 0.
        config: The configuration to train with; kept as a read-only mapping.
        query: Whether the outcome is worth its price.
        reason: Why, in a word or a short sentence.
        confidence: Least probability with which the configuration beats one of its rivals, if the rule
            knows: it may be best with less.
        interval: How many configurations were chosen before this one: one that is held for some rounds is
            one interval. The round, if omitted.

    Raises:
        InvalidArgumentError: If a field has the wrong type or range.
        InvalidConfigError: If ``config`` holds anything but plain values.

    Example:
        >>> decision = Decision(round=3, config={"lr": 0.1}, query=True, reason="rivals")
        >>> (lambda lr: 2 * lr)(**decision.config)
        0.2
    """

    round: int
    config: Mapping[str, Plain]
    query: bool
    reason: str
    confidence: float | None = None
    interval: int | None = None

    def __post_init__(self) -> None:
        check_count("round", self.round)
        interval = self.round if self.interval is None else check_count("interval", self.interval)
        check(interval <= self.round, "interval", f"at most the round, {self.round}", interval)
        object.__setattr__(self, "interval", interval)
        object.__setattr__(self, "config", FrozenConfig(self.config))
        _check_flag("query", self.query)
        check(isinstance(self.reason, str), "reason", "a string", self.reason)
        if self.confidence is not None:
            check_rate("confidence", self.confidence)

    @property
    def id(self) -> int:
        """Number of the decision: its round."""
        return self.round

    def to_dict(self) -> dict[str, Any]:
        """Fields in plain values that JSON keeps."""
        return _to_dict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Decision":
        """Rebuild a decision from ``to_dict``.

        Raises:
            StateMismatchError: If ``values`` are not those of a decision.
        """
        return _from_dict(cls, values)


@dataclass(frozen=True)
class Observation:
    """What a round brought.

    Args:
        round: The round, from 0.
        config: The configuration that was played; kept as a read-only mapping.
        reward: The finite reward; None if nobody queried or the query failed.
        failed: Whether somebody queried and found no finite reward.
        seconds: What the query cost, in seconds, if known.

    Raises:
        InvalidArgumentError: If a field has the wrong type or range, or a failed query has a reward.
        InvalidConfigError: If ``config`` holds anything but plain values.
    """

    round: int
    config: Mapping[str, Plain]
    reward: float | None = None
    failed: bool = False
    seconds: float | None = None

    def __post_init__(self) -> None:
        check_count("round", self.round)
        object.__setattr__(self, "config", FrozenConfig(self.config))
        _check_flag("failed", self.failed)
        if self.reward is not None:
            number = isinstance(self.reward, int | float) and not isinstance(self.reward, bool)
            finite = number and math.isfinite(self.reward)
            check(finite, "reward", "a finite number or None", self.reward)
            check(not self.failed, "reward", "None for a failed query", self.reward)
        if self.seconds is not None:
            check_nonnegative("seconds", self.seconds)

    @property
    def id(self) -> int:
        """Number of the decision that was told: its round."""
        return self.round

    def to_dict(self) -> dict[str, Any]:
        """Fields in plain values that JSON keeps."""
        return _to_dict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Observation":
        """Rebuild an observation from ``to_dict``.

        Raises:
            StateMismatchError: If ``values`` are not those of an observation.
        """
        return _from_dict(cls, values)
