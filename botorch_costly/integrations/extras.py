"""Libraries that adapters need, and the extras of the package that bring them."""

import re
from importlib.metadata import PackageNotFoundError, version

from botorch_costly.errors import MissingExtraError, check


def require(package: str, minimum: str, extra: str) -> None:
    """Raise unless a package is installed in a version that its adapter is made for.

    Args:
        package: Its name in the package index.
        minimum: The smallest version.
        extra: Of ``botorch_costly``, which brings it.

    Raises:
        MissingExtraError: With what to install.

    Example:
        >>> require("torch", "2.0", "none")
        >>> try:
        ...     require("no-such-package", "1.0", "none")
        ... except ImportError as error:
        ...     print(error.name, "is", error.received)
        no-such-package is not installed
    """
    try:
        found = version(package)
    except PackageNotFoundError:
        found = "not installed"
    new = found != "not installed" and _numbers(found) >= _numbers(minimum)
    expected = f"version {minimum} or newer, which pip install 'botorch_costly[{extra}]' brings"
    check(new, package, expected, found, MissingExtraError)


def _numbers(text: str) -> tuple[int, ...]:
    """Return the release of a version, as numbers."""
    return tuple(map(int, re.findall(r"\d+", re.split(r"[^\d.]", text)[0])))
