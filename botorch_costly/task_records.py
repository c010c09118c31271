"""Records of earlier studies: configurations and their measured values."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

from botorch_costly.calls import advised
from botorch_costly.errors import (
    CostlyError,
    InvalidArgumentError,
    InvalidShapeError,
    StateMismatchError,
    check,
)
from botorch_costly.plain import listed, plain
from botorch_costly.records import FrozenConfig
from botorch_costly.space import SearchSpace
from botorch_costly.task_advice import among_others
from botorch_costly.task_encoding import EncodedTask, encode_observations, warn_of_iterations

_CONFIGS = "a list of mappings, or n x d numbers"
Configs = Sequence[Mapping[str, Any]] | Sequence[Sequence[float]] | np.ndarray | Tensor


@advised
@dataclass(frozen=True, init=False, repr=False)
class Task:
    """An earlier study: configurations and their measured values.

    A task is immutable and holds no tensors; two tasks with equal entries are equal.

    Args:
        configs: ``n`` mappings of values by name; or ``n x d`` numbers (a NumPy array, a tensor or a list
            of rows) with a column for each parameter, not encoded, in which an option of a ``Choice`` is
            given by its number, from 0.
        values: ``n`` measured numbers, or ``n x 1``; not finite or None where the evaluation failed.
        name: Name of the study, for messages.
        names: Names of the columns of ``n x d`` numbers; if omitted, the parameters of the space in which
            the task is later encoded, in its order.
        progress: Share of a whole training, in (0, 1], after which each value was measured; all at the
            end if omitted. A curve is several observations of one configuration.
        costs: What each observation cost, > 0, such as seconds, up to its progress; None where that is
            unknown. The unit does not matter. ``SubsetOptimizer`` learns from them what parts of the data
            cost.
        texts: The numbers of each configuration as written in a file, by name, such as ``"3.10"``. They
            distinguish the options of a ``Choice``, and are ignored by comparisons of tasks.
        is_advice: Whether the configurations are proposals whose values do not count; see ``advice``.

    Attributes:
        configs: Read-only dicts, or a tuple of numbers for each row.
        values: Finite floats; None where the evaluation failed.

    Raises:
        InvalidShapeError: If there is no observation, the lengths differ, or ``configs`` are neither
            mappings nor a table of finite numbers with a column for each name.
        InvalidConfigError: If a mapping contains anything but plain values by string names.
        InvalidArgumentError: If a value is no number, a share is not in (0, 1], a cost is not above 0, or
            the names are not distinct strings.

    Example:
        >>> task = Task([{"lr": 0.1}, {"lr": 0.01}], [0.8, float("nan")], name="digits")
        >>> task.configs[0]["lr"], task.values
        (0.1, (0.8, None))
        >>> Task(np.array([[0.1, 1], [0.01, 0]]), [0.8, 0.9], names=["lr", "policy"])
        Task(2 observations of 'lr', 'policy')
    """

    configs: tuple[FrozenConfig, ...] | tuple[tuple[float, ...], ...]
    values: tuple[float | None, ...]
    _: KW_ONLY
    name: str | None = None
    names: tuple[str, ...] | None = None
    progress: tuple[float, ...] | None = None
    costs: tuple[float | None, ...] | None = None
    texts: tuple[FrozenConfig, ...] | None = field(default=None, compare=False)
    is_advice: bool = False

    def __init__(
        self,
        configs: Configs,
        values: Sequence[float | None] | np.ndarray | Tensor,
        *,
        name: str | None = None,
        names: Sequence[str] | None = None,
        progress: Sequence[float] | np.ndarray | Tensor | None = None,
        costs: Sequence[float | None] | np.ndarray | Tensor | None = None,
        texts: Sequence[Mapping[str, str]] | None = None,
        is_advice: bool = False,
    ) -> None:
        check(name is None or isinstance(name, str), "name", "a string or None", name)
        observed, measured = _configs(configs), _values(values)
        expected = f"{len(observed)} numbers, one a configuration"
        is_complete = len(measured) == len(observed)
        check(is_complete, "values", expected, f"{len(measured)}", InvalidShapeError)
        fields: dict[str, Any] = {"configs": observed, "values": measured, "name": name}
        fields |= {"texts": _texts(texts, observed), "names": _names(names, observed)}
        fields |= {"progress": _progress(progress, len(observed)), "is_advice": bool(is_advice)}
        fields |= {"costs": _costs(costs, len(observed))}
        are_mappings = all(isinstance(config, FrozenConfig) for config in observed)
        check(are_mappings or not is_advice, "configs", "mappings, as proposals", configs)
        untrained = not is_advice or (progress is None and costs is None)
        check(
            untrained, "progress, costs", "none, for proposals were not trained", (progress, costs)
        )
        for key, value in fields.items():
            object.__setattr__(self, key, value)

    @classmethod
    def advice(cls, configs: Sequence[Mapping[str, Any]], *, name: str | None = None) -> "Task":
        """Return proposals, such as a colleague's guess or a paper's setting, as an earlier study.

        They are said to be better than configurations far from them; how much that is worth is learnt as
        of any study. A proposal may name some parameters only. Values, units and direction of the
        metric do not matter.

        Args:
            configs: Proposed values by name.
            name: Who proposes them, for messages.

        Raises:
            InvalidArgumentError: If the proposals are no list.
            InvalidShapeError: If there is no proposal, or one is no mapping.

        Example:
            >>> Task.advice([{"lr": 3e-4}], name="a colleague")
            Task('a colleague', 1 proposals of 'lr')
        """
        check(isinstance(configs, Sequence), "configs", "a list of mappings", configs)
        return cls(configs, [0.0] * len(configs), name=name, is_advice=True)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        mappings = (config for config in self.configs if isinstance(config, FrozenConfig))
        names = self.names or dict.fromkeys(name for config in mappings for name in config)
        columns = ", ".join(map(repr, names)) if names else f"{len(self.configs[0])} columns"
        title = "" if self.name is None else f"{self.name!r}, "
        entries = "proposals" if self.is_advice else "observations"
        return f"Task({title}{len(self)} {entries} of {columns})"

    @property
    def shares(self) -> tuple[float, ...]:
        """The progress of each value, 1 at the end of its training."""
        return self.progress or (1.0,) * len(self)

    def in_space(self, space: SearchSpace, *, fill: Mapping[str, Any] | None = None) -> EncodedTask:
        """Return the observations as points of a space, which may differ from that of the study.

        Parameters are matched by name. Parameters that the space lacks are ignored. A parameter that an
        observation lacks gets its value in ``fill``, or else the middle of its encoded column (for an
        integer rounded, for a choice the first option). Observations that failed, or with a value outside
        the space, are left out; a warning is logged if these are more than half.

        Whole numbers of any type count as integers, and a bound rounded to float32 as that bound. Options
        are matched by equality, in float32, or else by their text in a file: ``"True"`` matches ``True``.

        Args:
            space: The space of the coming search.
            fill: Values of the space by name, for parameters that observations lack.

        Returns:
            The ``n x dim`` points and ``n`` values, with counts of omitted observations and filled cells.
            Advice comes with 32 further points, and negative distances to the nearest proposal as values.

        Raises:
            InvalidConfigError: If no parameter is in the space, all observations are left out, or
                ``fill`` does not belong to the space.
            InvalidShapeError: If without ``names`` the space has not as many parameters as columns.
            InvalidSpaceError: If ``space`` is no ``SearchSpace``.

        Example:
            >>> from botorch_costly import Choice, Real
            >>> space = SearchSpace({"lr": Real(0, 1), "policy": Choice(["a", "b"])})
            >>> task = Task([{"lr": 0.25, "seed": 1}, {"lr": 9, "seed": 2}], [3.0, 4.0])
            >>> encoded = task.in_space(space, fill={"policy": "b"})
            >>> encoded.points, encoded.values
            (tensor([[0.2500, 0.0000, 1.0000]], dtype=torch.float64), tensor([3.], dtype=torch.float64))
            >>> encoded.outside, encoded.filled, encoded.ignored
            ({'lr': 1}, {'policy': 1}, ('seed',))
        """
        title = "task" if self.name is None else f"task {self.name!r}"
        options: dict[str, Any] = {"names": self.names, "texts": self.texts, "fill": fill}
        if not self.is_advice:
            study = encode_observations(space, self.configs, self.values, title=title, **options)
            if self.progress is None:
                warn_of_iterations(study, self.configs)
            return study
        # A proposal that names no parameter of the space is near everything.
        mappings = [config for config in self.configs if isinstance(config, FrozenConfig)]
        proposals = [c for c in mappings if set(c) & set(space.names)] or mappings
        values = [0.0] * len(proposals)
        options |= {"texts": None}
        encoded = encode_observations(space, proposals, values, title=title, **options)
        return among_others(space, encoded, proposals)

    def signed(self, values: Tensor, sign: float) -> Tensor:
        """Return encoded values of which larger ones are better.

        Args:
            values: Values of ``in_space``.
            sign: 1.0, or -1.0 if smaller values of the metric are better.
        """
        return values if self.is_advice else sign * values

    def to_dict(self) -> dict[str, Any]:
        """Return the entries in values that JSON preserves, tuples as lists."""
        configs = [
            {name: listed(value) for name, value in config.items()}
            if isinstance(config, FrozenConfig)
            else list(config)
            for config in self.configs
        ]
        names = None if self.names is None else list(self.names)
        values = list(self.values)
        entries = {"configs": configs, "values": values, "name": self.name, "names": names}
        entries |= {} if self.progress is None else {"progress": list(self.progress)}
        entries |= {} if self.costs is None else {"costs": list(self.costs)}
        entries |= {"is_advice": True} if self.is_advice else {}
        return entries if self.texts is None else {**entries, "texts": list(map(dict, self.texts))}

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> "Task":
        """Rebuild a task from ``to_dict``.

        Raises:
            StateMismatchError: If ``entries`` are not those of a task.
        """
        try:
            configs = [
                FrozenConfig.from_json(config) if isinstance(config, Mapping) else config
                for config in entries["configs"]
            ]
            return cls(**{**entries, "configs": configs})
        except (TypeError, KeyError, AttributeError, CostlyError) as error:
            expected = "the plain values of Task.to_dict"
            raise StateMismatchError("Task", expected, entries) from error


def check_tasks(tasks: Sequence[Task], *, fewest: int = 0) -> Sequence[Task]:
    """Return tasks if they are listed; raise InvalidArgumentError otherwise.

    Args:
        tasks: Earlier studies.
        fewest: Least number of them, 0 or 1.
    """
    listed = isinstance(tasks, Sequence) and len(tasks) >= fewest
    listed = listed and all(isinstance(task, Task) for task in tasks)
    expected = "at least one Task in a list" if fewest else "a list of Task"
    studies = "task_from_optuna, tasks_from_csv and the like make one of a study"
    check(listed, "tasks", f"{expected} ({studies})", tasks)
    return tasks


def _configs(configs: Configs) -> tuple[FrozenConfig, ...] | tuple[tuple[float, ...], ...]:
    if isinstance(configs, np.ndarray | Tensor):
        return _rows(configs)
    check(isinstance(configs, Sequence), "configs", _CONFIGS, configs, InvalidShapeError)
    check(len(configs) > 0, "configs", "at least one observation", configs, InvalidShapeError)
    mappings = [config for config in configs if isinstance(config, Mapping)]
    if len(mappings) < len(configs):
        return _rows(configs)
    return tuple(c if isinstance(c, FrozenConfig) else FrozenConfig(c) for c in mappings)


def _rows(configs: Any) -> tuple[tuple[float, ...], ...]:
    try:
        numbers = configs.detach().cpu().double() if isinstance(configs, Tensor) else configs
        table = np.asarray(numbers, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidShapeError("configs", _CONFIGS, configs) from error
    check(table.ndim == 2, "configs", _CONFIGS, f"shape {table.shape}", InvalidShapeError)
    check(len(table) > 0, "configs", "at least one observation", table.shape, InvalidShapeError)
    others = np.argwhere(~np.isfinite(table)).tolist()
    received = f"others, the first in row and column {others[:1]}"
    check(not others, "configs", "finite numbers", received, InvalidShapeError)
    return tuple(map(tuple, table.tolist()))


def _values(values: Any, name: str = "values") -> tuple[float | None, ...]:
    if isinstance(values, np.ndarray | Tensor) and values.ndim == 2 and values.shape[-1] == 1:
        values = values[:, 0]
    numbers = values.tolist() if hasattr(values, "tolist") else values
    is_row = isinstance(numbers, list | tuple)
    check(is_row, name, "a row of numbers", values, InvalidShapeError)
    return tuple(_value(f"{name}[{index}]", value) for index, value in enumerate(numbers))


def _value(name: str, value: object) -> float | None:
    number = plain(value)
    if number is None:
        return None
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    expected = "a number, or None where the evaluation failed"
    check(is_number, name, expected, value, InvalidArgumentError)
    return float(number) if abs(number) <= sys.float_info.max else None


def _names(names: Sequence[str] | None, configs: Sequence[Any]) -> tuple[str, ...] | None:
    if names is None:
        return None
    are_valid = isinstance(names, list | tuple) and all(isinstance(name, str) for name in names)
    are_valid = are_valid and len(set(names)) == len(names)
    check(are_valid, "names", "a list of distinct strings", names)
    are_rows = not isinstance(configs[0], Mapping)
    check(are_rows, "names", "None, for configurations name their values", names)
    width, expected = len(configs[0]), f"{len(names)} columns, one for each of {list(names)}"
    check(width == len(names), "configs", expected, f"{width}", InvalidShapeError)
    return tuple(names)


def _progress(progress: Any, number: int) -> tuple[float, ...] | None:
    """Return the shares of trainings; None if all values are final."""
    if progress is None:
        return None
    shares = _one_each("progress", progress, number)
    wrong = [share for share in shares if share is None or not 0 < share <= 1]
    check(not wrong, "progress", "shares of a whole training, in (0, 1]", wrong[:1])
    finals = all(share == 1 for share in shares)
    return None if finals else tuple(share for share in shares if share is not None)


def _costs(costs: Any, number: int) -> tuple[float | None, ...] | None:
    """Return the costs; None if there are none."""
    if costs is None:
        return None
    numbers = _one_each("costs", costs, number)
    wrong = [cost for cost in numbers if cost is not None and cost <= 0]
    check(not wrong, "costs", "numbers above 0, or None", wrong[:1])
    return None if all(cost is None for cost in numbers) else numbers


def _one_each(name: str, numbers: Any, number: int) -> tuple[float | None, ...]:
    row = _values(numbers, name)
    expected = f"{number} numbers, one a configuration"
    check(len(row) == number, name, expected, f"{len(row)}", InvalidShapeError)
    return row


def _texts(
    texts: Sequence[Mapping[str, str]] | None, configs: Sequence[Any]
) -> tuple[FrozenConfig, ...] | None:
    if texts is None:
        return None
    are_listed = isinstance(texts, list | tuple) and all(isinstance(t, Mapping) for t in texts)
    check(are_listed, "texts", "a list of mappings, or None", texts)
    check(len(texts) == len(configs), "texts", f"{len(configs)} mappings", len(texts))
    frozen = tuple(map(FrozenConfig, texts))
    are_strings = all(isinstance(text, str) for entry in frozen for text in entry.values())
    check(are_strings, "texts", "texts by names of parameters", texts)
    return frozen if any(frozen) else None
