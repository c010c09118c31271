"""Parameters of Ax as a search space, and parameterizations of arms as its configurations.

An ordered choice is an integer, the index of its value; an unordered choice is a ``Choice``. An ordered
choice of equally spaced numbers, which Ax makes of a range with ``step_size``, is a number with ``step``:
earlier studies without the step, or with another one, are read.
"""

from collections.abc import Mapping
from typing import Any

from botorch_costly.errors import InvalidConfigError, InvalidSpaceError, check
from botorch_costly.integrations.offline.translation import Translation
from botorch_costly.parameters import Choice, Integer, Parameter, Real
from botorch_costly.plain import Plain, as_number
from botorch_costly.space import SearchSpace

_OFF = 1e-9  # of a step, by which a number may miss it


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

    def config(self, params: Mapping[str, Any]) -> dict[str, Plain] | None:
        """Return the configuration of an arm; None if a is missing, outside, or between two steps."""
        config = super().config(params)
        try:
            return None if config is None else self.space.canonical(config)
        except InvalidConfigError:
            return None

    def part(self, params: Mapping[str, Any]) -> dict[str, Plain] | None:
        """Return the configuration of those parameters that an arm has; None if one is outside.

        A number between two steps stays as it is, for earlier studies may have other steps.
        """
        shared = [(name, p) for name, p in self.space.parameters if name in params]
        try:
            return {n: _canonical(n, p, _plain(self._free[n], params[n])) for n, p in shared}
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


def _steps(parameter: Any) -> tuple[float, float, float] | None:
    """Return first, last and distance of equally spaced numbers in increasing order; None for others."""
    numeric = parameter.parameter_type.name in ("FLOAT", "INT")
    if _kind(parameter) != "ChoiceParameter" or not (numeric and _is_ordered(parameter)):
        return None
    values = [float(value) for value in parameter.values]
    low, high, step = (
        float(f"{number:.12g}")  # Ax adds up steps in floating point
        for number in (values[0], values[-1], (values[-1] - values[0]) / (len(values) - 1))
    )
    is_even = step > 0 and all(
        abs(value - low - k * step) <= _OFF * step for k, value in enumerate(values)
    )
    return (low, high, step) if is_even else None


def _number(parameter: Any) -> type[Real] | type[Integer]:
    return Real if parameter.parameter_type.name == "FLOAT" else Integer


def _parameter(name: str, parameter: Any) -> Parameter:
    kind = _kind(parameter)
    fits = kind in ("RangeParameter", "ChoiceParameter") and not parameter.is_hierarchical
    expected = "a range, a choice or a fixed parameter that no other depends on"
    check(fits, name, expected, parameter, InvalidSpaceError)
    if (steps := _steps(parameter)) is not None:
        low, high, step = steps
        if _number(parameter) is Real:
            return Real(low, high, step=step)
        return Integer(round(low), round(high), step=round(step))
    if kind == "ChoiceParameter":
        if _is_ordered(parameter):
            return Integer(0, len(parameter.values) - 1)
        return Choice(list(parameter.values))
    return _number(parameter)(parameter.lower, parameter.upper, log=bool(parameter.log_scale))


def _canonical(name: str, parameter: Parameter, value: Plain) -> Plain:
    """Return a value of the space, or a number between two of its steps."""
    if isinstance(parameter, Real | Integer) and parameter.step is not None:
        number: Any = type(parameter)
        between: Plain = number(parameter.low, parameter.high).canonical(name, value)
        return between
    chosen: Plain = parameter.canonical(name, value)
    return chosen


def _plain(parameter: Any, value: Any) -> Plain:
    """Return the value in a configuration; raise InvalidConfigError if the parameter does not have it."""
    if _kind(parameter) == "RangeParameter" or _steps(parameter) is not None:
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
    if (steps := _steps(parameter)) is not None:
        low, _, step = steps
        return parameter.values[round((value - low) / step)]
    if _kind(parameter) == "ChoiceParameter":
        return parameter.values[value] if _is_ordered(parameter) else value
    return parameter.cast(value)
