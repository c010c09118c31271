"""Objects that several threads may call, and that are copied and pickled without their lock."""

import copy
import functools
import io
import pickle
import threading
from collections.abc import Callable
from types import FunctionType
from typing import Any, Self, TypeVar

from botorch_costly.errors import InvalidArgumentError

R = TypeVar("R")


class Serial:
    """An object whose public calls run one after the other, from whichever thread they come.

    Its constructor, its public methods and its properties hold a lock of the object.
    """

    _lock: Any  # a threading.RLock

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Return an object that has its lock before the constructor runs."""
        made = super().__new__(cls)
        made._lock = threading.RLock()
        return made

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name, member in list(vars(cls).items()):
            public = name == "__init__" or not name.startswith("_")
            if public and isinstance(member, FunctionType):
                setattr(cls, name, _alone(member))
            elif public and type(member) is property and member.fget is not None:
                setattr(cls, name, property(_alone(member.fget), member.fset, doc=member.__doc__))

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return an independent copy; options that cannot be pickled are no obstacle."""
        other = type(self).__new__(type(self))
        memo[id(self)] = other
        with self._lock:
            other.__setstate__(copy.deepcopy(self.__getstate__(), memo))
        return other

    def __copy__(self) -> Self:
        """Return a deep copy, for two tuners must not share a model."""
        return copy.deepcopy(self)


class Whole(Serial):
    """A serial object that is pickled as bytes.

    A queue, or the start of a process, would otherwise move its tensors into shared memory, where the two
    processes would overwrite each other's models.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        with self._lock:
            try:
                return _revived, (type(self), _bytes_of(self))
            except (pickle.PicklingError, AttributeError, TypeError) as error:
                expected = (
                    "options that can be pickled, such as a function of a module for a lambda"
                )
                raise InvalidArgumentError(type(self).__name__, expected, str(error)) from error


def _alone(call: Callable[..., R]) -> Callable[..., R]:
    @functools.wraps(call)
    def held(self: Serial, *args: Any, **kwargs: Any) -> R:
        with self._lock:
            return call(self, *args, **kwargs)

    return held


class _Pickler(pickle.Pickler):
    """Pickles the attributes of an object, with a mark in place of references to the object itself."""

    def __init__(self, file: io.BytesIO, whole: Whole) -> None:
        super().__init__(file)
        self._whole = whole

    def persistent_id(self, item: object) -> bool | None:
        """Return a mark for the object itself, None for anything else."""
        return True if item is self._whole else None


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, whole: Whole) -> None:
        super().__init__(file)
        self._whole = whole

    def persistent_load(self, mark: object) -> Whole:
        """Return the object that the mark stands for."""
        return self._whole


def _bytes_of(whole: Whole) -> bytes:
    file = io.BytesIO()
    _Pickler(file, whole).dump(whole.__getstate__())
    return file.getvalue()


def _revived(kind: type[Whole], state: bytes) -> Whole:
    whole = kind.__new__(kind)
    whole.__setstate__(_Unpickler(io.BytesIO(state), whole).load())
    return whole
