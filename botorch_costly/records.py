"""The records that a tuner and a training loop exchange: frozen, and without tensors.

Each record can be logged, compared, hashed, pickled, and written to JSON by ``to_dict``.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, TypeVar

from botorch_costly.errors import (
    CostlyError,
    InvalidConfigError,
    StateMismatchError,
    UnknownNameError,
    UnknownParameterError,
    check,
    check_count,
    check_nonnegative,
    check_rate,
)
from botorch_costly.lookups import Advising, check_public
from botorch_costly.plain import PLAIN, Plain, as_number, is_plain, listed, plain, tupled


class FrozenConfig(dict[str, Plain]):
    """A configuration as a read-only, hashable dict.

    ``f(**config)``, ``json.dumps(config)`` and all other ways to read a dict work; ``config["lr"] = 1``
    raises. ``config.copy()``, ``dict(config, lr=1)`` and ``config | {"lr": 1}`` are ordinary dicts.

    Args:
        values: Plain values (str, int, finite float, bool, None, or tuples of these) by name, or
            ``(name, value)`` pairs. Scalars of NumPy and torch become Python numbers.

    Raises:
        InvalidConfigError: If a name is not a string or a value is not plain.

    Example:
        >>> config = FrozenConfig({"lr": 0.1, "policy": "light"})
        >>> dict(config, lr=0.2)
        {'lr': 0.2, 'policy': 'light'}
    """

    __slots__ = ()

    def __init__(self, values: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        try:
            config = dict(values)
        except (TypeError, ValueError) as error:
            raise InvalidConfigError("config", "a mapping", values) from error
        for name, value in config.items():
            check(isinstance(name, str), "config", "string names", name, InvalidConfigError)
            value = plain(value)
            check(is_plain(value), name, PLAIN, value, InvalidConfigError)
            config[name] = value
        super().__init__(config)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "FrozenConfig":
        """Return a configuration read from JSON, in which tuples are lists.

        Raises:
            InvalidConfigError: If a name is not a string or a value is not plain.
        """
        return cls({name: tupled(value) for name, value in values.items()})

    def _hash(self) -> int:
        return hash(frozenset(self.items()))

    __hash__: ClassVar[Any] = _hash  # a dict is mutable and has none

    def __repr__(self) -> str:
        return f"{type(self).__name__}({super().__repr__()})"

    __str__ = dict.__repr__

    def __reduce__(self) -> tuple[type, tuple[dict[str, Plain]]]:
        return type(self), (dict(self),)

    def __missing__(self, name: object) -> NoReturn:
        expected = f"one of {list(self)} (a fidelity, or a length, is an attribute of the decision)"
        raise UnknownParameterError("config", expected, name)

    if not TYPE_CHECKING:  # for a type checker such a class has all attributes

        def __getattr__(self, name: str) -> NoReturn:
            check_public(self, name)
            names = [name] if name in self else list(self)
            expected = f"{' or '.join(f'config[{key!r}]' for key in names)} (it is a dict)"
            raise UnknownNameError("config", expected, f".{name}")

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("A configuration is read-only; dict(config) is a copy to change.")

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        """Raise TypeError; replaces every method that changes a dict."""
        raise TypeError("A configuration is read-only; dict(config) is a copy to change.")

    __setitem__ = _refuse
    __delitem__ = _refuse
    __ior__ = _refuse
    clear = _refuse
    pop = _refuse
    popitem = _refuse
    setdefault = _refuse
    update = _refuse


def _frozen(config: Mapping[str, Any]) -> FrozenConfig:
    check(isinstance(config, Mapping), "config", "a mapping", config, InvalidConfigError)
    return config if isinstance(config, FrozenConfig) else FrozenConfig(config)


Record = TypeVar("Record", bound="Decision | Observation")


def _to_dict(record: "Decision | Observation") -> dict[str, Any]:
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    return {**values, "config": {name: listed(value) for name, value in record.config.items()}}


def record_of(
    kind: type[Record], values: Mapping[str, Any], **readers: Callable[[Any], Any]
) -> Record:
    """Return a record of plain values; ``readers`` rebuild fields that JSON does not keep, by name.

    Raises:
        StateMismatchError: If the values are not those of ``to_dict`` of this kind.
    """
    expected = f"the plain values of {kind.__name__}.to_dict"
    try:
        readers = {"config": FrozenConfig.from_json, **readers}
        return kind(**{**values, **{name: read(values[name]) for name, read in readers.items()}})
    except (TypeError, KeyError, AttributeError, CostlyError) as error:
        raise StateMismatchError(kind.__name__, expected, values) from error


def unit_of(decision: type, tells: str) -> str:
    """Return the noun of what is decided: ``"round"``, or ``"evaluation"`` or ``"segment"`` of a search.

    Args:
        decision: Class of the decisions.
        tells: What an optimizer is told: ``"value"`` or ``"curve"`` by a search.
    """
    noun = str(getattr(decision, "unit", "round"))
    return "evaluation" if noun == "round" and tells in ("value", "curve") else noun


def queried_of(unit: str) -> str:
    """Return the noun of what is paid for: ``"queries"``, or the evaluations or segments of a search."""
    return "queries" if unit == "round" else f"{unit}s"


@dataclass(frozen=True)
class Decision(Advising):
    """The configuration of a round, and whether to pay for a query after it.

    Args:
        round: The round of training, from 0.
        config: The configuration to train with; stored as a read-only dict.
        query: Whether to pay for a query: measure the metric after the round, and tell the reward.
        reason: The reason, in a word or a short sentence.
        confidence: The smallest probability with which the configuration beats one of its rivals, if the
            query rule computes it. The probability that it beats all of them is smaller.
        interval: The number of the interval, from 0: the number of earlier configurations, each held for
            one or more rounds. The round if omitted.

    Raises:
        InvalidArgumentError: If a field has the wrong type or range.
        InvalidConfigError: If ``config`` holds anything but plain values.

    Example:
        >>> decision = Decision(round=3, config={"lr": 0.1}, query=True, reason="rivals")
        >>> (lambda lr: 2 * lr)(**decision.config)
        0.2
    """

    unit: ClassVar[str] = "round"  # the noun of what is decided
    _in_place_of_items: ClassVar[str] = "an attribute, such as decision.config"

    round: int
    config: Mapping[str, Plain]
    _: KW_ONLY
    query: bool
    reason: str
    confidence: float | None = None
    interval: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "round", check_count("round", self.round))
        interval = self.round if self.interval is None else check_count("interval", self.interval)
        check(interval <= self.round, "interval", f"at most the round, {self.round}", interval)
        object.__setattr__(self, "interval", interval)
        object.__setattr__(self, "config", _frozen(self.config))
        check(isinstance(self.query, bool), "query", "a bool", self.query)
        check(isinstance(self.reason, str), "reason", "a string", self.reason)
        if self.confidence is not None:
            check_rate("confidence", self.confidence)

    @property
    def id(self) -> int:
        """Number of the decision: its round."""
        return self.round

    @property
    def fidelity(self) -> Mapping[str, float]:
        """Value of each fidelity; empty where there are none."""
        return {}

    def _instead(self, name: str) -> list[str]:
        """Return the place of a value of the configuration, or of a fidelity."""
        places = ("config", "fidelities")
        found = [place for place in places if name in vars(self).get(place, ())]
        return [f"{place}[{name!r}]" for place in found] or super()._instead(name)

    @property
    def queried(self) -> str:
        """Name of what is paid for: ``"queries"``, or the evaluations or segments of a search."""
        return queried_of(self.unit)

    @property
    def setting(self) -> dict[str, Plain]:
        """Configuration and fidelities by name."""
        return {**self.config, **self.fidelity}

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in values that JSON preserves, tuples as lists."""
        return _to_dict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild a decision from ``to_dict``.

        Raises:
            StateMismatchError: If ``values`` are not those of a decision.
        """
        return record_of(cls, values)


@dataclass(frozen=True)
class TwinDecision(Decision):
    """A decision that may restore an earlier state of training before the round.

    First the current state is kept under a number, then the state of another number is restored, then
    states that are no longer needed are dropped. ``Session`` performs these steps.

    Args:
        round: The round of compute, from 0, including rounds that were undone.
        config: The configuration to train with, multiplied by its schedules; stored as a read-only dict.
        query: Whether to pay for a query: measure the metric after the round, and tell the reward.
        reason: The reason, in a word or a short sentence.
        confidence: The smallest probability with which the configuration beats one of its rivals, if
            the query rule computes it.
        interval: The number of the interval, from 0: the number of earlier steps. The round if omitted.
        peak: The configuration before its schedules; ``config`` if omitted.
        trained: Rounds of training of the state, without rounds that were undone.
        keep: Number under which to keep the current state.
        restore: Number of the state to restore.
        drop: Numbers of the states to drop.

    Raises:
        InvalidArgumentError: If a field has the wrong type or range.
        InvalidConfigError: If a configuration holds anything but plain values.
    """

    peak: Mapping[str, Plain] | None = None
    trained: int = 0
    keep: int | None = None
    restore: int | None = None
    drop: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "peak", _frozen(self.config if self.peak is None else self.peak))
        object.__setattr__(self, "trained", check_count("trained", self.trained))
        for name in ("keep", "restore"):
            if (number := getattr(self, name)) is not None:
                object.__setattr__(self, name, check_count(name, number))
        check(isinstance(self.drop, tuple | list), "drop", "a tuple of numbers", self.drop)
        object.__setattr__(self, "drop", tuple(check_count("drop", n) for n in self.drop))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in values that JSON preserves, tuples as lists."""
        peak = {name: listed(value) for name, value in (self.peak or {}).items()}
        return {**super().to_dict(), "peak": peak, "drop": list(self.drop)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild a decision from ``to_dict``.

        Raises:
            StateMismatchError: If ``values`` are not those of a decision.
        """
        return record_of(cls, values, peak=FrozenConfig.from_json)


@dataclass(frozen=True)
class Observation:
    """The observation of a round.

    Args:
        round: The round of training, from 0.
        config: The configuration that was played; stored as a read-only dict.
        reward: The finite reward; None if there was no query or the query failed.
        failed: Whether there was a query that gave no finite reward.
        seconds: The cost of the query in seconds, if known.
        variance: The variance of the reward beyond that of a query of the whole validation set, in units
            of the reward squared.
        metric: The metric as it was measured, such as a validation loss, which may be NaN or infinite;
            None if it was not told. It is for logs and reports: no decision depends on it.

    Raises:
        InvalidArgumentError: If a field has the wrong type or range, or a failed query has a reward.
        InvalidConfigError: If ``config`` holds anything but plain values.
    """

    round: int
    config: Mapping[str, Plain]
    reward: float | None = None
    _: KW_ONLY
    failed: bool = False
    seconds: float | None = None
    variance: float = 0.0
    metric: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "round", check_count("round", self.round))
        object.__setattr__(self, "config", _frozen(self.config))
        check(isinstance(self.failed, bool), "failed", "a bool", self.failed)
        if self.reward is not None:
            is_number = isinstance(self.reward, int | float) and not isinstance(self.reward, bool)
            is_finite = is_number and math.isfinite(self.reward)
            check(is_finite, "reward", "a finite number or None", self.reward)
            check(not self.failed, "reward", "None for a failed query", self.reward)
        if self.seconds is not None:
            check_nonnegative("seconds", self.seconds)
        check_nonnegative("variance", self.variance)
        if self.metric is not None:
            metric = as_number("metric", self.metric)
            # A NaN equals itself only as the same object, and records are compared.
            object.__setattr__(self, "metric", math.nan if math.isnan(metric) else metric)

    @property
    def id(self) -> int:
        """Number of the decision: its round."""
        return self.round

    @property
    def price(self) -> float:
        """Cost of the outcome: its cost if there is one, or else its seconds; 0 if neither is known."""
        return self.seconds or 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the fields in values that JSON preserves, tuples as lists."""
        return _to_dict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Rebuild an observation from ``to_dict``.

        Raises:
            StateMismatchError: If ``values`` are not those of an observation.
        """
        return record_of(cls, values)


@dataclass(frozen=True)
class ValueObservation(Observation):
    """The value of a configuration, and its cost.

    Args:
        round: Number of the evaluation, from 0.
        config: Configuration that was evaluated; kept as a read-only dict.
        reward: Finite value; None if the evaluation failed.
        failed: Whether the evaluation failed.
        seconds: Seconds of the evaluation, if known.
        cost: Cost of the evaluation in any unit, if known.

    Raises:
        InvalidArgumentError: If a field has the wrong type or range.
        InvalidConfigError: If ``config`` holds anything but plain values.
    """

    cost: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cost is not None:
            check_nonnegative("cost", self.cost)

    @property
    def price(self) -> float:
        """Cost of the outcome: its cost if there is one, or else its seconds; 0 if neither is known."""
        return super().price if self.cost is None else self.cost
