"""A round as a row of plain values, for logs and reports."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from botorch_costly.records import Decision, Observation

# Fields that a row leaves out: the decision has them, or, of variances, ``history`` alone.
_LEFT_OUT = ("round", "config", "variance", "variances")
_UNTOLD = {"reward": None, "metric": None, "failed": False, "seconds": None}


def row_of(decision: Decision, observation: Observation | None = None) -> dict[str, Any]:
    """Return the decision and the observation of a round by column; missing values are None.

    Args:
        decision: Decision of the round, of any tuner.
        observation: Observation of the round, if there is one.

    Returns:
        The fields of both in plain values, tuples as lists. ``metric`` is the metric as it was measured,
        if it was told, and ``query_seconds`` the duration of the query. Each value of a configuration has
        its own column, ``config/<name>``, at the end.

    Example:
        >>> decision = Decision(3, {"lr": 0.1}, query=True, reason="rivals")
        >>> row = row_of(decision, Observation(3, {"lr": 0.1}, 0.5, seconds=2.0))
        >>> row["round"], row["reward"], row["query_seconds"], row["config/lr"]
        (3, 0.5, 2.0, 0.1)
        >>> row_of(decision)["reward"] is None
        True
    """
    outcome = {} if observation is None else observation.to_dict()
    outcome = {name: value for name, value in outcome.items() if name not in _LEFT_OUT}
    values = {**decision.to_dict(), **_UNTOLD, **outcome}
    seconds = values.pop("seconds")  # renamed below: logs also have the seconds of the run
    configs = {name: value for name, value in values.items() if isinstance(value, Mapping)}
    row = {name: value for name, value in values.items() if name not in configs}
    row["query_seconds"] = seconds
    for name in sorted(configs, reverse=True):  # "config" after "peak"
        row |= columns_of(name, configs[name])
    return row


def columns_of(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a mapping by column: ``<name>/<name of the value>``.

    Example:
        >>> columns_of("config", {"lr": 0.1})
        {'config/lr': 0.1}
    """
    return {f"{name}/{inner}": value for inner, value in values.items()}


def heads_of(names: Sequence[str], others: Collection[str]) -> list[str]:
    """Return names of hyperparameters as heads of columns; ``config/<name>`` where another has the name.

    Example:
        >>> heads_of(["lr", "cost"], ["value", "cost"])
        ['lr', 'config/cost']
    """
    return [f"config/{name}" if name in others else name for name in names]


def cell_of(value: Any) -> str:
    """Return a value of a row as the text of a cell: None is empty, lists and tuples are JSON.

    Example:
        >>> cell_of(None), cell_of(0.1), cell_of([1, None])
        ('', '0.1', '[1, null]')
    """
    if value is None:
        return ""
    return json.dumps(value) if isinstance(value, list | tuple) else str(value)
