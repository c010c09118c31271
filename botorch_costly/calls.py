"""Calls whose arguments do not fit: the error says which argument to use, and what it is."""

import functools
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from inspect import Parameter, Signature
from typing import Any, TypeVar, cast, get_args, get_origin

from botorch_costly.errors import InvalidArgumentError, InvalidCallError, check
from botorch_costly.other_names import ARGUMENTS, is_direction, names_here

C = TypeVar("C", bound=Callable[..., Any])
_BY_PLACE = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)
# The end of the part of a sentence that is shown; ".." is none.
_END = re.compile(r"(?<!\.)[.;](?!\S)| \((?!\d)")


def advised(call: C) -> C:
    """Return a function, or a class, whose calls say what to write if their arguments do not fit.

    Its signature and documentation are those of the function, and so is a call that fits.

    Args:
        call: Function, or class, whose constructor and public methods are replaced, but not those of its
            bases.

    Raises:
        InvalidCallError: In a call, a TypeError in place of Python's, with the names of the arguments,
            those that stand for the given ones, and what the documentation says of them.

    Example:
        >>> @advised
        ... def tune(space, horizon): ...
        >>> tune({}, n_trials=3)
        Traceback (most recent call last):
        botorch_costly.errors.InvalidCallError: tune: Expected horizon= in place of n_trials=, \
of the arguments (space, horizon); Received {'n_trials': 3}.
    """
    if isinstance(call, type):
        for name, member in list(vars(call).items()):
            public = not name.startswith("_") or name in ("__init__", "__call__")
            if public and inspect.isfunction(member):
                setattr(call, name, advised(member))
            elif public and isinstance(member, classmethod):
                setattr(call, name, classmethod(advised(member.__func__)))
        return call

    @functools.wraps(call)
    def answered(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except (TypeError, AttributeError):  # an AttributeError if the first argument is no object
            _check_fits(call, args, kwargs)
            raise

    return cast(C, answered)


def check_takes(name: str, function: object, /, *args: str, **kwargs: object) -> None:
    """Raise if a function of the caller's cannot be called in a certain way.

    Args:
        name: Name of the argument that the function is.
        function: The function; one without a signature, such as a builtin, may take everything.
        args: Names of the arguments by place, for the message.
        kwargs: Arguments by name, with any value.

    Raises:
        InvalidArgumentError: If it is no function, or does not take these arguments.
    """
    call = ", ".join([*args, *(f"{key}=.." for key in kwargs)])
    check(callable(function), name, f"a function that is called as {name}({call})", function)
    try:
        signature = inspect.signature(cast(Callable[..., Any], function))
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        received = f"{getattr(function, '__name__', type(function).__name__)}{signature}"
        expected = f"a function that is called as {name}({call})"
        raise InvalidArgumentError(name, expected, received) from error


def _check_fits(call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise InvalidCallError if a function does not take these arguments."""
    signature = inspect.signature(call)
    try:
        signature.bind(*args, **kwargs)
    except TypeError:
        parameters = list(signature.parameters.values())
        title, documented = call.__name__, [call.__doc__]
        if parameters and parameters[0].name in ("self", "cls"):
            title, documented = _of_method(call, args)
            parameters, args = parameters[1:], args[1:]
        received = {k: v for k, v in kwargs.items() if k not in signature.parameters}
        expected = _Remarks(parameters, args, kwargs, documented).text()
        raise InvalidCallError(title, expected, received or args or kwargs) from None


def _of_method(call: Callable[..., Any], args: tuple[Any, ...]) -> tuple[str, list[str | None]]:
    """Return the name of a method for a message, and the texts that describe its arguments."""
    owner, name = _owner(call), call.__name__
    is_made = len(args) > 0 and isinstance(args[0], (type, owner or object))
    expected = "an object before the dot, which a call of its class makes, and not the class itself"
    check(is_made, name, expected, args[0] if args else "none", InvalidCallError)
    kind = args[0] if isinstance(args[0], type) else type(args[0])
    if name == "__init__":
        return kind.__name__, [base.__doc__ for base in kind.__mro__]
    return f"{kind.__name__}(..)" if name == "__call__" else f"{kind.__name__}.{name}", [
        call.__doc__
    ]


def _owner(call: Callable[..., Any]) -> type | None:
    """Return the class that a method was written in; None if it is not found by its name."""
    found: Any = sys.modules.get(call.__module__)
    for name in call.__qualname__.split(".")[:-1]:
        found = getattr(found, name, None)
    return found if isinstance(found, type) else None


class _Omissible:
    """A default value in a message."""

    def __repr__(self) -> str:
        return ".."


class _Remarks:
    """Remarks on a call whose arguments do not fit.

    Args:
        parameters: Parameters of the function, without its ``self``.
        args: Arguments by place.
        kwargs: Arguments by name.
        documented: Texts that describe the parameters.
    """

    def __init__(
        self,
        parameters: Sequence[Parameter],
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        documented: Sequence[str | None],
    ) -> None:
        self._parameters, self._args, self._kwargs = parameters, args, kwargs
        self._documented, self._kinds = documented, {p.kind for p in parameters}
        self._by_place = [p.name for p in parameters if p.kind in _BY_PLACE]
        self._by_name = [p.name for p in parameters if p.kind in _BY_NAME]
        self._given = {*self._by_place[: len(args)], *kwargs}

    def text(self) -> str:
        """Return the remarks, and the arguments of the function."""
        if not self._parameters:
            return "no argument"
        plain = [p.replace(annotation=Parameter.empty) for p in self._parameters]
        shown = [
            p if p.default is Parameter.empty else p.replace(default=_Omissible()) for p in plain
        ]
        return ", ".join([*self._all(), f"of the arguments {Signature(shown)}"])

    def _all(self) -> list[str]:
        """Return a remark on each fault of the call."""
        needed = [p.name for p in self._parameters if p.default is Parameter.empty]
        missing = [n for n in needed if n in {*self._by_place, *self._by_name} - self._given]
        remarks: list[str] = []
        for word in self._kwargs:
            if word not in self._by_name:
                names = names_here(word, self._by_name, ARGUMENTS)
                names = [name for name in names if name in missing] or names
                remarks += self._of_unknown(word, names)
                missing = [name for name in missing if name not in names]
        twice = [name for name in self._by_place[: len(self._args)] if name in self._kwargs]
        remarks += [f"{name} once, by its place or its name" for name in twice]
        return [*remarks, *self._of_surplus(), *map(self._described, missing)]

    def _of_unknown(self, word: str, names: Sequence[str]) -> Iterator[str]:
        groups = [text for p in self._parameters for text in _groups_with(p, word)]
        new = [self._described(name) for name in names if name not in self._given]
        if groups or new:
            yield f"{' or '.join([*new, *groups])} in place of {word}="
        elif names:
            yield f"no {word}= beside {' and '.join(names)}"
        elif is_direction(word) and "horizon" in self._by_name:
            yield f"no {word}= (larger values count as better)"
        elif Parameter.VAR_KEYWORD not in self._kinds:
            yield f"no {word}="

    def _of_surplus(self) -> Iterator[str]:
        surplus = self._args[len(self._by_place) :]
        if not surplus or not self._by_place or Parameter.VAR_POSITIONAL in self._kinds:
            return
        others = [name for name in self._by_name if name not in self._by_place]
        if others:
            yield f"each after {self._by_place[-1]} by its name, such as {others[0]}=.."
        else:
            yield f"none after {self._described(self._by_place[-1])}"

    def _described(self, name: str) -> str:
        """Return the name of an argument with the first part of what its documentation says."""
        pattern = rf"^    \**{name}: (.+?)(?=^ {{0,4}}\S|\Z)"
        for text in self._documented:
            entry = re.search(pattern, inspect.cleandoc(text or ""), re.M | re.S)
            if entry is not None:
                part = _END.split(" ".join(entry[1].split()))[0].replace("`", "")
                return f"{name}= ({part[:1].lower()}{part[1:]})"
        return f"{name}="


def _groups_with(parameter: Parameter, word: str) -> Iterator[str]:
    """Iterate over the options of an argument's class that have a word as their name."""
    if parameter.default is Parameter.empty:
        return
    for kind in get_args(parameter.annotation) or (parameter.annotation,):
        for group in _with_subclasses(get_origin(kind) or kind):
            if word in inspect.signature(group).parameters:
                yield f"{parameter.name}={group.__name__}({word}=..)"


def _with_subclasses(kind: Any) -> Iterator[type[Any]]:
    """Iterate over a class of the package and its public subclasses that can be made."""
    if not isinstance(kind, type) or not kind.__module__.startswith(f"{__package__}."):
        return
    if not inspect.isabstract(kind) and not kind.__name__.startswith("_"):
        yield kind
    derived: list[type[Any]] = type.__subclasses__(kind)
    for other in derived:
        yield from _with_subclasses(other)
