"""Parameters of an engine as configurations, and earlier studies translated into these."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from botorch_costly.errors import InvalidArgumentError, check
from botorch_costly.plain import Plain
from botorch_costly.space import SearchSpace
from botorch_costly.task_encoding import warn_of_names, warn_of_studies
from botorch_costly.task_records import Task


class Translation(ABC):
    """Maps parameters of an engine's trial to a configuration, and back.

    Parameters with a single value are constants and not in the space.

    Attributes:
        space: The search space.
    """

    space: SearchSpace

    def config(self, params: Mapping[str, Any]) -> dict[str, Plain] | None:
        """Return the configuration of a trial's parameters; None if one is missing or outside."""
        config = self.part(params)
        return None if config is None or len(config) < len(self.space.names) else config

    @abstractmethod
    def part(self, params: Mapping[str, Any]) -> dict[str, Plain] | None:
        """Return the configuration of those parameters that a trial has; None if one is outside."""

    @abstractmethod
    def params(self, config: Mapping[str, Plain]) -> dict[str, Any]:
        """Return the parameters that correspond to a configuration, or to a part of one."""


class NothingFitsError(InvalidArgumentError):
    """No trial of any earlier study has a finite value and lies in the present search space."""


def translated(
    name: str,
    tasks: Sequence[Task],
    translation: Translation,
    sign: int = 1,
    *,
    fidelities: Sequence[str] = (),
) -> list[Task]:
    """Return the tasks in the present search space; a task without a finite value in it is left out.

    The space may differ from that of an earlier study: parameters that it lacks are ignored, parameters
    that a trial lacks are filled in by ``Task.in_space``, trials with a value outside of it are left out.

    Args:
        name: Name of the argument with the tasks, for the error.
        tasks: Earlier studies, in parameters of the engine.
        translation: Translation of the engine's parameters.
        sign: Factor of the values, 1 or -1.
        fidelities: Names of parameters that stay the numbers that they are.

    Raises:
        NothingFitsError: If no trial of any task has a finite value and fits.
    """
    translations = [_translated(task, translation, sign, fidelities) for task in tasks]
    fitting = [task for task in translations if task is not None]
    names = sorted(translation.space.names)
    expected = f"a completed trial of an earlier study, with a finite value, within {names}"
    check(len(fitting) > 0, name, expected, "none", NothingFitsError)
    return fitting


def _translated(
    task: Task, translation: Translation, sign: int, fidelities: Sequence[str]
) -> Task | None:
    fits, own = [], set[str]()
    costs = task.costs or (None,) * len(task)
    for params, value, *paid in zip(task.configs, task.values, task.shares, costs, strict=True):
        config = translation.part(params) if isinstance(params, Mapping) else None
        if config and isinstance(params, Mapping):
            own.update(config)
            numbers = {name: params[name] for name in fidelities if name in params}
            fits.append(({**config, **numbers}, None if value is None else sign * value, *paid))
    if all(value is None for _, value, *_ in fits):
        return None
    absent = tuple(name for name in translation.space.names if name not in own)
    names = {
        name: None for params in task.configs if isinstance(params, Mapping) for name in params
    }
    known = {*own, *translation.space.names, *fidelities}
    ignored = tuple(name for name in names if name not in known)
    warn_of_names(ignored, absent)
    warn_of_studies(ignored, task.configs)
    configs, values, progress, costs = zip(*fits, strict=True)
    if task.is_advice:
        return Task.advice(configs, name=task.name)
    return Task(configs, values, name=task.name, progress=progress, costs=costs)
