"""Runs of Weights & Biases and MLflow, read through their attributes, without importing the packages."""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from botorch_costly.calls import advised
from botorch_costly.errors import check
from botorch_costly.plain import Plain, is_plain, plain, tupled
from botorch_costly.task_readers.tables import number_in, parsed
from botorch_costly.task_records import Task

_logger = logging.getLogger(__name__)


class _Run(NamedTuple):
    """A finished run, as all trackers know it."""

    settings: dict[str, Any]
    value: float | None  # None without the metric
    study: str | None
    seconds: float | None


@advised
def tasks_from_wandb(
    runs: Iterable[Any], metric: str, *, task: str | None = None, names: Sequence[str] | None = None
) -> list[Task]:
    """Read runs of Weights & Biases: settings and summary of each finished run, and its seconds.

    Nested settings are named with dots, such as ``optimizer.lr``. Runs that crashed, were killed or go on
    are left out, and so are runs whose summary lacks the metric or whose settings lack one of ``names``;
    a warning with their count is logged.

    Args:
        runs: Runs, such as ``wandb.Api().runs("team/project")``.
        metric: Name of the metric in the summaries, such as ``"loss"`` or ``"loss.min"``. Its values are
            taken as they are: larger is better for an optimizer that maximizes.
        task: Setting that names the study of a run, such as ``"dataset"``; if omitted, the runs of a
            project are one study.
        names: Settings that are parameters; all numbers, texts and booleans if omitted.

    Returns:
        A task for each study, in the order of their first runs.

    Raises:
        InvalidArgumentError: If ``runs`` holds something else, no run is complete, or ``names`` is empty
            or has ``task``.

    Example:
        >>> from types import SimpleNamespace as Fake
        >>> config, summary = {"data": "iris", "model": {"lr": 0.1}}, {"loss": 0.3, "_runtime": 9.0}
        >>> run = Fake(state="finished", config=config, summary=summary, project="flowers")
        >>> (iris,) = tasks_from_wandb([run], "loss", task="data")
        >>> iris.name, dict(iris.configs[0]), iris.values, iris.costs
        ('iris', {'model.lr': 0.1}, (0.3,), (9.0,))
    """
    given = _listed(runs, metric, ("state", "config", "summary"), "runs of wandb.Api().runs(..)")
    finished = [run for run in given if run.state == "finished"]
    found = [
        _Run(
            dict(_flat(run.config)),
            _value(_found(run.summary, metric)),
            getattr(run, "project", None),
            _positive(_value(_found(run.summary, "_runtime"))),
        )
        for run in finished
    ]
    return _tasks(found, len(given), metric, task, names)


@advised
def tasks_from_mlflow(
    runs: Iterable[Any], metric: str, *, task: str | None = None, names: Sequence[str] | None = None
) -> list[Task]:
    """Read runs of MLflow: parameters and last value of a metric of each finished run, and its seconds.

    Parameters are texts there: those that are written as numbers are read as numbers, and their text is
    kept, too. Runs that failed, were killed or go on are left out, and so are runs without the metric or
    without one of ``names``; a warning with their count is logged.

    Args:
        runs: Runs, such as ``mlflow.search_runs(output_format="list")``.
        metric: Name of the metric. Its values are taken as they are: larger is better for an optimizer
            that maximizes.
        task: Parameter that names the study of a run; if omitted, each experiment is a study.
        names: Names of the parameters; all if omitted.

    Returns:
        A task for each study, in the order of their first runs.

    Raises:
        InvalidArgumentError: If ``runs`` holds something else, no run is complete, or ``names`` is empty
            or has ``task``.

    Example:
        >>> from types import SimpleNamespace as Fake
        >>> data = Fake(params={"lr": "0.10", "kernel": "rbf"}, metrics={"accuracy": 0.9})
        >>> info = Fake(status="FINISHED", experiment_id="7", start_time=1_000, end_time=3_500)
        >>> (study,) = tasks_from_mlflow([Fake(data=data, info=info)], "accuracy")
        >>> study.name, dict(study.configs[0]), study.values, study.costs
        ('7', {'lr': 0.1, 'kernel': 'rbf'}, (0.9,), (2.5,))
    """
    wanted = 'runs of mlflow.search_runs(output_format="list")'
    given = _listed(runs, metric, ("data", "info"), wanted)
    finished = [run for run in given if run.info.status == "FINISHED"]
    found = [
        _Run(
            dict(run.data.params),
            _value(run.data.metrics.get(metric)),
            str(run.info.experiment_id),
            _positive(((run.info.end_time or 0) - (run.info.start_time or 0)) / 1000),
        )
        for run in finished
    ]
    return _tasks(found, len(given), metric, task, names, written=True)


def _listed(runs: Any, metric: Any, attributes: Sequence[str], expected: str) -> list[Any]:
    """Return the runs as a list, after checks."""
    check(isinstance(metric, str), "metric", "the name of a metric", metric)
    is_series = isinstance(runs, Iterable) and not isinstance(runs, str | bytes | Mapping)
    check(is_series, "runs", expected, type(runs).__name__)
    listed = list(runs)
    for run in listed:
        check(all(hasattr(run, name) for name in attributes), "runs", expected, run)
    return listed


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield settings with dotted names."""
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _found(summary: Any, name: str) -> Any:
    """Return an entry of a summary, whose nested entries have dotted names; None if there is none."""
    value = summary.get(name)
    outer, _, inner = name.rpartition(".")
    if value is None and outer and hasattr(nested := summary.get(outer), "get"):
        return nested.get(inner)
    return value


def _value(value: Any) -> float | None:
    """Return a measured number, which trackers write as text where it is not finite; None for others."""
    value = plain(value)
    if isinstance(value, str):
        return number_in(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number else None


def _positive(seconds: float | None) -> float | None:
    return seconds if seconds is not None and seconds > 0 else None


def _tasks(
    runs: Sequence[_Run],
    total: int,
    metric: str,
    task: str | None,
    names: Sequence[str] | None,
    *,
    written: bool = False,
) -> list[Task]:
    """Return the studies of runs; ``written`` says that settings are texts."""
    chosen = list(names) if isinstance(names, list | tuple) else []
    expected = "a list of settings, or None for all"
    check(names is None or len(chosen) > 0, "names", expected, names)
    check(task not in chosen, "names", f"no {task!r}, which names the studies", names)
    wanted = {*chosen, *([] if task is None else [task])}
    kept = [run for run in runs if run.value is not None and wanted <= run.settings.keys()]
    expected = f"a finished run with {metric!r}" + "".join(
        f" and {name!r}" for name in sorted(wanted)
    )
    check(len(kept) > 0, "runs", expected, f"none of {total} runs")
    if len(kept) < total:
        message = "%d of %d runs are not finished or lack %r or a setting, and are left out."
        _logger.warning(message, total - len(kept), total, metric)
    studies: dict[str | None, list[_Run]] = {}
    for run in kept:
        study = run.study if task is None else str(run.settings[task])
        studies.setdefault(study, []).append(run)
    return [_task(name, of_it, task, names, written) for name, of_it in studies.items()]


def _task(
    study: str | None,
    runs: Sequence[_Run],
    task: str | None,
    names: Sequence[str] | None,
    written: bool,
) -> Task:
    configs, texts = [], []
    for run in runs:
        chosen = {name: run.settings[name] for name in names or run.settings}
        chosen.pop(task or "", None)
        read = {name: parsed(value) for name, value in chosen.items()} if written else chosen
        configs.append(dict(_plain_ones(read)))
        numbers = [name for name, value in read.items() if written and not isinstance(value, str)]
        texts.append({name: chosen[name] for name in numbers})
    values, costs = [run.value for run in runs], [run.seconds for run in runs]
    return Task(configs, values, name=study, costs=costs, texts=texts)


def _plain_ones(settings: Mapping[str, Any]) -> Iterator[tuple[str, Plain]]:
    """Yield the settings that a configuration can hold."""
    for name, value in settings.items():
        number = plain(tupled(value))
        if is_plain(number):
            yield name, number
