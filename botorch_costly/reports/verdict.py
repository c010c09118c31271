"""The diagnosis of a saved run: whether tuning has paid, from its state alone."""

import ast
import logging
import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, NamedTuple

import torch

from botorch_costly import query
from botorch_costly.ask_tell.ledger import Ledger
from botorch_costly.ask_tell.search import Search
from botorch_costly.records import Plain
from botorch_costly.rewards import RewardScale
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.online.diagnosis import diagnosis_of
from botorch_costly.tuners.online.intervals import Intervals
from botorch_costly.tuners.online.learner import Learner
from botorch_costly.tuners.online.options import Hold, Options, Prior, Refit
from botorch_costly.tuners.online.rivals import rivals_of
from botorch_costly.tuners.twins import TwinTuner

_GROUPS = {kind.__name__: kind for kind in (Hold, Prior, Refit, RewardScale, Search)}
_logger = logging.getLogger(__name__)


class Saved(NamedTuple):
    """The state of a tuner, and what is read from it."""

    state: Mapping[str, Any]
    header: Mapping[str, str]  # options as text
    space: SearchSpace
    ledger: Ledger[Any, Any]


def diagnosis_in(saved: Saved) -> str:
    """Return the text of the tuner's ``diagnose``, whose first line is the verdict.

    Returns:
        The diagnosis; "" for a tuner without one, or with an option that is not of this package, such as
        a query rule of the user's own.
    """
    diagnose = _KINDS.get(saved.header["kind"])
    if diagnose is None or not saved.ledger.outcomes:
        return ""
    try:
        return diagnose(saved)
    except Exception as error:  # a report without a verdict is better than none
        _logger.info("The run cannot be diagnosed from its state alone: %r.", error)
        return ""


def _of_online(saved: Saved) -> str:
    state, header, space, ledger = saved
    tkwargs: dict[str, Any] = {"dtype": getattr(torch, header["dtype"].removeprefix("torch."))}
    tkwargs["device"] = torch.device("cpu")
    rule = _option(header, "query")
    scale = Options.scale_of(_option(header, "rewards"), rule)
    learner = Learner(_option(header, "prior").of(space), Refit(), scale, tkwargs)
    learner.load_state_dict(state["learner"])
    rivals = rivals_of(space, _option(header, "search"), tkwargs)
    if state["region"] is not None and state["region"]["box"] is not None:
        rivals.confine(state["region"]["box"])
    hold, horizon = _option(header, "hold"), _option(header, "horizon")
    intervals = Intervals(hold.share, horizon, hold.shortest)

    def encode(config: Mapping[str, Plain]) -> torch.Tensor:
        return space.encode(config).to(**tkwargs)

    sign = 1.0 if _option(header, "maximize") else -1.0
    return str(diagnosis_of(ledger, learner, rivals.search, intervals, encode, sign))


def _of_twins(saved: Saved) -> str:
    names = ("horizon", "start", "metric", "queries", "seed", "seconds")
    named = [name for name in names if name in saved.header]  # earlier states have no seconds
    tuner = TwinTuner(saved.space, **{name: _option(saved.header, name) for name in named})
    tuner.load_state_dict(saved.state, changed=["overhead"])
    return str(tuner.diagnose())


_KINDS = {"OnlineTuner": _of_online, "TwinTuner": _of_twins}


def _option(header: Mapping[str, str], name: str) -> Any:
    """Return an option of a header: a group of options, a query rule, or a plain value.

    Raises:
        LookupError: If there is no such option.
        ValueError: If it is an object that is not of this package.
    """
    text = header[name]
    kind = _GROUPS.get(text) or getattr(query, text, None)
    if is_dataclass(kind) and isinstance(kind, type):
        parts = [field.name for field in fields(kind) if field.init]
        return kind(**{part: _option(header, f"{name}.{part}") for part in parts})
    return math.inf if text == "inf" else ast.literal_eval(text)
