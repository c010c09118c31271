"""The options of ``Validation``, checked."""

import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any, get_args

import torch

from botorch_costly.ask_tell.state import check_changed
from botorch_costly.ask_tell.tariff import check_overhead
from botorch_costly.errors import (
    StateMismatchError,
    check,
    check_count,
    check_error_rate,
    check_nonnegative,
)
from botorch_costly.plain import agree, as_number
from botorch_costly.randomness import check_seed, generator_of
from botorch_costly.rewards.metric_gain import Kind
from botorch_costly.validation.partial import Rules

_FIXED = {"examples", "seed", "metric"}  # options that describe the readings in a state


@dataclass(frozen=True)
class Options:
    """The options of ``Validation``; see there."""

    overhead: float
    metric: Kind
    examples: int | None
    steps: int | None
    read_at: frozenset[int]
    target: float | None
    patience: int | None
    min_delta: float
    false_stop: float | None
    level: float
    seed: int

    def __post_init__(self) -> None:
        check_overhead(self.overhead)
        kinds = list(get_args(Kind))
        is_kind = isinstance(self.metric, str) and self.metric in kinds
        check(is_kind, "metric", f"one of {kinds}", self.metric)
        for name in ("examples", "steps", "patience"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, check_count(name, getattr(self, name), 1))
        if self.target is not None:
            target = as_number("target", self.target)
            check(math.isfinite(target), "target", "a finite number", target)
        check_nonnegative("min_delta", as_number("min_delta", self.min_delta))
        check_error_rate("level", self.level)
        check_seed(self.seed)
        if self.false_stop is not None:
            check_error_rate("false_stop", self.false_stop)
            expected = "the last step of the run, to which false_stop looks ahead"
            check(self.steps is not None, "steps", expected, self.steps)

    @property
    def sign(self) -> float:
        """Factor with which values become losses: 1 for a loss, -1 for an accuracy."""
        return 1.0 if self.metric == "loss" else -1.0

    @property
    def rules(self) -> Rules | None:
        """Options of partial readings; None for readings of the whole set."""
        if self.examples is None:
            return None
        return Rules(self.examples, self.level, self.min_delta, self.metric == "accuracy")

    def order(self) -> list[int]:
        """Return the numbers of the examples in the order of reading; none for the whole set."""
        return torch.randperm(self.examples or 0, generator=generator_of(self.seed)).tolist()

    def to_dict(self) -> dict[str, Any]:
        """Return the options in plain values, for a state."""
        return asdict(self) | {"read_at": sorted(self.read_at)}

    def check_same(self, state: object, changed: Collection[str]) -> None:
        """Raise unless a state has these options.

        Args:
            state: State of a ``Validation``.
            changed: Names of options that may differ.

        Raises:
            StateMismatchError: If it is no such state, or another option differs.
            InvalidArgumentError: If ``changed`` names another option than those that may differ.
        """
        ours = self.to_dict()
        theirs = state.get("options") if isinstance(state, Mapping) else None
        is_state = isinstance(theirs, Mapping) and set(theirs) == set(ours)
        expected = "a state_dict of Validation"
        check(is_state, "state", expected, type(state).__name__, StateMismatchError)
        check_changed(changed, set(ours) - _FIXED)
        for name, value in ours.items():
            other = dict(theirs or {})[name]
            is_same = name in changed or agree(value, other)
            check(is_same, f"state: option {name}", repr(value), other, StateMismatchError)


def checked_steps(read_at: Collection[int]) -> frozenset[int]:
    """Return the steps of ``read_at``.

    Raises:
        InvalidArgumentError: If one is no integer of at least 0.
    """
    is_collection = isinstance(read_at, Collection) and not isinstance(read_at, str | bytes)
    check(is_collection, "read_at", "a list of steps", read_at)
    return frozenset(check_count("read_at", step) for step in read_at)
