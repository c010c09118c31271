"""Records of earlier studies: the configurations that were tried, and what was measured of each."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from torch import Tensor

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
from botorch_costly.task_encoding import EncodedTask, encode_observations

_CONFIGS = "a list of mappings, or n x d numbers"
Configs = Sequence[Mapping[str, Any]] | Sequence[Sequence[float]] | np.ndarray | Tensor


@dataclass(frozen=True, init=False, repr=False)
class Task:
    """An earlier study: configurations, and the value that each of them came to.

    No tensors are kept, and nothing can be changed; two tasks with equal entries are equal.

    Args:
        configs: ``n`` mappings of values by name, as a user writes them; or ``n x d`` numbers, a NumPy
            array, a tensor or a list of rows, each column a parameter as it is (not encoded). In these an
            option of a ``Choice`` is its number, from 0.
        values: ``n`` numbers, or ``n x 1``, as they were measured; NaN, an infinity or None where the
            evaluation failed.
        name: Of the study, for messages.
        names: Of the columns of ``n x d`` numbers; if omitted, they are the parameters of the space that
            the task is later encoded in, in its order.
        texts: How a file writes the numbers of each configuration, by name, such as ``"3.10"``. They tell
            the options of a ``Choice`` apart. Two tasks that differ in these alone are equal.

    Attributes:
        configs: Read-only dicts, or a tuple of numbers for each row.
        values: Finite floats; None where the evaluation failed.

    Raises:
        InvalidShapeError: If there is no observation, the lengths differ, or ``configs`` are neither
            mappings nor a table of finite numbers with a column for each name.
        InvalidConfigError: If a mapping holds anything but plain values by string names.
        InvalidArgumentError: If a value is no number, or a name no string or not distinct.

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
    texts: tuple[FrozenConfig, ...] | None = field(default=None, compare=False)

    def __init__(
        self,
        configs: Configs,
        values: Sequence[float | None] | np.ndarray | Tensor,
        *,
        name: str | None = None,
        names: Sequence[str] | None = None,
        texts: Sequence[Mapping[str, str]] | None = None,
    ) -> None:
        check(name is None or isinstance(name, str), "name", "a string or None", name)
        observed, measured = _configs(configs), _values(values)
        expected = f"{len(observed)} numbers, one a configuration"
        equal = len(measured) == len(observed)
        check(equal, "values", expected, f"{len(measured)}", InvalidShapeError)
        fields = {"configs": observed, "values": measured, "name": name}
        fields["texts"] = _texts(texts, observed)
        for key, value in {**fields, "names": _names(names, observed)}.items():
            object.__setattr__(self, key, value)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        mappings = (config for config in self.configs if isinstance(config, FrozenConfig))
        named = self.names or dict.fromkeys(name for config in mappings for name in config)
        of = ", ".join(map(repr, named)) if named else f"{len(self.configs[0])} columns"
        title = "" if self.name is None else f"{self.name!r}, "
        return f"Task({title}{len(self)} observations of {of})"

    def in_space(self, space: SearchSpace, *, fill: Mapping[str, Any] | None = None) -> EncodedTask:
        """Return the observations as points of a space, which need not be that of the study.

        Parameters are matched by name. A parameter that the space lacks is ignored. One that an
        observation lacks has the value in ``fill``, or else the middle of its encoded column (the integer
        there, the first option). An observation that failed, or of which a value lies outside the space
        (beyond a bound, no option), is left out; a warning is logged if these are more than half.

        A whole number is an integer whatever its type, a bound rounded to single precision is that bound,
        and an option is known by equality, in single precision, or else by its text, as in a file:
        ``"True"`` is ``True``.

        Args:
            space: The space of the coming search.
            fill: Values of the space by name, for parameters that observations lack.

        Returns:
            The ``n x dim`` points and ``n`` values, with counts of what was left out and filled in.

        Raises:
            InvalidConfigError: If no parameter is in the space, no observation is left, or ``fill`` does
                not belong to the space.
            InvalidShapeError: If there are other columns than parameters, and no ``names``.
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
        return encode_observations(
            space,
            self.configs,
            self.values,
            names=self.names,
            texts=self.texts,
            fill=fill,
            title=title,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the entries in plain values that JSON keeps, tuples as lists."""
        configs = [
            {name: listed(value) for name, value in config.items()}
            if isinstance(config, FrozenConfig)
            else list(config)
            for config in self.configs
        ]
        names = None if self.names is None else list(self.names)
        entries = {
            "configs": configs,
            "values": list(self.values),
            "name": self.name,
            "names": names,
        }
        return entries if self.texts is None else {**entries, "texts": list(map(dict, self.texts))}

    @classmethod
    def from_dict(cls, entries: Mapping[str, Any]) -> "Task":
        """Rebuild a task from ``to_dict``.

        Raises:
            StateMismatchError: If ``entries`` are not those of a task.
        """
        try:
            named = [
                FrozenConfig.from_json(config) if isinstance(config, Mapping) else config
                for config in entries["configs"]
            ]
            return cls(**{**entries, "configs": named})
        except (TypeError, KeyError, AttributeError, CostlyError) as error:
            expected = "the plain values of Task.to_dict"
            raise StateMismatchError("Task", expected, entries) from error


def _configs(given: Configs) -> tuple[FrozenConfig, ...] | tuple[tuple[float, ...], ...]:
    if isinstance(given, np.ndarray | Tensor):
        return _rows(given)
    check(isinstance(given, Sequence), "configs", _CONFIGS, given, InvalidShapeError)
    check(len(given) > 0, "configs", "at least one observation", given, InvalidShapeError)
    named = [config for config in given if isinstance(config, Mapping)]
    if len(named) < len(given):
        return _rows(given)
    return tuple(c if isinstance(c, FrozenConfig) else FrozenConfig(c) for c in named)


def _rows(given: Any) -> tuple[tuple[float, ...], ...]:
    try:
        numbers = given.detach().cpu().double() if isinstance(given, Tensor) else given
        table = np.asarray(numbers, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidShapeError("configs", _CONFIGS, given) from error
    check(table.ndim == 2, "configs", _CONFIGS, f"shape {table.shape}", InvalidShapeError)
    check(len(table) > 0, "configs", "at least one observation", table.shape, InvalidShapeError)
    others = np.argwhere(~np.isfinite(table)).tolist()
    received = f"others, the first in row and column {others[:1]}"
    check(not others, "configs", "finite numbers", received, InvalidShapeError)
    return tuple(map(tuple, table.tolist()))


def _values(given: Any) -> tuple[float | None, ...]:
    if isinstance(given, np.ndarray | Tensor) and given.ndim == 2 and given.shape[-1] == 1:
        given = given[:, 0]
    numbers = given.tolist() if hasattr(given, "tolist") else given
    row = isinstance(numbers, list | tuple)
    check(row, "values", "a row of numbers", given, InvalidShapeError)
    return tuple(_value(at, value) for at, value in enumerate(numbers))


def _value(at: int, given: object) -> float | None:
    number = plain(given)
    if number is None:
        return None
    real = isinstance(number, int | float) and not isinstance(number, bool)
    expected = "a number, or None where the evaluation failed"
    check(real, f"values[{at}]", expected, given, InvalidArgumentError)
    return float(number) if abs(number) <= sys.float_info.max else None


def _names(given: Sequence[str] | None, configs: Sequence[Any]) -> tuple[str, ...] | None:
    if given is None:
        return None
    strings = isinstance(given, list | tuple) and all(isinstance(name, str) for name in given)
    check(strings and len(set(given)) == len(given), "names", "a list of distinct strings", given)
    rows = not isinstance(configs[0], Mapping)
    check(rows, "names", "None, for configurations name their values", given)
    width, expected = len(configs[0]), f"{len(given)} columns, one for each of {list(given)}"
    check(width == len(given), "configs", expected, f"{width}", InvalidShapeError)
    return tuple(given)


def _texts(
    given: Sequence[Mapping[str, str]] | None, configs: Sequence[Any]
) -> tuple[FrozenConfig, ...] | None:
    if given is None:
        return None
    listed = isinstance(given, list | tuple) and all(isinstance(one, Mapping) for one in given)
    check(listed, "texts", "a list of mappings, or None", given)
    check(len(given) == len(configs), "texts", f"{len(configs)} mappings", len(given))
    found = tuple(map(FrozenConfig, given))
    named = all(isinstance(text, str) for texts in found for text in texts.values())
    check(named, "texts", "texts by names of parameters", given)
    return found if any(found) else None
