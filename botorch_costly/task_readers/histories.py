"""The histories of our own optimizers as earlier studies, as a whole or in windows of rounds.

A reward function that changes is the same thing with the past as studies: what was seen long ago is of
another function, more or less like the present one.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from botorch_costly.errors import check, check_count
from botorch_costly.plain import tupled
from botorch_costly.population_records import FAILED
from botorch_costly.records import FrozenConfig
from botorch_costly.task_records import Task

Row = Mapping[str, Any]


class _Seen(NamedTuple):
    round: int
    config: FrozenConfig
    value: float | None


def task_from_history(
    history: Iterable[Row],
    *,
    where: Callable[[Row], bool] | None = None,
    name: str | None = None,
) -> Task:
    """Read the history of an optimizer of this package: what it was told, in the order of asking.

    Values are as they were told, so the coming optimizer has the same ``maximize``. Rounds without an
    outcome are left out, and what failed is a failed observation.

    - ``OnlineTuner``, ``FixedTuner``, ``RandomTuner``: the reward of each query.
    - ``TwinTuner``: the metric of each query, and the configuration before schedules (``peak``).
    - ``PopulationTuner``: the metric and the configuration of each member that was queried.
    - ``CurveOptimizer``: a training is one observation, whose value is the last reward told of it, after
      however many iterations; it failed if it diverged.
    - ``SubsetOptimizer``: the value of each evaluation, if all of them have equal fidelities; otherwise
      ``where`` must choose.

    Args:
        history: ``optimizer.history``, or the same read from JSON.
        where: Which rows to read, such as ``lambda row: row["fidelities"]["fraction"] == 1.0``, or
            ``lambda row: row["until"] == 27`` for trainings that are whole; all rows if omitted.
        name: Of the task.

    Raises:
        InvalidArgumentError: If the rows are no history, no outcome is among them, or fidelities differ
            and ``where`` is omitted.

    Example:
        >>> row = {"round": 0, "config": {"lr": 0.1}, "reward": 0.8, "failed": False}
        >>> history = [row, {**row, "round": 1, "reward": None}]  # round 1 was not queried
        >>> task_from_history(history).values
        (0.8,)
    """
    return _task(_seen(history, where), name)


def tasks_from_history(
    history: Iterable[Row],
    *,
    window: int,
    where: Callable[[Row], bool] | None = None,
) -> list[Task]:
    """Read a history as one task for each window of rounds: 0 to ``window - 1``, and so on.

    Windows without a finite value are left out; the last one may be shorter. A training of a
    ``CurveOptimizer`` belongs to the round in which it was begun.

    Args:
        history: As in ``task_from_history``.
        window: How many rounds a task covers.
        where: As in ``task_from_history``.

    Returns:
        The tasks, oldest first; their names say which rounds they cover.

    Raises:
        InvalidArgumentError: As in ``task_from_history``, or if ``window`` is no integer of at least 1.

    Example:
        >>> row = {"config": {"lr": 0.1}, "failed": False}
        >>> history = [{**row, "round": r, "reward": float(r)} for r in range(5)]
        >>> [(task.name, task.values) for task in tasks_from_history(history, window=3)]
        [('rounds 0 to 2', (0.0, 1.0, 2.0)), ('rounds 3 to 5', (3.0, 4.0))]
    """
    size = check_count("window", window, minimum=1)
    windows: dict[int, list[_Seen]] = {}
    for one in sorted(_seen(history, where), key=lambda one: one.round):
        windows.setdefault(one.round // size, []).append(one)
    return [
        _task(seen, f"rounds {number * size} to {(number + 1) * size - 1}")
        for number, seen in windows.items()
        if any(one.value is not None for one in seen)
    ]


def _task(seen: Sequence[_Seen], name: str | None) -> Task:
    return Task([one.config for one in seen], [one.value for one in seen], name=name)


def _seen(history: Iterable[Row], where: Callable[[Row], bool] | None) -> list[_Seen]:
    rows = list(history)
    for row in rows:
        known = isinstance(row, Mapping) and {"round", "config", "reward", "failed"} <= set(row)
        check(known, "history", "the rows of an optimizer's history", row)
    for row in rows:
        _check_row(row)
    chosen = [row for row in rows if where is None or where(row)]
    told = [row for row in chosen if row["failed"] or not _is_missing(row["reward"])]
    expected = (
        "a row with an outcome" if where is None else "a row with an outcome that where chooses"
    )
    check(len(told) > 0, "history", expected, f"none in {len(rows)} rows")
    if where is None:
        _check_one_fidelity(told)
    kinds = {"training" in row for row in told}
    check(len(kinds) == 1, "history", "rows of one optimizer", "rows with and without a training")
    return _of_trainings(told) if kinds == {True} else [one for row in told for one in _of_row(row)]


def _is_missing(reward: Any) -> bool:
    """Return whether there is no reward: None, which a data frame holds as NaN."""
    return reward is None or reward != reward


def _check_row(row: Row) -> None:
    """Raise unless the entries of a row are of the kinds that a history has."""
    number, config, reward = row["round"], row["config"], row["reward"]
    at = f"history, round {number}"
    counted = isinstance(number, int | float) and number == number // 1 >= 0
    check(counted and not isinstance(number, bool), at, "a number of a round", number)
    named = isinstance(config, Mapping) and isinstance(row.get("peak", config), Mapping)
    check(named, at, "a configuration, values by name", config)
    measured = reward is None or (isinstance(reward, int | float) and not isinstance(reward, bool))
    check(measured, at, "a number or None as the reward", reward)
    if "training" in row:
        check("broken" in row, at, "the entry broken beside training", sorted(row))
    if "configs" in row:
        _check_members(row, at)


def _check_members(row: Row, at: str) -> None:
    """Raise unless a row of a population has a metric, or None, for each member."""
    configs, metrics = row["configs"], row.get("metrics")
    listed = all(isinstance(one, list | tuple) for one in (configs, metrics))
    told = row["failed"] or not _is_missing(row["reward"])
    whole = listed and len(configs) == len(metrics or ())
    check(whole or not told, at, "as many metrics as there are configs", metrics)
    for config in configs if whole else ():
        check(isinstance(config, Mapping), at, "a configuration, values by name", config)
    for metric in metrics or () if whole else ():
        number = isinstance(metric, int | float) and not isinstance(metric, bool)
        known = number or metric is None or metric == FAILED
        check(known, at, f"a number, None or '{FAILED}' as a metric", metric)


def _check_one_fidelity(rows: Sequence[Row]) -> None:
    fidelities = {json.dumps(row.get("fidelities") or {}, sort_keys=True) for row in rows}
    expected = "equal fidelities in all rows, or where to choose some"
    check(len(fidelities) == 1, "history", expected, f"{len(fidelities)} different ones")


def _of_row(row: Row) -> list[_Seen]:
    """Return the observations of a round: one, or one of each member that was queried."""
    if "configs" not in row:
        return [_of_round(row)]
    members = zip(row["configs"], row["metrics"], strict=True)
    measured = [
        (config, None if metric == FAILED else metric)
        for config, metric in members
        if metric is not None
    ]
    return [_of_round({**row, "config": config, "reward": value}) for config, value in measured]


def _of_round(row: Row) -> _Seen:
    config = row.get("peak", row["config"])
    return _Seen(
        int(row["round"]), FrozenConfig({n: tupled(v) for n, v in config.items()}), row["reward"]
    )


def _of_trainings(rows: Sequence[Row]) -> list[_Seen]:
    """Return one observation of each training: its last reward; none if it diverged."""
    trainings: dict[int, _Seen] = {}
    for row in rows:
        number, config = row["training"], _of_round(row).config
        before = trainings.get(number, _Seen(number, config, None))
        expected = f"one configuration of training {number}, as in a history of one optimizer"
        check(before.config == config, "history", expected, [before.config, config])
        latest = before.value if _is_missing(row["reward"]) else row["reward"]
        trainings[number] = _Seen(number, config, None if row["broken"] else latest)
    return list(trainings.values())
