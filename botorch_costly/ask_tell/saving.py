"""Files of saved states: one file of several objects, replaced at once, read without running code."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from botorch_costly.ask_tell.earlier_files import keep_earlier, own
from botorch_costly.ask_tell.protocol import Extendable
from botorch_costly.ask_tell.state import check_changed, unchanged_on_error
from botorch_costly.ask_tell.written import readable
from botorch_costly.calls import advised
from botorch_costly.errors import StateMismatchError, UnsafeVersionError, check
from botorch_costly.files import replacing
from botorch_costly.states import Stateful, outside_inference, read_plain


@advised
def save(path: str | os.PathLike[str], /, *unnamed: Any, **parts: Stateful) -> None:
    """Save the states of objects in one file, which is replaced atomically.

    A process that is killed meanwhile leaves the old file intact. If the file holds outcomes of an
    earlier run, which this process has not loaded, it is kept as ``<name>.1``, ``<name>.2`` and so on,
    with one warning. The file holds tensors and plain values, so that ``torch.load(path,
    weights_only=True)`` reads it; numbers of NumPy are converted to Python's.

    Args:
        path: Path of the file; a missing folder is created.
        unnamed: None; objects without a name are refused.
        parts: Objects with ``state_dict`` and ``load_state_dict``, by the names to save them under.

    Raises:
        InvalidArgumentError: If there is no object, one has no name or no state, or a state holds
            something that ``load`` does not read, such as an array of NumPy; or if the path is a folder.
            Nothing is written.

    Example::

        save("tuning.pt", tuner=tuner, reward=reward, network=network, optimizer=optimizer)
    """
    _check_parts(path, unnamed, parts)
    expected = "another name of a part, for load has this option"
    check("changed" not in parts, "changed", expected, "it")
    target = Path(path)
    check(not target.is_dir(), "path", "a file, and no folder", str(path))
    states = {name: readable(name, stateful.state_dict()) for name, stateful in parts.items()}
    target.parent.mkdir(parents=True, exist_ok=True)
    write(target, states)


def write(path: str | os.PathLike[str], states: Mapping[str, Any]) -> None:
    """Write states to a file, which is replaced as a whole; keep one of an earlier run beside it.

    Raises:
        OSError: If the file cannot be written.
    """
    with replacing(path) as file:
        torch.save(states, file)
        keep_earlier(Path(path), states)  # once nothing else can fail
    own(path)


@advised
@outside_inference()
def load(
    path: str | os.PathLike[str],
    /,
    *unnamed: Any,
    changed: tuple[str, ...] | list[str] = (),
    **parts: Stateful,
) -> None:
    """Load the states that ``save`` wrote into objects that were built with equal options.

    A copy of each former state is kept meanwhile, on its device. No code of the file is executed.

    Args:
        path: Path of the file.
        unnamed: None; objects without a name are refused.
        changed: Names of options that may differ from the saved ones, such as ``["horizon"]`` to train
            for longer. Each object gets the names of its own options.
        parts: Objects, by the names they were saved under; further names in the file are ignored.

    Raises:
        FileNotFoundError: If there is no such file.
        UnsafeVersionError: If this version of torch reads files unsafely.
        InvalidArgumentError: If no object has an option that ``changed`` names.
        StateMismatchError: If ``save`` did not write the file, a name is missing, or an object refuses
            its state by any error; the message names the object. All objects are unchanged.
        RestoreError: If an object refuses its state, and then its former state, too.

    Example::

        load("tuning.pt", tuner=tuner, reward=reward, network=network, changed=["horizon"])
    """
    _check_parts(path, unnamed, parts, "objects made with the saved options, ")
    options = _options_of(parts, changed)
    states = read(path, list(parts))
    with unchanged_on_error(*parts.values()):
        for name, stateful in parts.items():
            _load_part(name, stateful, states[name], options.get(name))
    own(path)


def _options_of(parts: Mapping[str, Stateful], changed: Any) -> dict[str, list[str]]:
    """Return the changed options of each object whose options may change."""
    options = {n: obj.changeable for n, obj in parts.items() if isinstance(obj, Extendable)}
    check_changed(changed, set().union(*options.values()))
    return {n: [option for option in changed if option in own] for n, own in options.items()}


def _load_part(name: str, stateful: Stateful, state: Any, changed: list[str] | None) -> None:
    try:
        if changed and isinstance(stateful, Extendable):
            stateful.load_state_dict(state, changed=changed)
        else:
            stateful.load_state_dict(state)
    except StateMismatchError as error:  # names the difference already
        where = f"{name}: {error.name}"
        raise StateMismatchError(where, error.expected, error.received) from error
    except Exception as error:
        expected = f"a state that this {type(stateful).__name__} takes"
        raise StateMismatchError(name, expected, f"{type(error).__name__}: {error}") from error


def read(path: str | os.PathLike[str], names: Sequence[str]) -> dict[str, Any]:
    """Return all states of a file that ``save`` wrote; raise as ``load`` if one of the names is missing.

    A file that is not there, or that this version of torch reads unsafely, has errors of its own.
    """
    try:
        states = read_plain(path, device="cpu")
    except (FileNotFoundError, IsADirectoryError, PermissionError, UnsafeVersionError):
        raise
    except Exception as error:
        expected = (
            "a file written by save, with tensors and plain values only, and no whole objects"
        )
        raise StateMismatchError("path", expected, f"{path}: {type(error).__name__}") from error
    received = sorted(map(str, states)) if isinstance(states, dict) else type(states).__name__
    complete = isinstance(states, dict) and set(names) <= set(states)
    alone = isinstance(states, dict) and "header" in states
    hint = "; a state that torch.load reads is for load_state_dict" if alone else ""
    check(complete, "path", f"states of {sorted(names)}{hint}", received, StateMismatchError)
    return states


def _check_parts(
    path: object, unnamed: Sequence[object], parts: Mapping[str, Any], made: str = "objects "
) -> None:
    named = f"{made}by name, such as tuner=tuner"
    expected = f"a path, and {named}"
    received = ", ".join(type(given).__name__ for given in (path, *unnamed))
    check(isinstance(path, str | os.PathLike) and not unnamed, "path", expected, received)
    check(len(parts) > 0, "parts", named, "none")
    for name, obj in parts.items():
        valid = callable(getattr(obj, "state_dict", None)) and not isinstance(obj, type)
        valid = valid and callable(getattr(obj, "load_state_dict", None))
        given = obj if isinstance(obj, type) else type(obj).__name__
        check(valid, name, "an object with state_dict and load_state_dict", given)
