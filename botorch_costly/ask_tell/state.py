"""Saved states: tensors and plain values, with a header that names the optimizer's options."""

import dataclasses
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any, ClassVar, Protocol

import torch

from botorch_costly.ask_tell.domain import digest_of
from botorch_costly.ask_tell.protocol import Tells
from botorch_costly.errors import RestoreError, StateMismatchError, check
from botorch_costly.plain import agree_as_text
from botorch_costly.space import SearchSpace
from botorch_costly.states import Stateful, copied, outside_inference

STATE_VERSION = 5
# Values of options that older states do not name.
_ONCE = {
    "dtype": "torch.float64",
    "overhead": "None",
    "seconds": "None",
    "start": "None",
    "tasks": repr(digest_of([])),
    "robust.summed": "False",
}
# Options of which older states do not say what they were.
_UNSAID = ("costs",)
# Entries that describe a state to readers. Older states lack them, so they are not compared.
NEEDED_DESCRIPTION = ("tells", "records", "definition")
FIDELITIES = "definition_of_fidelities"  # where the fidelities are an option
DESCRIPTION = (*NEEDED_DESCRIPTION, FIDELITIES)
_DAMAGES = (AttributeError, LookupError, TypeError, ValueError, RuntimeError, StopIteration)


Undo = Callable[[BaseException], None]
"""Restores something after an error."""


class Described(Protocol):
    """An optimizer that declares the kind of its outcomes and the classes of its records."""

    tells: ClassVar[Tells]
    records: ClassVar[tuple[type[Any], type[Any]]]


def header(kind: type[Described], space: SearchSpace, options: Mapping[str, Any]) -> dict[str, str]:
    """Return the header of a state, which describes its optimizer: one line for each option.

    Args:
        kind: Class of the optimizer.
        space: Search space; each parameter is an option, ``space.<name>``.
        options: Options that a state depends on. A dataclass is split into its fields,
            ``<option>.<field>``.
    """
    lines = {
        "kind": kind.__name__,
        "version": str(STATE_VERSION),
        "tells": str(kind.tells),
        "records": " ".join(record.__name__ for record in kind.records),
        "definition": json.dumps(space.to_dict()),
        "parameters": ", ".join(space.names),
    }
    lines |= {f"space.{name}": repr(parameter) for name, parameter in space.parameters}
    for name, value in options.items():
        lines |= _lines_of(name, value)
    return lines


def _lines_of(name: str, value: Any) -> dict[str, str]:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        lines = {name: type(value).__qualname__}
        for field in dataclasses.fields(value):
            lines |= _lines_of(f"{name}.{field.name}", getattr(value, field.name))
        return lines
    if isinstance(value, str | int | float | bool | None | Mapping | tuple | list | torch.dtype):
        return {name: repr(dict(value) if isinstance(value, Mapping) else value)}
    # An object's repr may hold its address, so only its class is compared.
    return {name: getattr(value, "__qualname__", type(value).__qualname__)}


def changeable(expected: Mapping[str, str], *groups: str) -> frozenset[str]:
    """Return the options, and groups of options, of a header that may change.

    Args:
        expected: Header of an optimizer.
        *groups: Options, or groups of options, that may change; all if omitted.
    """
    named = {name.split(".")[0] for name in expected} | set(expected)
    named -= {"kind", "version", "parameters", *DESCRIPTION}
    return frozenset(name for name in named if not groups or name.split(".")[0] in groups)


def check_header(
    state: object,
    expected: Mapping[str, str],
    changed: tuple[str, ...] | list[str] = (),
    *,
    among: Collection[str] | None = None,
) -> None:
    """Raise unless a state carries the expected header, but for the last digits of floats.

    Args:
        state: State of an optimizer.
        expected: Header of the optimizer that continues.
        changed: Options, or groups of options, that may differ.
        among: Options that ``changed`` may name; all of them if omitted.

    Raises:
        StateMismatchError: If ``state`` is no state, or an option differs, which the error names, or more
            rounds have been played than the horizon has.
        InvalidArgumentError: If ``changed`` names an unknown option.
    """
    check_changed(changed, changeable(expected) if among is None else among)
    received = state.get("header") if isinstance(state, Mapping) else None
    if not isinstance(received, Mapping):
        wanted = f"a state_dict of {expected['kind']} (files of save are read by load)"
        given = sorted(map(str, state)) if isinstance(state, Mapping) else type(state).__name__
        raise StateMismatchError("state", wanted, given)
    for name in (*expected, *(set(received) - set(expected))):
        if name in DESCRIPTION or name in changed or name.split(".")[0] in changed:
            continue
        if name in _UNSAID and name not in received:
            continue
        unknown = _ONCE.get(name, "no such option")
        ours, theirs = (_Unquoted(lines.get(name, unknown)) for lines in (expected, received))
        check(
            agree_as_text(ours, theirs), f"state: option {name}", ours, theirs, StateMismatchError
        )
    _check_rounds(state, expected)


def _check_rounds(state: Any, expected: Mapping[str, str]) -> None:
    """Raise if more rounds have been played than the horizon has."""
    horizon = expected.get("horizon", "None")
    try:
        played = 0 if horizon == "None" else int(state["ledger"]["counts"][0])
    except (LookupError, TypeError, ValueError):
        return  # the code that reads a damaged entry names it
    least = f"at least {played} rounds, for as many have been played"
    enough = horizon == "None" or int(horizon) >= played
    check(enough, "state: horizon", least, _Unquoted(horizon), StateMismatchError)


def check_changed(changed: object, among: Collection[str]) -> None:
    """Raise unless all names are among those of options that may change.

    Raises:
        InvalidArgumentError: If ``changed`` is no tuple or list of such names.
    """
    names = sorted(among)
    listed = isinstance(changed, tuple | list)
    check(listed, "changed", f'a list of names among {names}, such as ["horizon"]', changed)
    for name in changed if isinstance(changed, tuple | list) else ():
        check(name in among, "changed", f"names among {names}", name)


class _Unquoted(str):
    """Text that is written without quotes in a message."""

    __slots__ = ()
    __repr__ = str.__str__


@contextmanager
def unchanged_on_error(*parts: Stateful, copies: bool = True) -> Iterator[None]:
    """Restore the states of objects if the block raises, an interrupt included.

    Args:
        *parts: Objects that the block changes.
        copies: Whether the states are copied, each on its own device. False for objects that never change
            the tensors of their state in place, as networks do.

    Raises:
        RestoreError: If the block raises, and an object refuses its former state; others are restored.

    Example:
        >>> layer = torch.nn.Linear(1, 1)
        >>> before = layer.weight.item()
        >>> try:
        ...     with unchanged_on_error(layer), torch.no_grad():
        ...         _ = layer.weight.zero_()
        ...         raise KeyboardInterrupt
        ... except KeyboardInterrupt:
        ...     layer.weight.item() == before
        True
    """
    undo = states_of(*parts, copies=copies)
    try:
        yield
    except BaseException as error:
        undo(error)
        raise


def states_of(*parts: Stateful, copies: bool = True) -> Undo:
    """Return a function that restores the present states; see ``unchanged_on_error``."""
    # Entering both modes takes as long as the states of most strategies.
    with outside_inference() if torch.is_inference_mode_enabled() else nullcontext():
        states = [stateful.state_dict() for stateful in parts]
        states = copied(states) if copies else states

    def undo(error: BaseException) -> None:
        with outside_inference():
            _restore(parts, states, error)

    return undo


def _restore(parts: Sequence[Stateful], states: Sequence[Any], why: BaseException) -> None:
    """Restore all states; raise at the end if an object refused its state."""
    refused: list[str] = []
    for stateful, state in zip(parts, states, strict=True):
        try:
            stateful.load_state_dict(state)
        except Exception as error:
            refused.append(f"{type(stateful).__name__} ({type(error).__name__}: {error})")
    if refused:
        expected = f"all parts to take back their states after {type(why).__name__}: {why}"
        raise RestoreError("parts", expected, ", ".join(refused)) from why


def attributes_of(*objects: object) -> Undo:
    """Return a function that restores the present attributes of objects.

    This is cheap for large states: only lists, dictionaries and sets are copied, and not their items.
    Other attributes, and the items, must not be changed in place meanwhile.

    Args:
        *objects: Objects to which attributes are assigned.

    Example:
        >>> class Counter:
        ...     count = 0
        >>> counter = Counter()
        >>> undo = attributes_of(counter)
        >>> counter.count = 5
        >>> undo(KeyboardInterrupt())
        >>> counter.count
        0
    """
    before = [{name: _shallow(value) for name, value in vars(obj).items()} for obj in objects]

    def undo(error: BaseException) -> None:
        for obj, attributes in zip(objects, before, strict=True):
            vars(obj).clear()
            vars(obj).update(attributes)

    return undo


@contextmanager
def without_trace(stateful: Stateful) -> Iterator[None]:
    """Run a block, and restore the state of an object after it, whether it raises or not.

    Args:
        stateful: An object that never changes the tensors of its state in place.
    """
    state = stateful.state_dict()
    try:
        yield
    finally:
        stateful.load_state_dict(state)


def both(first: Undo, second: Undo) -> Undo:
    """Return a function that undoes two things."""

    def undo(error: BaseException) -> None:
        first(error)
        second(error)

    return undo


def _shallow(value: Any) -> Any:
    return value.copy() if type(value) in (dict, list, set) else value


def refuse_damage(kind: str, error: BaseException) -> None:
    """Raise a StateMismatchError if the error is one that an incomplete or damaged state causes.

    Args:
        kind: Class of the optimizer.
        error: The error that loading the state has raised.
    """
    if isinstance(error, _DAMAGES):
        expected = f"a complete state_dict of {kind}"
        raise StateMismatchError("state", expected, type(error).__name__) from error
