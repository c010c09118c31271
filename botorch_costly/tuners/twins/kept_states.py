"""States of the parts of training: copied, and restored all of them or none."""

import contextlib
import copy
from collections.abc import Iterable, Sequence
from typing import Any

import torch

from botorch_costly.ask_tell.generators import global_generators, set_global_generators
from botorch_costly.errors import RestoreError, check
from botorch_costly.states import Stateful, copied

Component = Stateful | torch.Generator


def copies_of(parts: Sequence[Component], device: torch.device | str | None = None) -> list[Any]:
    """Return copies of the states of parts and of the global generators, which share no tensor with them.

    Args:
        parts: The parts of training.
        device: Device of the copies; that of each part if omitted.
    """
    states = [_state_of(component) for component in parts]
    return [copied(states, device), copied(global_generators())]


def restore(parts: Sequence[Component], kept: list[Any], now: list[Any] | None) -> None:
    """Bring all parts into a state; if that fails, restore the present one if it is known.

    Args:
        parts: The parts of training.
        kept: Result of ``copies_of`` for these parts.
        now: The same for the present state; None if it could not be copied.

    Raises:
        RestoreError: If a part failed to load its state.
    """
    try:
        _put(parts, kept)
    except BaseException:
        if now is not None:
            with contextlib.suppress(Exception):  # the first error says more
                _put(parts, now)
        raise


def drop_all_but(parts: Sequence[Component], held: Iterable[list[Any]]) -> None:
    """Tell the parts that remember something for each of their states, which ones are still held."""
    rows = [states for states, _ in held]
    for number, component in enumerate(parts):
        if hasattr(component, "drop_all_but"):
            component.drop_all_but([states[number] for states in rows if number < len(states)])


def _put(parts: Sequence[Component], kept: list[Any]) -> None:
    states, generators = copy.deepcopy(kept)
    expected = f"states of the {len(parts)} parts of this session"
    check(len(states) == len(parts), "restore", expected, len(states), RestoreError)
    for component, state in zip(parts, states, strict=True):
        try:
            if isinstance(component, torch.Generator):
                component.set_state(state.cpu())
            else:
                component.load_state_dict(state)
        except Exception as error:
            expected = f"{type(component).__name__} to take an earlier state of its own"
            raise RestoreError("restore", expected, error) from error
    set_global_generators(generators)


def _state_of(component: Component) -> Any:
    return (
        component.get_state() if isinstance(component, torch.Generator) else component.state_dict()
    )
