"""Files of earlier processes: a run that did not begin with one keeps it beside its own."""

import json
import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from botorch_costly.files import backup_of
from botorch_costly.states import read_plain

_LATEST = 3  # outcomes by which a run is known again; one may be equal in another run by chance
_owned: set[str] = set()  # files that this process has written or loaded
_named: set[str] = set()  # names of files that it was warned of
_logger = logging.getLogger(__name__)


def own(path: str | os.PathLike[str]) -> None:
    """Let this process replace a file without more ado, for it has written or loaded it."""
    _owned.add(os.path.realpath(path))


def keep_earlier(path: Path, states: Mapping[str, Any]) -> None:
    """Keep a file that is about to be replaced, unless nothing that was told would be lost with it.

    Nothing is lost if this process has written or loaded the file, if nothing had been told by then, or
    if the new states contain all of it, as after ``load_state_dict``. A file that cannot be read is kept.

    Args:
        path: File to be replaced, if it exists.
        states: States that will replace it.
    """
    if os.path.realpath(path) in _owned or not path.exists():
        return
    lost = _lost(path, states)
    if not lost:
        return
    kept = backup_of(path)
    if path.name not in _named:  # once, for all checkpoints of a run have one name
        _named.add(path.name)
        _logger.warning(
            "%s held %s, which this run has not loaded: it is kept as %s. To go on with an earlier run, "
            "load its file before the first round; for a new run take a path of its own.",
            path,
            lost,
            kept.name,
        )


def _lost(path: Path, states: Mapping[str, Any]) -> str:
    """Return, in words, the outcomes of a file that are not in the new states; "" if all of them are."""
    try:
        earlier = list(_told(read_plain(path, device="cpu", mapped=True)))
    except Exception:  # whatever it is, no run of this package has written it
        return "something other than states of this package"
    # A run that holds the latest outcomes of another one has gone through all before them.
    present = {outcome for told in _told(states) for outcome in told}
    count = sum(len(told) for told in earlier if not present.issuperset(told[-_LATEST:]))
    return f"{count} outcome{'s' * (count > 1)} of an earlier run" if count else ""


def _told(state: Any) -> Iterator[list[str]]:
    """Yield the outcomes of each ledger, and the readings of each validation, in a state."""
    if isinstance(state, Mapping):
        if isinstance(outcomes := state.get("outcomes"), str):
            yield list(map(repr, _listed(outcomes)))
        elif isinstance(readings := state.get("all"), list):
            yield list(map(repr, readings))
        state = list(state.values())
    if isinstance(state, list | tuple):
        for entry in state:
            yield from _told(entry)


def _listed(text: str) -> list[Any]:
    """Return the entries of a list in JSON; none of a text that a part of the user's own has there."""
    try:
        entries = json.loads(text)
    except ValueError:
        return []
    return entries if isinstance(entries, list) else []
