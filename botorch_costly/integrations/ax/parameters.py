"""Parameters of Ax as a search space, and parameterizations of arms as its configurations.

An ordered choice is an integer, the place of its value; another choice is an option.
"""

from collections.abc import Mapping
from typing import Any

from botorch_costly.errors import InvalidConfigError, InvalidSpaceError, check
from botorch_costly.parameters import Choice, Integer, Parameter, Real
from botorch_costly.plain import Plain, as_number
from botorch_costly.space import SearchSpace


class Parameters:
    """Maps parameterizations of arms to configurations, and back.

    Fixed parameters are constants, and no part of the space.

    Args:
        search_space: Of an experiment of Ax.

    Attributes:
        space: The search space.

    Raises:
        InvalidSpaceError: If a parameter is of no known kind or depends on others, there are parameter
            constraints, or nothing is left to choose.
    """

    def __init__(self, search_space: Any) -> None:
        constraints = list(search_space.parameter_constraints)
        free = not constraints
        check(free, "search_space", "no parameter constraints", constraints, InvalidSpaceError)
        given = dict(search_space.parameters)
        self._fixed = {name: p.value for name, p in given.items() if _kind(p) == "FixedParameter"}
        self._parts = {name: p for name, p in given.items() if name not in self._fixed}
        some = len(self._parts) > 0
        check(some, "search_space", "a parameter to choose", list(given), InvalidSpaceError)
        self.space = SearchSpace({name: _parameter(name, p) for name, p in self._parts.items()})

    def config(self, params: Mapping[str, Any]) -> dict[str, Plain] | None:
        """Return the configuration of an arm; None if a parameter is missing or outside."""
        found = self.part(params)
        return None if found is None or len(found) < len(self._parts) else found

    def part(self, params: Mapping[str, Any]) -> dict[str, Plain] | None:
        """Return the configuration of those parameters that an arm has; None if one is outside."""
        shared = [(name, p) for name, p in self.space.parameters if name in params]
        try:
            return {n: p.canonical(n, _place(self._parts[n], params[n])) for n, p in shared}
        except (ValueError, TypeError):
            return None

    def params(self, config: Mapping[str, Plain]) -> dict[str, Any]:
        """Return the parameters that a configuration or a part of one stands for, and fixed ones."""
        parts = {name: p for name, p in self._parts.items() if name in config}
        chosen = {name: _value(p, config[name]) for name, p in parts.items()}
        return {**self._fixed, **chosen}


def _kind(parameter: Any) -> str:
    return type(parameter).__name__


def _is_ordered(parameter: Any) -> bool:
    return bool(parameter.is_ordered) and len(parameter.values) > 2


def _parameter(name: str, parameter: Any) -> Parameter:
    kind = _kind(parameter)
    known = kind in ("RangeParameter", "ChoiceParameter") and not parameter.is_hierarchical
    expected = "a range, a choice or a fixed parameter that no other depends on"
    check(known, name, expected, parameter, InvalidSpaceError)
    if kind == "ChoiceParameter":
        if _is_ordered(parameter):
            return Integer(0, len(parameter.values) - 1)
        return Choice(list(parameter.values))
    made: type[Real] | type[Integer]
    made = Real if parameter.parameter_type.name == "FLOAT" else Integer
    return made(parameter.lower, parameter.upper, log=bool(parameter.log_scale))


def _place(parameter: Any, value: Any) -> Plain:
    """Return what stands for a value; raise InvalidConfigError if the parameter has none such."""
    if _kind(parameter) == "RangeParameter":
        number = as_number(parameter.name, value)
        return number if parameter.parameter_type.name == "FLOAT" else _whole(parameter, number)
    values = list(parameter.values)
    matching = [at for at, one in enumerate(values) if one == value]
    known = len(matching) > 0
    check(known, parameter.name, f"one of {values}", value, InvalidConfigError)
    place: Plain = matching[0] if _is_ordered(parameter) else values[matching[0]]
    return place


def _whole(parameter: Any, number: float) -> int:
    whole = number == round(number)
    check(whole, parameter.name, "an integer", number, InvalidConfigError)
    return round(number)


def _value(parameter: Any, place: Any) -> Any:
    if _kind(parameter) == "ChoiceParameter":
        return parameter.values[place] if _is_ordered(parameter) else place
    return parameter.cast(place)
