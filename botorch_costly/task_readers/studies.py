"""Studies of Optuna and Ax, read by the names of their attributes: neither package is imported."""

from typing import Any

from botorch_costly.errors import InvalidArgumentError, check
from botorch_costly.records import FrozenConfig
from botorch_costly.task_records import Task


def task_from_optuna(study: Any, *, maximize: bool = True, name: str | None = None) -> Task:
    """Read a study of Optuna: the parameters and value of each completed trial, in their order.

    Trials that were pruned or failed, or still run, are left out. A trial of a conditional space has the
    parameters that it drew; ``Task.in_space`` fills in the others.

    Args:
        study: An ``optuna.Study`` with one objective.
        maximize: Whether the coming optimizer maximizes. If the study has the other direction, its values
            change their sign.
        name: Of the task; that of the study if omitted.

    Raises:
        InvalidArgumentError: If ``study`` is no study, has several objectives, or no completed trial.
        InvalidConfigError: If a trial holds anything but plain values.

    Example:
        >>> from types import SimpleNamespace as Fake
        >>> done = Fake(name="COMPLETE")
        >>> trials = [Fake(state=done, params={"lr": 0.1}, value=0.3)]
        >>> study = Fake(study_name="digits", directions=[Fake(name="MINIMIZE")], trials=trials)
        >>> task_from_optuna(study).values
        (-0.3,)
    """
    check(isinstance(maximize, bool), "maximize", "a bool", maximize)
    known = all(hasattr(study, part) for part in ("study_name", "directions", "trials"))
    check(known, "study", "an optuna.Study", study)
    directions = [direction.name for direction in study.directions]
    check(len(directions) == 1, "study", "a study with one objective", directions)
    trials = study.trials
    done = [trial for trial in trials if trial.state.name == "COMPLETE"]
    check(len(done) > 0, "study", "a completed trial", f"none of {len(trials)} trials")
    turn = _turn(lower=directions[0] == "MINIMIZE", maximize=maximize)
    configs = [FrozenConfig.from_json(trial.params) for trial in done]
    title = study.study_name if name is None else name
    return Task(configs, [turn * trial.value for trial in done], name=title)


def task_from_ax(
    experiment: Any,
    metric: str,
    *,
    lower_is_better: bool | None = None,
    maximize: bool = True,
    name: str | None = None,
) -> Task:
    """Read an experiment of Ax: parameters and mean of a metric of each arm of a completed trial.

    Trials that failed, were abandoned or stopped early, or still run, are left out, and so are arms
    without data of the metric. An arm of several trials is as many observations.

    Args:
        experiment: An Ax ``Experiment``, or the ``ax.Client`` or ``AxClient`` that has one.
        metric: Its name.
        lower_is_better: Whether smaller values of the metric are better; as the experiment says if
            omitted: its objective if the metric is that alone, and otherwise the metric itself.
        maximize: Whether the coming optimizer maximizes. If the metric has the other direction, its
            values change their sign.
        name: Of the task; that of the experiment, if it has one, if omitted.

    Raises:
        InvalidArgumentError: If ``experiment`` is none, has no data of the metric in a completed trial,
            or does not say which direction is better.
        InvalidConfigError: If an arm holds anything but plain values.

    Example:
        >>> from types import SimpleNamespace as Fake
        >>> frame = {"trial_index": [0], "arm_name": ["0_0"], "metric_name": ["loss"], "mean": [0.3]}
        >>> experiment = Fake(
        ...     name="digits",
        ...     trials={0: Fake(status=Fake(name="COMPLETED"))},
        ...     arms_by_name={"0_0": Fake(parameters={"lr": 0.1})},
        ...     lookup_data=lambda: Fake(df=frame),
        ... )
        >>> task_from_ax(experiment, "loss", lower_is_better=True, maximize=False).values
        (0.3,)
    """
    check(isinstance(maximize, bool), "maximize", "a bool", maximize)
    flagged = lower_is_better is None or isinstance(lower_is_better, bool)
    check(flagged, "lower_is_better", "a bool or None", lower_is_better)
    found = _experiment(experiment)
    rows = _means(found, metric)
    lower = _lower_is_better(found, metric) if lower_is_better is None else lower_is_better
    turn = _turn(lower=lower, maximize=maximize)
    configs = [FrozenConfig.from_json(found.arms_by_name[arm].parameters) for arm, _ in rows]
    values = [turn * float(mean) for _, mean in rows]
    return Task(configs, values, name=_name(found) if name is None else name)


def _name(experiment: Any) -> str | None:
    try:
        name: str | None = experiment.name
    except ValueError:  # Ax, of an experiment without one
        return None
    return name


def _turn(*, lower: bool, maximize: bool) -> float:
    """Return the sign that turns values to the direction of the coming optimizer."""
    return -1.0 if lower == maximize else 1.0


def _experiment(given: Any) -> Any:
    held = (getattr(given, part, None) for part in ("experiment", "_experiment"))
    found = next((one for one in held if one is not None), given)
    known = all(hasattr(found, part) for part in ("arms_by_name", "trials", "lookup_data"))
    check(known, "experiment", "an Experiment of Ax, or a client that has one", given)
    return found


def _means(experiment: Any, metric: str) -> list[tuple[str, Any]]:
    """Return arm and mean of each observation of a metric in a completed trial."""
    data = experiment.lookup_data().df
    if metric not in set(data["metric_name"]) and hasattr(experiment, "fetch_data"):
        data = experiment.fetch_data().df  # not read by Ax so far
    metrics = sorted(set(data["metric_name"]))
    check(metric in metrics, "metric", f"one with data, of {metrics}", metric)
    columns = (data[column] for column in ("trial_index", "arm_name", "metric_name", "mean"))
    done = {i for i, trial in experiment.trials.items() if trial.status.name == "COMPLETED"}
    rows = [
        (arm, mean) for i, arm, of, mean in zip(*columns, strict=True) if of == metric and i in done
    ]
    check(len(rows) > 0, "experiment", f"a completed trial with data of {metric!r}", "none")
    return rows


def _lower_is_better(experiment: Any, metric: str) -> bool:
    config = getattr(experiment, "optimization_config", None)
    objective = None if config is None else config.objective
    if objective is not None and list(objective.metric_names) == [metric]:
        return bool(objective.minimize)
    own = getattr(experiment, "metrics", {}).get(metric)
    lower = getattr(own, "lower_is_better", None)
    expected = f"True or False, for the experiment does not say it of {metric!r}"
    check(lower is not None, "lower_is_better", expected, lower, InvalidArgumentError)
    return bool(lower)
