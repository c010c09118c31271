"""The diagnosis of a saved run: what its optimizer says, from its state alone."""

import ast
import inspect
import json
import logging
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import torch

from botorch_costly import acquisition, bandits, query, rewards, tuners
from botorch_costly.ask_tell import search
from botorch_costly.ask_tell.diagnosis import diagnosis_of_records
from botorch_costly.ask_tell.ledger import Ledger
from botorch_costly.ask_tell.state import FIDELITIES
from botorch_costly.space import SearchSpace

# Where the classes of options lie.
_ROOMS = (tuners, query, rewards, search, bandits, acquisition)
# Options that a state names by a hash. They are left out, and loading the state refuses other ones.
_HASHED = ("tasks", "costs")
# Options that may be the user's own objects, and on which no diagnosis depends.
_UNUSED = ("acquisition", "candidates")
_logger = logging.getLogger(__name__)


class Saved(NamedTuple):
    """The state of an optimizer, and what is read from it."""

    state: Mapping[str, Any]
    header: Mapping[str, str]  # options as text
    space: SearchSpace
    ledger: Ledger[Any, Any]


def diagnosis_in(saved: Saved) -> str:
    """Return the text of the optimizer's ``diagnose``, whose first line is the verdict.

    The optimizer is built anew from the options that its state names. Where this fails, because earlier
    tasks or objects of the user's belong to it, the records of an offline search are diagnosed.

    Returns:
        The diagnosis; "" before the first outcome, or for other tuners that cannot be built.
    """
    if not saved.ledger.outcomes:
        return ""
    try:
        return str(_rebuilt(saved).diagnose())
    except Exception as error:  # a report without a model's verdict is better than none
        _logger.info("The run cannot be diagnosed from its state alone: %r.", error)
    if saved.header["tells"] not in ("value", "curve"):
        return ""
    maximize = saved.header.get("maximize", "True") == "True"
    is_plain = saved.header["tells"] == "value" and saved.header.get("fidelities", "None") == "None"
    return str(diagnosis_of_records(saved.ledger, saved.space, maximize, is_plain=is_plain))


def _rebuilt(saved: Saved) -> Any:
    """Return the optimizer of a state.

    Raises:
        Exception: If it has an object that is not of this package, or the state is damaged.
    """
    header, kind = saved.header, getattr(tuners, saved.header["kind"])
    named = [name for name in inspect.signature(kind).parameters if name in header]
    read = [name for name in named if name not in (*_HASHED, *_UNUSED, "fidelities")]
    options = {name: _option(header, name) for name in read}
    if (fidelities := fidelities_in(header)) is not None:
        options["fidelities"] = fidelities
    optimizer = kind(saved.space, **options)
    own = {name: text for name, text in optimizer.state_dict()["header"].items() if _unused(name)}
    compared = {name: text for name, text in header.items() if not _unused(name)}
    optimizer.load_state_dict({**saved.state, "header": {**compared, **own}})
    return optimizer


def fidelities_in(header: Mapping[str, str]) -> SearchSpace | None:
    """Return the space of the fidelities of a search; None without one."""
    if FIDELITIES not in header:
        return None
    return SearchSpace.from_dict(json.loads(_option(header, FIDELITIES)))


def _unused(name: str) -> bool:
    return name.split(".")[0] in _UNUSED


def _option(header: Mapping[str, str], name: str) -> Any:
    """Return an option of a header: a group of options, a rule, or a plain value.

    Raises:
        ValueError: If it is an object that is not of this package.
    """
    text = header[name]
    kind = next((getattr(room, text) for room in _ROOMS if hasattr(room, text)), None)
    if is_dataclass(kind) and isinstance(kind, type):
        names = [field.name for field in fields(kind) if field.init]
        known = [part for part in names if f"{name}.{part}" in header]
        return kind(**{part: _option(header, f"{name}.{part}") for part in known})
    if text.startswith("torch."):
        return getattr(torch, text.removeprefix("torch."))
    return math.inf if text == "inf" else ast.literal_eval(text)
