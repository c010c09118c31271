"""Public names that are imported when they are first used: a program waits for those that it uses."""

import importlib
import sys
import threading
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from types import ModuleType
from typing import Any

from botorch_costly.other_names import CLASSES, names_here

# If two threads each wait for a module that the other imports, Python gives them incomplete modules: only
# the thread with this lock imports. No module of the package uses such a name while it is imported: its
# thread would wait for the lock, and the thread with the lock for the module.
_lock = threading.RLock()


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
        The two functions. The first raises ``AttributeError`` for other names; the second lists the
        package's ``__all__`` and what Python adds, without the modules that happen to be imported.
    """
    places = {name: module for module, of_module in names.items() for name in of_module}

    def find(name: str) -> Any:
        if name in places:
            module = _imported(f"{package}.{places[name]}")
            value = getattr(module, name)
            setattr(sys.modules[package], name, value)  # the next use does not come here
            return value
        may_be_module = name.isidentifier() and not name.startswith("_")
        if may_be_module and find_spec(f"{package}.{name}") is not None:
            return _imported(f"{package}.{name}")
        meant = [] if name.startswith("_") else names_here(name, list(places), CLASSES)
        hint = f"; it is called {' or '.join(meant)}" if meant else ""
        raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")

    def listed() -> list[str]:
        known = vars(sys.modules[package])
        return sorted([*known["__all__"], *(name for name in known if name.startswith("__"))])

    return find, listed


def _imported(module: str) -> ModuleType:
    """Return a module; another thread that uses a name first waits for it."""
    with _lock:
        return importlib.import_module(module)
