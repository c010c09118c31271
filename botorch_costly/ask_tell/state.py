"""Saved states: tensors and plain values only, and recognisably whose."""

from collections.abc import Mapping
from typing import Any

from botorch_costly.errors import StateMismatchError, check
from botorch_costly.space import SearchSpace

STATE_VERSION = 4


def header(kind: str, space: SearchSpace, **traits: str) -> dict[str, Any]:
    """Return what tells one tuner's state from another's.

    Args:
        kind: The class of the tuner.
        space: Its search space; its names go first, for a readable message.
        **traits: What else a state does not survive a change of.
    """
    spaces = {"parameters": ", ".join(space.names), "space": space.fingerprint()}
    return {"kind": kind, "version": STATE_VERSION, **spaces, **traits}


def check_header(state: object, expected: Mapping[str, Any]) -> None:
    """Raise StateMismatchError unless ``state`` carries the ``expected`` header."""
    is_state = isinstance(state, Mapping) and "header" in state
    wanted = f"a state_dict of {expected['kind']}"
    check(is_state, "state", wanted, type(state).__name__, StateMismatchError)
    received = state["header"]  # type: ignore[index]
    for name, value in expected.items():
        found = received.get(name) if isinstance(received, Mapping) else received
        check(found == value, f"state {name}", str(value), found, StateMismatchError)
