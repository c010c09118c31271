"""Saved states: tensors and plain values only, and recognisably whose."""

from typing import Any

import torch

from botorch_costly.errors import StateMismatchError, check
from botorch_costly.space import SearchSpace

STATE_VERSION = 1


def header(kind: str, space: SearchSpace, dtype: torch.dtype) -> dict[str, Any]:
    """Return what tells one tuner's state from another's."""
    space_and_dtype = {"space": space.fingerprint(), "dtype": str(dtype)}
    return {"kind": kind, "version": STATE_VERSION, **space_and_dtype}


def check_header(state: object, kind: str, space: SearchSpace, dtype: torch.dtype) -> None:
    """Raise StateMismatchError unless ``state`` was saved by such a tuner on this space."""
    is_state = isinstance(state, dict) and "header" in state
    expected = f"a state_dict of {kind}"
    check(is_state, "state", expected, type(state).__name__, StateMismatchError)
    received = state["header"]  # type: ignore[index]
    for name, value in header(kind, space, dtype).items():
        found = received.get(name) if isinstance(received, dict) else received
        check(found == value, f"state {name}", str(value), found, StateMismatchError)
