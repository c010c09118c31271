"""Distributions of Optuna as a search space, and parameters of trials as its configurations.

What lies on a grid is an integer, its place on the grid; what is categorical is the index of its option.
"""

import math
from collections.abc import Mapping
from typing import Any

from botorch_costly.errors import check
from botorch_costly.parameters import Choice, Integer, Parameter, Real
from botorch_costly.plain import Plain
from botorch_costly.space import SearchSpace

_ROUNDING = 1e-9  # of steps


class Distributions:
    """Maps parameters of trials to configurations, and back.

    Distributions of a single value are constants, and no part of the space.

    Args:
        distributions: By name.

    Attributes:
        space: The search space.

    Raises:
        InvalidArgumentError: If a distribution is of no known kind, or nothing is left to choose.
    """

    def __init__(self, distributions: Mapping[str, Any]) -> None:
        parts = {name: d for name, d in distributions.items() if not d.single()}
        check(len(parts) > 0, "distributions", "one with more than one value", dict(distributions))
        self._parts = parts
        self.space = SearchSpace({name: _parameter(name, d) for name, d in parts.items()})

    def config(self, params: Mapping[str, Any]) -> dict[str, Plain] | None:
        """Return the configuration of a trial's parameters; None if one is missing or outside."""
        found = self.part(params)
        return None if found is None or len(found) < len(self._parts) else found

    def part(self, params: Mapping[str, Any]) -> dict[str, Plain] | None:
        """Return the configuration of those parameters that a trial has; None if one is outside."""
        shared = {name: d for name, d in self._parts.items() if name in params}
        if not all(contains(d, params[name]) for name, d in shared.items()):
            return None
        return {name: _place(d, params[name]) for name, d in shared.items()}

    def params(self, config: Mapping[str, Plain]) -> dict[str, Any]:
        """Return the parameters that a configuration stands for."""
        return {name: _value(self._parts[name], value) for name, value in config.items()}


def contains(distribution: Any, value: Any) -> bool:
    """Return whether a value is one of a distribution's."""
    try:
        return bool(distribution._contains(distribution.to_internal_repr(value)))
    except (TypeError, ValueError):
        return False


def cast(distribution: Any, value: Any) -> Any:
    """Return a value that a distribution contains in its type."""
    types = {"FloatDistribution": float, "IntDistribution": int}
    return types.get(_kind(distribution), _same)(value)


def _same(value: Any) -> Any:
    return value


def next_step(distribution: Any, number: float) -> float:
    """Return the least value of a distribution of numbers that is no smaller, or its largest one."""
    low, high, step = distribution.low, distribution.high, distribution.step
    if step is not None:
        number = low + step * math.ceil((number - low) / step - _ROUNDING)
    value = min(max(number, low), high)
    return int(value) if _kind(distribution) == "IntDistribution" else float(value)


def is_number(distribution: Any, least: float, *, whole: bool = False) -> bool:
    """Return whether a distribution is of several numbers, or of whole ones, from ``least`` on."""
    kinds = ("IntDistribution",) if whole else ("IntDistribution", "FloatDistribution")
    return _kind(distribution) in kinds and least <= distribution.low < distribution.high


def _kind(distribution: Any) -> str:
    return type(distribution).__name__


def _step(distribution: Any) -> float | None:
    """Return the step of a grid, None for a free number or an integer between others."""
    step = distribution.step
    return (
        None if step is None or (_kind(distribution) == "IntDistribution" and step == 1) else step
    )


def _parameter(name: str, distribution: Any) -> Parameter:
    kind = _kind(distribution)
    if kind == "CategoricalDistribution":
        return Choice(list(range(len(distribution.choices))))
    known = kind in ("FloatDistribution", "IntDistribution")
    check(known, name, "a float, an integer or a categorical distribution", distribution)
    step, low, high = _step(distribution), distribution.low, distribution.high
    if step is not None:
        return Integer(0, round((high - low) / step))
    made: type[Real] | type[Integer] = Real if kind == "FloatDistribution" else Integer
    return made(low, high, log=distribution.log)


def _place(distribution: Any, value: Any) -> Plain:
    if _kind(distribution) == "CategoricalDistribution":
        return int(distribution.to_internal_repr(value))
    step = _step(distribution)
    if step is not None:
        return round((value - distribution.low) / step)
    return float(value) if _kind(distribution) == "FloatDistribution" else int(value)


def _value(distribution: Any, place: Any) -> Any:
    if _kind(distribution) == "CategoricalDistribution":
        return distribution.choices[place]
    step = _step(distribution)
    return place if step is None else min(distribution.low + place * step, distribution.high)
