"""Checks of what a picture is asked to show."""

from collections.abc import Collection, Mapping, Sequence
from typing import TypeGuard, TypeVar

from botorch_costly.errors import InvalidArgumentError, InvalidSpaceError, check
from botorch_costly.plotting.bounds import Limits
from botorch_costly.records import Decision, Observation
from botorch_costly.space import SearchSpace

T = TypeVar("T")
DECISIONS = "at least one decision, in a list such as tuner.decisions"
OBSERVATIONS = "a list of observations, such as tuner.observations"
_LIMITS = "pairs of a round and its limits by name, such as tuner.trust_regions"


def check_records(name: str, records: Sequence[object], kind: type, expected: str) -> None:
    """Raise InvalidArgumentError unless records are a sequence of objects of one class.

    Args:
        name: Name of the argument, for the message.
        records: What was passed.
        kind: Class of each record.
        expected: What was to be passed, for the message.
    """
    check(_are_all(records, kind), name, expected, records)


def check_decisions(decisions: Sequence[Decision], name: str = "decisions") -> None:
    """Raise InvalidArgumentError unless there are decisions, and nothing else."""
    check_records(name, decisions, Decision, DECISIONS)
    check(len(decisions) > 0, name, DECISIONS, decisions)


def check_run(
    decisions: Sequence[Decision],
    observations: Sequence[Observation],
    log: Collection[str],
    space: SearchSpace | None,
    limits: Limits,
) -> None:
    """Raise unless these are the arguments of the same names of ``plot_schedule``.

    Raises:
        InvalidArgumentError: If there is no decision, or another argument is of another class.
        InvalidSpaceError: If the space is no ``SearchSpace``.
    """
    check_decisions(decisions)
    check_records("observations", observations, Observation, OBSERVATIONS)
    check_names("log", log)
    is_space = space is None or isinstance(space, SearchSpace)
    check(is_space, "space", "a SearchSpace", space, InvalidSpaceError)
    are_pairs = _are_all(limits, tuple) and all(len(pair) == 2 for pair in limits)
    of_rounds = are_pairs and all(isinstance(ends, Mapping) for _, ends in limits)
    check(of_rounds, "limits", _LIMITS, limits)


def check_names(name: str, names: Collection[str]) -> None:
    """Raise InvalidArgumentError if names are not listed, such as a single one."""
    are_names = isinstance(names, Collection) and not isinstance(names, str)
    check(are_names, name, "a list of names", names)


def check_by_name(name: str, named: Mapping[str, T], expected: str) -> Mapping[str, T]:
    """Return a mapping with at least one entry; raise InvalidArgumentError otherwise.

    Args:
        name: Name of the argument, for the message.
        named: What was passed.
        expected: One entry, for the message, such as "curve".
    """
    if not isinstance(named, Mapping) or len(named) == 0:
        raise InvalidArgumentError(name, f"at least one {expected}, by its name", named)
    return named


def _are_all(records: object, kind: type[T]) -> TypeGuard[Sequence[T]]:
    """Return whether something is a sequence of objects of one class, perhaps an empty one."""
    return isinstance(records, Sequence) and all(isinstance(one, kind) for one in records)
