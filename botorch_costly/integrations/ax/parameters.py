"""Parameters of Ax as a search space, and parameterizations of arms as its configurations.

An ordered choice is an integer, the index of its value; an unordered choice is a ``Choice``.
"""

from collections.abc import Mapping
from typing import Any

from botorch_costly.errors import InvalidConfigError, InvalidSpaceError, check
from botorch_costly.integrations.offline.translation import Translation
from botorch_costly.parameters import Choice, Integer, Parameter, Real
from botorch_costly.plain import Plain, as_number
from botorch_costly.space import SearchSpace


class Parameters(Translation):
    """Maps parameterizations of arms to configurations, and back.

    Fixed parameters are constants and not in the space.

    Args:
        search_space: Search space of an experiment of Ax.

    Attributes:
        space: The search space.

    Raises:
        InvalidSpaceError: If a parameter is of an unknown kind or depends on others, there are parameter
            constraints, or all parameters are fixed.
    """

    def __init__(self, search_space: Any) -> None:
        constraints = list(search_space.parameter_constraints)
        expected = "no parameter constraints"
        check(not constraints, "search_space", expected, constraints, InvalidSpaceError)
        parameters = dict(search_space.parameters)
        fixed = {name: p.value for name, p in parameters.items() if _kind(p) == "FixedParameter"}
        free = {name: p for name, p in parameters.items() if name not in fixed}
        expected = "a parameter to choose"
        check(len(free) > 0, "search_space", expected, list(parameters), InvalidSpaceError)
        self._fixed, self._free = fixed, free
        self.space = SearchSpace({name: _parameter(name, p) for name, p in free.items()})

    def part(self, params: Mapping[str, Any]) -> dict[str, Plain] | None:
        """Return the configuration of those parameters that an arm has; None if one is outside."""
        shared = [(name, p) for name, p in self.space.parameters if name in params]
        try:
            return {n: p.canonical(n, _plain(self._free[n], params[n])) for n, p in shared}
        except (ValueError, TypeError):
            return None

    def params(self, config: Mapping[str, Plain]) -> dict[str, Any]:
        """Return the parameters of a configuration or a part of one, and the fixed parameters."""
        chosen = {n: _value(p, config[n]) for n, p in self._free.items() if n in config}
        return {**self._fixed, **chosen}


def _kind(parameter: Any) -> str:
    return type(parameter).__name__


def _is_ordered(parameter: Any) -> bool:
    return bool(parameter.is_ordered) and len(parameter.values) > 2


def _parameter(name: str, parameter: Any) -> Parameter:
    kind = _kind(parameter)
    fits = kind in ("RangeParameter", "ChoiceParameter") and not parameter.is_hierarchical
    expected = "a range, a choice or a fixed parameter that no other depends on"
    check(fits, name, expected, parameter, InvalidSpaceError)
    if kind == "ChoiceParameter":
        if _is_ordered(parameter):
            return Integer(0, len(parameter.values) - 1)
        return Choice(list(parameter.values))
    number: type[Real] | type[Integer]
    number = Real if parameter.parameter_type.name == "FLOAT" else Integer
    return number(parameter.lower, parameter.upper, log=bool(parameter.log_scale))


def _plain(parameter: Any, value: Any) -> Plain:
    """Return the value in a configuration; raise InvalidConfigError if the parameter does not have it."""
    if _kind(parameter) == "RangeParameter":
        number = as_number(parameter.name, value)
        return number if parameter.parameter_type.name == "FLOAT" else _whole(parameter, number)
    values = list(parameter.values)
    expected = f"one of {values}"
    check(value in values, parameter.name, expected, value, InvalidConfigError)
    index = values.index(value)
    option: Plain = index if _is_ordered(parameter) else values[index]
    return option


def _whole(parameter: Any, number: float) -> int:
    whole = number == round(number)
    check(whole, parameter.name, "an integer", number, InvalidConfigError)
    return round(number)


def _value(parameter: Any, value: Any) -> Any:
    """Return the parameter's value for the value in a configuration: the inverse of ``_plain``."""
    if _kind(parameter) == "ChoiceParameter":
        return parameter.values[value] if _is_ordered(parameter) else value
    return parameter.cast(value)
