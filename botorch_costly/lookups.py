"""Objects whose missing attributes, indices and loops are errors that say what to write."""

from typing import TYPE_CHECKING, ClassVar, NoReturn

from botorch_costly.errors import InvalidCallError, UnknownNameError
from botorch_costly.other_names import METHODS, names_here


def check_public(owner: object, name: str) -> None:
    """Raise Python's AttributeError for a private name: many programs look for such names."""
    if name.startswith("_"):
        message = f"{type(owner).__name__!r} object has no attribute {name!r}"
        raise AttributeError(message, name=name, obj=owner)


class Advising:
    """An object that names what stands for a missing attribute; it is no container of items."""

    _in_place_of_items: ClassVar[str] = "an attribute"

    def _instead(self, name: str) -> list[str]:
        """Return the attributes that stand for a missing one; none if they are unknown."""
        if name in ("save", "load") and hasattr(type(self), "state_dict"):
            return [f"state_dict, as in botorch_costly.{name}(path, part=..)"]
        return names_here(name, self._names(), METHODS)

    def _names(self) -> list[str]:
        return [name for name in dir(self) if not name.startswith("_")]

    if not TYPE_CHECKING:  # for a type checker such a class would have all attributes and items

        def __getattr__(self, name: str) -> NoReturn:
            """Raise UnknownNameError with what stands for the attribute."""
            check_public(self, name)
            kind = type(self)
            if hasattr(kind, name):  # a property raised an AttributeError: raise it again
                return object.__getattribute__(self, name)
            instead = " or ".join(self._instead(name))
            expected = (
                f"the attribute {instead}" if instead else f"one of {', '.join(self._names())}"
            )
            raise UnknownNameError(kind.__name__, expected, name)

        def __getitem__(self, key: object) -> NoReturn:
            """Raise InvalidCallError, also for a loop, for which Python looks for item 0."""
            instead = self._instead(key) if isinstance(key, str) else []
            received = "a loop" if type(key) is int and key == 0 else key
            expected = " or ".join(instead) or self._in_place_of_items
            raise InvalidCallError(type(self).__name__, expected, received)
