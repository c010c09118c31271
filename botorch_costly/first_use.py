"""Public names that are imported when they are first used: a program waits for those that it uses."""

import importlib
import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any


def on_first_use(
    package: str, names: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the ``__getattr__`` and the ``__dir__`` of a package whose names are imported when used.

    Modules of the package are imported in the same way, so that ``package.module.Name`` works without an
    import of its own.

    References:
        Levkivskyi, *PEP 562: Module __getattr__ and __dir__*, 2017.

    Args:
        package: Full name of the package.
        names: The public names in each module, by the module's name within the package.

    Returns:
        The two functions. The first raises ``AttributeError`` for other names.
    """
    places = {name: module for module, of_module in names.items() for name in of_module}

    def find(name: str) -> Any:
        if name in places:
            module = importlib.import_module(f"{package}.{places[name]}")
            value = getattr(module, name)
            setattr(sys.modules[package], name, value)  # the next use does not come here
            return value
        if not name.startswith("_") and find_spec(f"{package}.{name}") is not None:
            return importlib.import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    def listed() -> list[str]:
        return sorted(places.keys() | vars(sys.modules[package]).keys())

    return find, listed
