"""Checks of the saved state of a driver."""

import json
from collections.abc import Mapping
from typing import Any

from botorch_costly.ask_tell.generators import check_generators
from botorch_costly.errors import StateMismatchError, check
from botorch_costly.integrations.applying import Rates
from botorch_costly.records import Decision, TwinDecision

_KEYS = {"shared", "clock", "decision", "reward", "over", "due", "generators", "rates", "twins"}
_SINCE = {"rates", "twins"}  # keys that older states do not have, or only those with twins


def check_keys(state: Mapping[str, Any]) -> None:
    """Raise unless a state has the keys of a driver's state.

    Raises:
        StateMismatchError: If it has other keys.
    """
    is_valid = isinstance(state, Mapping) and _KEYS - _SINCE <= set(state) <= _KEYS
    check(is_valid, "state", "the state of a tuning callback", state, StateMismatchError)


def check_whole(state: Mapping[str, Any], rates: Rates) -> None:
    """Raise unless the plain values and the generators of a driver's state are valid.

    Args:
        state: State with the keys of a driver's state.
        rates: How the driver that continues sets learning rates.

    Raises:
        StateMismatchError: If a value is damaged, or the rates were set in another way.
    """
    received = state.get("rates", rates)
    check(received == rates, "rates", repr(rates), received, StateMismatchError)
    for name in ("due", "over"):
        check(isinstance(state[name], bool), name, "a bool", state[name], StateMismatchError)
    generators = state["generators"]
    listed = generators is None or (isinstance(generators, list) and len(generators) > 0)
    check(listed, "generators", "a list, or None", generators, StateMismatchError)
    for states in generators or []:
        check_generators(states)


def decision_of(state: Any) -> Decision:
    """Return the decision that a state holds as JSON.

    Raises:
        StateMismatchError: If it holds none.
    """
    try:
        values = json.loads(state)
    except (TypeError, ValueError) as error:
        raise StateMismatchError("decision", "a decision as JSON", state) from error
    twins = isinstance(values, Mapping) and "peak" in values
    return (TwinDecision if twins else Decision).from_dict(values)
