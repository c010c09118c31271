"""Values of learning curves as a task with progress."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from botorch_costly.errors import check, check_count
from botorch_costly.plain import as_number, tupled
from botorch_costly.records import FrozenConfig
from botorch_costly.task_records import Task


class CurvePoint(NamedTuple):
    """A value of a training after some iterations."""

    config: Mapping[str, Any]
    iteration: int  # counted from 1
    value: float | None  # None if the training failed
    cost: float | None = None  # of the iterations so far


def task_of_curves(
    points: Sequence[CurvePoint], iterations: int | str, *, name: str | None, source: str
) -> Task:
    """Return a task whose progress are the shares of whole trainings.

    Args:
        points: Values of curves.
        iterations: Iterations of a whole training, or the name of the parameter that holds them.
        name: Name of the task.
        source: Name of the argument that the values are from, for errors.

    Raises:
        InvalidArgumentError: If there is no value, ``iterations`` is no positive count or a configuration
            lacks it, or a curve is longer than a whole training.
    """
    check(len(points) > 0, source, "a value of a curve", "none")
    configs = [FrozenConfig({n: tupled(v) for n, v in p.config.items()}) for p in points]
    shares = []
    for point, config in zip(points, configs, strict=True):
        length = _length(config, iterations)
        expected = f"values of iterations 1 to {length}, those of a whole training"
        check(0 < point.iteration <= length, source, expected, f"iteration {point.iteration}")
        shares.append(point.iteration / length)
    values, costs = [point.value for point in points], [point.cost for point in points]
    return Task(configs, values, name=name, progress=shares, costs=costs)


def _length(config: Mapping[str, Any], iterations: int | str) -> int:
    if not isinstance(iterations, str):
        return check_count("iterations", iterations, minimum=1)
    check(iterations in config, "iterations", "the name of a parameter", iterations)
    return check_count("iterations", int(as_number(iterations, config[iterations])), minimum=1)
