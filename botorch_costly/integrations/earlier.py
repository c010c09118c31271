"""Earlier studies in the configurations of an engine's search space."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from botorch_costly.errors import InvalidArgumentError, check
from botorch_costly.plain import Plain
from botorch_costly.space import SearchSpace
from botorch_costly.task_records import Task


class Translation(Protocol):
    """Maps parameters of an engine to configurations."""

    space: SearchSpace

    def part(self, params: Mapping[str, Any]) -> dict[str, Plain] | None:
        """Return the configuration of those parameters that a trial has; None if one is outside."""


class NothingFitsError(InvalidArgumentError):
    """No trial of any earlier study has a finite value and lies in the present search space."""


def translated(
    name: str, tasks: Sequence[Task], translation: Translation, sign: int = 1
) -> list[Task]:
    """Return the tasks of which a trial with a finite value fits the search space, with those that fit.

    The present space need not be that of an earlier study: parameters that it lacks are ignored, those
    that a trial lacks are filled in by ``Task.in_space``, trials with a value outside of it are left out.

    Args:
        name: Of the argument that the tasks came from, for the error.
        tasks: Earlier studies, in parameters of the engine.
        translation: Of the engine's parameters.
        sign: A factor of the values, 1 or -1.

    Raises:
        NothingFitsError: If no trial of any task has a finite value and fits.
    """
    found = [_translated(task, translation, sign) for task in tasks]
    names = sorted(translation.space.names)
    expected = f"a completed trial of an earlier study, with a finite value, within {names}"
    fits = any(task is not None for task in found)
    check(fits, name, expected, "none", NothingFitsError)
    return [task for task in found if task is not None]


def _translated(task: Task, translation: Translation, sign: int) -> Task | None:
    """Return a task in the configurations of the search space; None if nothing finite fits."""
    fits = []
    for tried, value in zip(task.configs, task.values, strict=True):
        config = translation.part(tried) if isinstance(tried, Mapping) else None
        if config:
            fits.append((config, None if value is None else sign * value))
    if all(value is None for _, value in fits):
        return None
    return Task([config for config, _ in fits], [value for _, value in fits], name=task.name)
