"""Histories of this package's optimizers as earlier studies, as a whole or in windows of rounds.

Windows serve a reward function that changes: old observations are of another function, which is more or
less similar to the current one.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from botorch_costly.calls import advised
from botorch_costly.errors import check, check_count
from botorch_costly.plain import tupled
from botorch_costly.population_records import FAILED
from botorch_costly.records import FrozenConfig
from botorch_costly.task_readers.curves import CurvePoint, task_of_curves
from botorch_costly.task_records import Task

Row = Mapping[str, Any]
_EVALUATION = {"round", "config", "reward", "failed", "fidelities", "cost"}


class _Outcome(NamedTuple):
    round: int
    config: FrozenConfig
    value: float | None


@advised
def task_from_history(
    history: Iterable[Row],
    *,
    where: Callable[[Row], bool] | None = None,
    name: str | None = None,
    iterations: int | str | None = None,
    fidelities: bool = False,
) -> Task:
    """Read the history of an optimizer of this package, in the order of its rounds.

    Values keep their sign, so the new optimizer needs the same ``maximize``. Rounds without an outcome
    are left out; failed queries become failed observations.

    - ``OnlineTuner``, ``FixedTuner``, ``RandomTuner``: the reward of each query.
    - ``TwinTuner``: the metric of each query, and the configuration before schedules (``peak``).
    - ``PopulationTuner``: the metric and the configuration of each member that was queried.
    - ``CurveOptimizer``: one observation per training. Its value is the last reward of the training,
      regardless of the number of iterations; it is failed if the training diverged. With ``iterations``
      all values of all curves are read, with their progress, for the next ``CurveOptimizer``.
    - ``SubsetOptimizer``: the value of each evaluation. If fidelities differ, ``where`` must select
      evaluations with equal fidelities, or ``fidelities`` be True.

    Args:
        history: ``optimizer.history``, or the same read from JSON.
        where: Predicate that selects the rows to read, such as
            ``lambda row: row["fidelities"]["fraction"] == 1.0``, or ``lambda row: row["until"] == 27``
            for whole trainings; all rows if omitted.
        name: Name of the task.
        iterations: Iterations of a whole training, or the name of the parameter that holds them, in a
            history of a ``CurveOptimizer``.
        fidelities: Whether to read the fidelities of each evaluation as parameters, and its cost, in a
            history of a ``SubsetOptimizer``, for the next one.

    Raises:
        InvalidArgumentError: If the rows are not those of a history, none has an outcome, fidelities
            differ and ``where`` is omitted, a curve is longer than a whole training, or both
            ``iterations`` and ``fidelities`` are asked for.

    Example:
        >>> row = {"round": 0, "config": {"lr": 0.1}, "reward": 0.8, "failed": False}
        >>> history = [row, {**row, "round": 1, "reward": None}]  # round 1 was not queried
        >>> task_from_history(history).values
        (0.8,)
    """
    rows = _rows(history)
    if fidelities:
        check(iterations is None, "iterations", "none beside fidelities", iterations)
        return _of_fidelities([row for row in rows if where is None or where(row)], name)
    outcomes = _outcomes(rows, where)
    if iterations is None:
        return _task(outcomes, name)
    return _of_curves([row for row in rows if where is None or where(row)], iterations, name)


@advised
def tasks_from_history(
    history: Iterable[Row],
    *,
    window: int,
    where: Callable[[Row], bool] | None = None,
) -> list[Task]:
    """Read a history as one task for each window of rounds: 0 to ``window - 1``, and so on.

    Windows without a finite value are left out; the last window may be shorter. A training of a
    ``CurveOptimizer`` belongs to the round in which it started.

    Args:
        history: ``optimizer.history``, or the same read from JSON.
        window: Number of rounds of a task.
        where: Predicate that selects the rows to read; all rows if omitted.

    Returns:
        The tasks, oldest first, named after the rounds that they cover.

    Raises:
        InvalidArgumentError: If ``task_from_history`` would raise it, or ``window`` is not an
            integer >= 1.

    Example:
        >>> row = {"config": {"lr": 0.1}, "failed": False}
        >>> history = [{**row, "round": r, "reward": float(r)} for r in range(5)]
        >>> [(task.name, task.values) for task in tasks_from_history(history, window=3)]
        [('rounds 0 to 2', (0.0, 1.0, 2.0)), ('rounds 3 to 5', (3.0, 4.0))]
    """
    size = check_count("window", window, minimum=1)
    windows: dict[int, list[_Outcome]] = {}
    for outcome in sorted(_outcomes(history, where), key=lambda outcome: outcome.round):
        windows.setdefault(outcome.round // size, []).append(outcome)
    return [
        _task(outcomes, f"rounds {number * size} to {(number + 1) * size - 1}")
        for number, outcomes in windows.items()
        if any(outcome.value is not None for outcome in outcomes)
    ]


def _of_fidelities(rows: Sequence[Row], name: str | None) -> Task:
    """Return all evaluations with their fidelities and costs."""
    for row in rows:
        is_row = isinstance(row, Mapping) and set(row) >= _EVALUATION
        is_row = is_row and isinstance(row["fidelities"], Mapping)
        check(is_row, "history", "rows of a SubsetOptimizer", row)
        _check_row(row)
    told = [row for row in rows if _has_outcome(row)]
    check(len(told) > 0, "history", "a row with an outcome", f"none in {len(rows)} rows")
    return Task(
        [{**_of_round(row).config, **row["fidelities"]} for row in told],
        [None if row["failed"] else row["reward"] for row in told],
        name=name,
        costs=[row["cost"] for row in told],
    )


def _of_curves(rows: Sequence[Row], iterations: int | str, name: str | None) -> Task:
    """Return all values of all curves; a training that diverged is one failed observation."""
    for row in rows:
        check({"curve", "since"} <= set(row), "history", "rows of a CurveOptimizer", sorted(row))
    broken = {row["training"]: row for row in rows if row["broken"]}
    points = [
        CurvePoint(row["config"], row["since"] + k, value)
        for row in rows
        if row["training"] not in broken
        for k, value in enumerate(row["curve"] or (), 1)
        if not _is_missing(value)
    ]
    failed = [CurvePoint(row["config"], 1, None) for row in broken.values()]
    return task_of_curves([*points, *failed], iterations, name=name, source="history")


def _task(outcomes: Sequence[_Outcome], name: str | None) -> Task:
    return Task([o.config for o in outcomes], [o.value for o in outcomes], name=name)


def _rows(history: Iterable[Row]) -> list[Row]:
    listed = isinstance(history, Iterable) and not isinstance(history, Mapping | str)
    check(listed, "history", "the rows of an optimizer: optimizer.history", history)
    return list(history)


def _outcomes(history: Iterable[Row], where: Callable[[Row], bool] | None) -> list[_Outcome]:
    rows = _rows(history)
    for row in rows:
        is_row = isinstance(row, Mapping) and {"round", "config", "reward", "failed"} <= set(row)
        check(is_row, "history", "the rows of an optimizer: optimizer.history", row)
    for row in rows:
        _check_row(row)
    observed = [row for row in rows if (where is None or where(row)) and _has_outcome(row)]
    expected = "a row with an outcome" + ("" if where is None else " that where chooses")
    check(len(observed) > 0, "history", expected, f"none in {len(rows)} rows")
    if where is None:
        fidelities = {json.dumps(row.get("fidelities") or {}, sort_keys=True) for row in observed}
        expected = "equal fidelities in all rows, or where to choose some"
        check(len(fidelities) == 1, "history", expected, f"{len(fidelities)} different ones")
    kinds = {"training" in row for row in observed}
    check(len(kinds) == 1, "history", "rows of one optimizer", "rows with and without a training")
    if kinds == {True}:
        return _of_trainings(observed)
    return [outcome for row in observed for outcome in _of_row(row)]


def _has_outcome(row: Row) -> bool:
    return bool(row["failed"]) or not _is_missing(row["reward"])


def _is_missing(reward: Any) -> bool:
    """Return whether a reward is None, which a data frame stores as NaN."""
    return reward is None or reward != reward


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_row(row: Row) -> None:
    """Raise unless the entries of a row have the types of a history."""
    round, config, reward = row["round"], row["config"], row["reward"]
    place = f"history, round {round}"
    is_round = _is_number(round) and round == round // 1 >= 0
    check(is_round, place, "a number of a round", round)
    are_configs = isinstance(config, Mapping) and isinstance(row.get("peak", config), Mapping)
    check(are_configs, place, "a configuration, values by name", config)
    is_reward = reward is None or _is_number(reward)
    check(is_reward, place, "a number or None as the reward", reward)
    if "training" in row:
        check("broken" in row, place, "the entry broken beside training", sorted(row))
    if "configs" in row:
        _check_members(row, place)


def _check_members(row: Row, place: str) -> None:
    """Raise unless a row of a population has a metric, or None, for each member."""
    configs, metrics = row["configs"], row.get("metrics")
    are_lists = all(isinstance(values, list | tuple) for values in (configs, metrics))
    is_whole = are_lists and len(configs) == len(metrics or ())
    expected = "as many metrics as there are configs"
    check(is_whole or not _has_outcome(row), place, expected, metrics)
    for config in configs if is_whole else ():
        check(isinstance(config, Mapping), place, "a configuration, values by name", config)
    for metric in metrics or () if is_whole else ():
        is_valid = _is_number(metric) or metric is None or metric == FAILED
        check(is_valid, place, f"a number, None or '{FAILED}' as a metric", metric)


def _of_row(row: Row) -> list[_Outcome]:
    """Return the outcome of a round; for a population, that of each queried member."""
    if "configs" not in row:
        return [_of_round(row)]
    return [
        _of_round({**row, "config": config, "reward": None if metric == FAILED else metric})
        for config, metric in zip(row["configs"], row["metrics"], strict=True)
        if metric is not None
    ]


def _of_round(row: Row) -> _Outcome:
    config = {name: tupled(value) for name, value in row.get("peak", row["config"]).items()}
    return _Outcome(int(row["round"]), FrozenConfig(config), row["reward"])


def _of_trainings(rows: Sequence[Row]) -> list[_Outcome]:
    """Return the last reward of each training; None if it diverged."""
    trainings: dict[int, _Outcome] = {}
    for row in rows:
        number, config = row["training"], _of_round(row).config
        previous = trainings.get(number, _Outcome(number, config, None))
        expected = f"one configuration of training {number}, as in a history of one optimizer"
        check(previous.config == config, "history", expected, [previous.config, config])
        latest = previous.value if _is_missing(row["reward"]) else row["reward"]
        trainings[number] = _Outcome(number, config, None if row["broken"] else latest)
    return list(trainings.values())
