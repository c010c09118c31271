"""Saved states: tensors and plain values only, which know the options they were made with."""

import dataclasses
import json
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar, Protocol

import torch

from botorch_costly.ask_tell.protocol import Extendable, Stateful, Tells
from botorch_costly.ask_tell.written import readable
from botorch_costly.errors import RestoreError, StateMismatchError, check
from botorch_costly.files import replacing
from botorch_costly.space import SearchSpace
from botorch_costly.states import copied, outside_inference

STATE_VERSION = 5
_ONCE = {"dtype": "torch.float64"}  # options that older states do not name, as they were then
# Entries for readers of a state. Older states lack them; options are compared one by one.
DESCRIPTION = ("tells", "records", "definition")
_DAMAGES = (AttributeError, LookupError, TypeError, ValueError, RuntimeError, StopIteration)


class Described(Protocol):
    """An optimizer that declares what it is told and what it records."""

    tells: ClassVar[Tells]
    records: ClassVar[tuple[type[Any], type[Any]]]


def header(kind: type[Described], space: SearchSpace, options: Mapping[str, Any]) -> dict[str, str]:
    """Return what a state says of the optimizer it was made with: one line for each option.

    Args:
        kind: The class of the optimizer.
        space: Its search space; each parameter is an option, ``space.<name>``.
        options: Those that a state does not survive a change of. A dataclass is split into its fields,
            ``<option>.<field>``.
    """
    parameters = {f"space.{name}": repr(parameter) for name, parameter in space.parameters}
    told: dict[str, str] = {
        "kind": kind.__name__,
        "version": str(STATE_VERSION),
        "tells": kind.tells,
    }
    told["records"] = " ".join(record.__name__ for record in kind.records)
    told["definition"] = json.dumps(space.to_dict())
    told |= {"parameters": ", ".join(space.names), **parameters}
    for name, value in options.items():
        told |= _told(name, value)
    return told


def _told(name: str, value: Any) -> dict[str, str]:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind = {name: type(value).__qualname__}
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return kind | {
            k: v for n, field in fields.items() for k, v in _told(f"{name}.{n}", field).items()
        }
    if isinstance(value, str | int | float | bool | None | Mapping | tuple | list | torch.dtype):
        return {name: repr(dict(value) if isinstance(value, Mapping) else value)}
    # An object's repr may hold its address: its class is all that can be compared between processes.
    return {name: getattr(value, "__qualname__", type(value).__qualname__)}


def changeable(expected: Mapping[str, str], *groups: str) -> frozenset[str]:
    """Return options of a header, and groups of options, that can be named as changed.

    Args:
        expected: The header.
        *groups: Options, or groups of options, that can change; all if omitted.
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
    """Raise unless a state carries the expected header.

    Args:
        state: A ``state_dict``.
        expected: The header of the optimizer that is to continue.
        changed: Options, or groups of options, that may differ.
        among: Options that ``changed`` may name; all of them if omitted.

    Raises:
        StateMismatchError: If the state is none, or an option differs, which the error names, or the
            horizon is shorter than what has been played.
        InvalidArgumentError: If ``changed`` names an option that there is not.
    """
    check_changed(changed, changeable(expected) if among is None else among)
    received = state.get("header") if isinstance(state, Mapping) else None
    if not isinstance(received, Mapping):
        wanted = f"a state_dict of {expected['kind']}"
        raise StateMismatchError("state", wanted, type(state).__name__)
    for name in (*expected, *(set(received) - set(expected))):
        if name in DESCRIPTION or name in changed or name.split(".")[0] in changed:
            continue
        unknown = _ONCE.get(name, "no such option")
        ours, theirs = (_Said(told.get(name, unknown)) for told in (expected, received))
        check(ours == theirs, f"state: option {name}", ours, theirs, StateMismatchError)
    _check_rounds(state, expected)


def _check_rounds(state: Any, expected: Mapping[str, str]) -> None:
    """Raise if more rounds have been played than the horizon has."""
    horizon = expected.get("horizon", "None")
    try:
        played = 0 if horizon == "None" else int(state["ledger"]["counts"][0])
    except (LookupError, TypeError, ValueError):
        return  # what is damaged is named where it is read
    least = f"at least {played} rounds, for as many have been played"
    enough = horizon == "None" or int(horizon) >= played
    check(enough, "state: horizon", least, _Said(horizon), StateMismatchError)


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


class _Said(str):
    """A value as it is written, without further quotes."""

    __slots__ = ()
    __repr__ = str.__str__


@contextmanager
def unchanged_on_error(*parts: Stateful, copies: bool = True) -> Iterator[None]:
    """Return parts to the states they had if the block raises, an interrupt included.

    Args:
        *parts: What the block changes.
        copies: Whether the states are copied, each on its own device. False for parts that never change
            in place what their state holds, as networks do.

    Raises:
        RestoreError: If the block raises, and a part does not take back its state; the others have.

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
    with outside_inference():
        states = [part.state_dict() for part in parts]
        states = copied(states) if copies else states
    try:
        yield
    except BaseException as error:
        with outside_inference():
            _give_back(parts, states, error)
        raise


def _give_back(parts: Sequence[Stateful], states: Sequence[Any], why: BaseException) -> None:
    """Give each part its state; a part that refuses does not keep the others from theirs."""
    refused: list[str] = []
    for part, state in zip(parts, states, strict=True):
        try:
            part.load_state_dict(state)
        except Exception as error:
            refused.append(f"{type(part).__name__} ({type(error).__name__}: {error})")
    if refused:
        expected = f"all parts to take back their states after {type(why).__name__}: {why}"
        raise RestoreError("parts", expected, ", ".join(refused)) from why


@contextmanager
def undone_on_error(*objects: object) -> Iterator[None]:
    """Give objects back the attributes they had if the block raises, an interrupt included.

    It costs little where a state is large: attributes are kept as they are, lists, dictionaries and sets
    by a copy of what they hold. What an attribute or a container holds must not be changed in place.

    Args:
        *objects: Whatever the block gives new attributes.

    Example:
        >>> class Counter:
        ...     count = 0
        >>> counter = Counter()
        >>> try:
        ...     with undone_on_error(counter):
        ...         counter.count = 5
        ...         raise KeyboardInterrupt
        ... except KeyboardInterrupt:
        ...     counter.count
        0
    """
    before = [{name: _held(value) for name, value in vars(one).items()} for one in objects]
    try:
        yield
    except BaseException:
        for one, attributes in zip(objects, before, strict=True):
            vars(one).clear()
            vars(one).update(attributes)
        raise


def _held(value: Any) -> Any:
    return value.copy() if type(value) in (dict, list, set) else value


@contextmanager
def taking_over(kind: str, *parts: Stateful) -> Iterator[None]:
    """Take over a state: if it is damaged, the parts have the states they had, and the error says so.

    Args:
        kind: The class of the optimizer.
        *parts: What the block changes.

    Raises:
        StateMismatchError: If the block fails as it does on an incomplete or damaged state.
    """
    try:
        with unchanged_on_error(*parts):
            yield
    except _DAMAGES as error:
        expected = f"a complete state_dict of {kind}"
        raise StateMismatchError("state", expected, type(error).__name__) from error


def save(path: str | os.PathLike[str], /, **parts: Stateful) -> None:
    """Save the states of parts in one file, which is replaced at once.

    A process that is killed meanwhile leaves the old file whole. The file holds tensors and plain
    values, so that ``torch.load(path, weights_only=True)`` reads it; numbers of NumPy are saved as those
    of Python.

    Args:
        path: Of the file; its folder is made if it is not there.
        parts: Objects with ``state_dict`` and ``load_state_dict``, by the names to save them under.

    Raises:
        InvalidArgumentError: If there is no part, one has no state, or a state holds something that
            ``load`` does not read, such as an array of NumPy; or if the path is that of a folder. Nothing
            is written.

    Example::

        save("tuning.pt", tuner=tuner, reward=reward, network=network, optimizer=optimizer)
    """
    _check_parts(parts)
    check(
        "changed" not in parts, "changed", "another name of a part, for load has this option", "it"
    )
    target = Path(path)
    check(not target.is_dir(), "path", "a file, and no folder", str(path))
    states = {name: readable(name, part.state_dict()) for name, part in parts.items()}
    target.parent.mkdir(parents=True, exist_ok=True)
    with replacing(target) as file:
        torch.save(states, file)


@outside_inference()
def load(
    path: str | os.PathLike[str],
    /,
    *,
    changed: tuple[str, ...] | list[str] = (),
    **parts: Stateful,
) -> None:
    """Load the states that ``save`` wrote into parts built with the options of then.

    A copy of each part is held meanwhile, on the device of the part.

    Args:
        path: Of the file.
        changed: Names of options that may differ from those of then, such as ``["horizon"]`` to train for
            longer. Each part hears of the names that are its own.
        parts: The objects, by the names they were saved under; of the names in the file some may be left.

    Raises:
        FileNotFoundError: If there is no such file.
        InvalidArgumentError: If no part has an option that ``changed`` names.
        StateMismatchError: If the file is none of ``save``, lacks a part, or a part refuses its state, by
            whatever error; the message names the part. All parts are as they were.
        RestoreError: If a part refuses its state, and then that of before, too.

    Example::

        load("tuning.pt", tuner=tuner, reward=reward, network=network, changed=["horizon"])
    """
    _check_parts(parts)
    options = _options_of(parts, changed)
    states = read(path, list(parts))
    with unchanged_on_error(*parts.values()):
        for name, part in parts.items():
            _load_part(name, part, states[name], options.get(name))


def _options_of(parts: Mapping[str, Stateful], changed: Any) -> dict[str, list[str]]:
    """Return the changed options of each part that can go on with some."""
    known = {n: part.changeable for n, part in parts.items() if isinstance(part, Extendable)}
    check_changed(changed, {option for options in known.values() for option in options})
    return {name: [one for one in changed if one in options] for name, options in known.items()}


def _load_part(name: str, part: Stateful, state: Any, changed: list[str] | None) -> None:
    try:
        if changed and isinstance(part, Extendable):
            part.load_state_dict(state, changed=changed)
        else:
            part.load_state_dict(state)
    except StateMismatchError as error:  # says already what differs
        where = f"{name}: {error.name}"
        raise StateMismatchError(where, error.expected, error.received) from error
    except Exception as error:
        expected = f"a state that this {type(part).__name__} takes"
        raise StateMismatchError(name, expected, f"{type(error).__name__}: {error}") from error


def read(path: str | os.PathLike[str], names: Sequence[str]) -> dict[str, Any]:
    """Return the states in a file that ``save`` wrote, those of some names among them.

    Raises:
        FileNotFoundError: If there is no such file.
        StateMismatchError: If the file is none of ``save``, or lacks a name.
    """
    try:
        states = torch.load(path, weights_only=True, map_location="cpu")
    except (FileNotFoundError, IsADirectoryError, PermissionError):
        raise
    except Exception as error:
        expected = "a file written by save, with tensors and plain values only"
        raise StateMismatchError("path", expected, f"{path}: {type(error).__name__}") from error
    found = sorted(map(str, states)) if isinstance(states, dict) else type(states).__name__
    complete = isinstance(states, dict) and set(names) <= set(states)
    check(complete, "path", f"states of {sorted(names)}", found, StateMismatchError)
    return states


def _check_parts(parts: Mapping[str, Any]) -> None:
    check(len(parts) > 0, "parts", "objects by name, such as tuner=tuner", "none")
    for name, part in parts.items():
        both = callable(getattr(part, "state_dict", None)) and not isinstance(part, type)
        both = both and callable(getattr(part, "load_state_dict", None))
        check(both, name, "an object with state_dict and load_state_dict", type(part).__name__)
