"""Distributions of Optuna as a search space, and parameters of trials as its configurations.

A value on a grid is an integer, its index on the grid; a categorical value is the index of its option.
"""

import math
from collections.abc import Mapping
from typing import Any

from botorch_costly.errors import check
from botorch_costly.integrations.offline.translation import Translation
from botorch_costly.parameters import Choice, Integer, Parameter, Real
from botorch_costly.plain import Plain
from botorch_costly.space import SearchSpace

_ROUNDING = 1e-9  # tolerance, in steps


class Distributions(Translation):
    """Maps parameters of trials to configurations, and back.

    Distributions of a single value are constants and not in the space.

    Args:
        distributions: Distributions by name.

    Attributes:
        space: The search space.

    Raises:
        InvalidArgumentError: If a distribution is of an unknown kind, or all have a single value.
    """

    def __init__(self, distributions: Mapping[str, Any]) -> None:
        self._free = {name: d for name, d in distributions.items() if not d.single()}
        expected = "one with more than one value"
        check(len(self._free) > 0, "distributions", expected, dict(distributions))
        self.space = SearchSpace({name: _parameter(name, d) for name, d in self._free.items()})

    def part(self, params: Mapping[str, Any]) -> dict[str, Plain] | None:
        """Return the configuration of those parameters that a trial has; None if one is outside."""
        shared = {name: d for name, d in self._free.items() if name in params}
        if not all(contains(d, params[name]) for name, d in shared.items()):
            return None
        return {name: _plain(d, params[name]) for name, d in shared.items()}

    def params(self, config: Mapping[str, Plain]) -> dict[str, Any]:
        """Return the parameters that correspond to a configuration."""
        return {name: _value(self._free[name], value) for name, value in config.items()}


def contains(distribution: Any, value: Any) -> bool:
    """Return whether a distribution contains a value."""
    try:
        return bool(distribution._contains(distribution.to_internal_repr(value)))
    except (TypeError, ValueError):
        return False


def cast(distribution: Any, value: Any) -> Any:
    """Return a value that a distribution contains, in the type of its values."""
    types = {"FloatDistribution": float, "IntDistribution": int}
    return types.get(_kind(distribution), lambda option: option)(value)


def next_step(distribution: Any, number: float) -> float:
    """Return the smallest value >= ``number`` of a distribution of numbers, or its largest value."""
    low, high, step = distribution.low, distribution.high, distribution.step
    if step is not None:
        number = low + step * math.ceil((number - low) / step - _ROUNDING)
    value = min(max(number, low), high)
    return int(value) if _kind(distribution) == "IntDistribution" else float(value)


def is_number(distribution: Any, least: float, *, whole: bool = False) -> bool:
    """Return whether a distribution has several numbers, or integers if ``whole``, all >= ``least``."""
    kinds = ("IntDistribution",) if whole else ("IntDistribution", "FloatDistribution")
    return _kind(distribution) in kinds and least <= distribution.low < distribution.high


def _kind(distribution: Any) -> str:
    return type(distribution).__name__


def _step(distribution: Any) -> float | None:
    """Return the step of a grid; None for real numbers and for consecutive integers."""
    step = distribution.step
    return None if _kind(distribution) == "IntDistribution" and step == 1 else step


def _parameter(name: str, distribution: Any) -> Parameter:
    kind = _kind(distribution)
    if kind == "CategoricalDistribution":
        return Choice(list(range(len(distribution.choices))))
    is_numeric = kind in ("FloatDistribution", "IntDistribution")
    check(is_numeric, name, "a float, an integer or a categorical distribution", distribution)
    step, low, high = _step(distribution), distribution.low, distribution.high
    if step is not None:
        return Integer(0, round((high - low) / step))
    number: type[Real] | type[Integer] = Real if kind == "FloatDistribution" else Integer
    return number(low, high, log=distribution.log)


def _plain(distribution: Any, value: Any) -> Plain:
    """Return the value in a configuration for a value of a distribution."""
    if _kind(distribution) == "CategoricalDistribution":
        return int(distribution.to_internal_repr(value))
    step = _step(distribution)
    if step is not None:
        return round((value - distribution.low) / step)
    return float(value) if _kind(distribution) == "FloatDistribution" else int(value)


def _value(distribution: Any, value: Any) -> Any:
    """Return the value of a distribution for a value in a configuration: the inverse of ``_plain``."""
    if _kind(distribution) == "CategoricalDistribution":
        return distribution.choices[value]
    step = _step(distribution)
    return value if step is None else min(distribution.low + value * step, distribution.high)
