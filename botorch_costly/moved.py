"""Names that are in another room now: their earlier places work for one version, and warn."""

import importlib
import warnings
from collections.abc import Callable, Collection
from typing import Any


def moved_names(room: str, place: str, names: Collection[str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a room from which names have moved.

    Args:
        room: Full name of the module where they were.
        place: Full name of the module where they are.
        names: The names.
    """

    def find(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {room!r} has no attribute {name!r}")
        message = f"`{name}` is in `{place}` now."
        warnings.warn(message, FutureWarning, stacklevel=2)
        return getattr(importlib.import_module(place), name)

    return find
