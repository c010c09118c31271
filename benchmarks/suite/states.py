"""Whether a saved state is one of this run."""

from collections.abc import Mapping, Sequence
from typing import Any

from botorch_costly.errors import StateMismatchError, check


def check_state(state: Mapping[str, Any], own: Mapping[str, Any], same: Sequence[str]) -> None:
    """Raise unless a state has the parts of a run's own, and is of the same problem.

    Args:
        state: That was saved.
        own: What the run would save now.
        same: Names of the parts that are to be equal.

    Raises:
        StateMismatchError: With the first part that differs.

    Example:
        >>> check_state({"seed": 3, "round": 7}, {"seed": 3, "round": 0}, ["seed"])
    """
    keys = f"the keys {list(own)}"
    check(set(state) == set(own), "state", keys, list(state), StateMismatchError)
    for name in same:
        check(state[name] == own[name], name, str(own[name]), state[name], StateMismatchError)
