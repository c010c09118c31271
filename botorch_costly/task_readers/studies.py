"""Studies of Optuna and Ax, read through their attributes, without importing these packages."""

from collections.abc import Iterator
from typing import Any

from botorch_costly.calls import advised
from botorch_costly.errors import check, check_count
from botorch_costly.records import FrozenConfig
from botorch_costly.task_readers.curves import CurvePoint, task_of_curves
from botorch_costly.task_records import Task


@advised
def task_from_optuna(
    study: Any,
    *,
    maximize: bool = True,
    name: str | None = None,
    iterations: int | str | None = None,
    first_step: int = 0,
) -> Task:
    """Read a study of Optuna: parameters, value and seconds of each completed trial, in their order.

    Trials that were pruned, failed or are running are left out. With ``iterations`` the reported values
    of completed and pruned trials are read, with their progress, for a ``CurveOptimizer``; without
    reports the value of a completed trial is that at its end. A trial of a conditional space has only the
    parameters that it drew; ``Task.in_space`` fills in the others.

    Args:
        study: An ``optuna.Study`` with one objective.
        maximize: Whether the new optimizer maximizes. If the study has the other direction, the sign of
            its values is changed.
        name: Name of the task; that of the study if omitted.
        iterations: Iterations of a whole training, or the name of the parameter that holds them.
        first_step: Step of the report after the first iteration.

    Raises:
        InvalidArgumentError: If ``study`` is not a study, has several objectives, or no completed trial,
            or a curve is longer than a whole training.
        InvalidConfigError: If a trial has a parameter that is not a plain value.

    Example:
        >>> from types import SimpleNamespace as Fake
        >>> done = Fake(name="COMPLETE")
        >>> trials = [Fake(state=done, params={"lr": 0.1}, value=0.3)]
        >>> study = Fake(study_name="digits", directions=[Fake(name="MINIMIZE")], trials=trials)
        >>> task_from_optuna(study).values
        (-0.3,)
    """
    check(isinstance(maximize, bool), "maximize", "a bool", maximize)
    is_study = all(hasattr(study, name) for name in ("study_name", "directions", "trials"))
    check(is_study, "study", "an optuna.Study, as optuna.load_study returns it", study)
    directions = [direction.name for direction in study.directions]
    check(len(directions) == 1, "study", "a study with one objective", directions)
    trials = study.trials
    sign = _sign(lower=directions[0] == "MINIMIZE", maximize=maximize)
    title = study.study_name if name is None else name
    if iterations is not None:
        first_step = check_count("first_step", first_step)
        points = [p for trial in trials for p in _curve(trial, sign, iterations, first_step)]
        return task_of_curves(points, iterations, name=title, source="study")
    done = [trial for trial in trials if trial.state.name == "COMPLETE"]
    check(len(done) > 0, "study", "a completed trial", f"none of {len(trials)} trials")
    configs = [FrozenConfig.from_json(trial.params) for trial in done]
    values, costs = [sign * trial.value for trial in done], [_seconds(trial) for trial in done]
    return Task(configs, values, name=title, costs=costs)


def _seconds(trial: Any) -> float | None:
    """Return how long a trial took; None if its times, which are those of a clock, do not say."""
    duration = getattr(trial, "duration", None)
    seconds = 0.0 if duration is None else duration.total_seconds()
    return seconds if seconds > 0 else None


def _curve(trial: Any, sign: float, iterations: int | str, first_step: int) -> Iterator[CurvePoint]:
    """Yield the reported values of a completed or pruned trial, or else its value as that of its end."""
    if trial.state.name not in ("COMPLETE", "PRUNED"):
        return
    config, seconds = FrozenConfig.from_json(trial.params), _seconds(trial)
    reports = {step - first_step + 1: v for step, v in sorted(trial.intermediate_values.items())}
    for iteration, value in reports.items():
        cost = seconds * iteration / max(reports) if seconds and iteration > 0 else None
        yield CurvePoint(config, iteration, sign * value, cost)
    if not trial.intermediate_values and trial.state.name == "COMPLETE":
        end = trial.params.get(iterations) if isinstance(iterations, str) else iterations
        yield CurvePoint(config, end, sign * trial.value, seconds)


@advised
def task_from_ax(
    experiment: Any,
    metric: str,
    *,
    lower_is_better: bool | None = None,
    maximize: bool = True,
    name: str | None = None,
) -> Task:
    """Read an experiment of Ax: parameters and mean of a metric for each arm of a completed trial.

    Trials that failed, were abandoned, were stopped early or are running are left out, and so are arms
    without data of the metric. An arm of several trials gives one observation for each of them.

    Args:
        experiment: An Ax ``Experiment``, or the ``ax.Client`` or ``AxClient`` that has one.
        metric: Name of the metric.
        lower_is_better: Whether smaller values of the metric are better. If omitted, the direction of
            the objective, if it is this metric alone, or else that of the metric.
        maximize: Whether the new optimizer maximizes. If the metric has the other direction, the sign
            of its values is changed.
        name: Name of the task; that of the experiment, if any, if omitted.

    Raises:
        InvalidArgumentError: If ``experiment`` is not an experiment, has no data of the metric in a
            completed trial, or does not define the direction of the metric.
        InvalidConfigError: If an arm has a parameter that is not a plain value.

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
    is_flag = lower_is_better is None or isinstance(lower_is_better, bool)
    check(is_flag, "lower_is_better", "a bool or None", lower_is_better)
    experiment = _experiment_of(experiment)
    rows = _means(experiment, metric)
    lower = _lower_is_better(experiment, metric) if lower_is_better is None else lower_is_better
    sign = _sign(lower=lower, maximize=maximize)
    configs = [FrozenConfig.from_json(experiment.arms_by_name[arm].parameters) for arm, _ in rows]
    values = [sign * float(mean) for _, mean in rows]
    return Task(configs, values, name=_name(experiment) if name is None else name)


def _name(experiment: Any) -> str | None:
    try:
        name: str | None = experiment.name
    except ValueError:  # raised by Ax if an experiment has no name
        return None
    return name


def _sign(*, lower: bool, maximize: bool) -> float:
    """Return the sign that converts values to the direction of the new optimizer."""
    return -1.0 if lower == maximize else 1.0


def _experiment_of(source: Any) -> Any:
    """Return the experiment of a client, or ``source`` itself if it is an experiment."""
    attributes = (getattr(source, name, None) for name in ("experiment", "_experiment"))
    experiment = next((value for value in attributes if value is not None), source)
    names = ("arms_by_name", "trials", "lookup_data")
    is_experiment = all(hasattr(experiment, name) for name in names)
    check(is_experiment, "experiment", "an Experiment of Ax, or a client that has one", source)
    return experiment


def _means(experiment: Any, metric: str) -> list[tuple[str, Any]]:
    """Return arm and mean of each observation of a metric in a completed trial."""
    data = experiment.lookup_data().df
    if metric not in set(data["metric_name"]) and hasattr(experiment, "fetch_data"):
        data = experiment.fetch_data().df  # Ax has not fetched the metric yet
    metrics = sorted(set(data["metric_name"]))
    check(metric in metrics, "metric", f"one with data, of {metrics}", metric)
    columns = (data[column] for column in ("trial_index", "arm_name", "metric_name", "mean"))
    done = {i for i, trial in experiment.trials.items() if trial.status.name == "COMPLETED"}
    rows = [
        (arm, mean)
        for i, arm, name, mean in zip(*columns, strict=True)
        if name == metric and i in done
    ]
    check(len(rows) > 0, "experiment", f"a completed trial with data of {metric!r}", "none")
    return rows


def _lower_is_better(experiment: Any, metric: str) -> bool:
    config = getattr(experiment, "optimization_config", None)
    objective = None if config is None else config.objective
    if objective is not None and list(objective.metric_names) == [metric]:
        return bool(objective.minimize)
    lower = getattr(getattr(experiment, "metrics", {}).get(metric), "lower_is_better", None)
    expected = f"True or False, as the experiment does not define it for {metric!r}"
    check(lower is not None, "lower_is_better", expected, lower)
    return bool(lower)
