"""Libraries that adapters need, and the extras of the package that install them."""

import re
from importlib.metadata import PackageNotFoundError, requires, version

from botorch_costly.errors import MissingExtraError


def require(package: str, minimum: str, extra: str) -> None:
    """Raise unless a package is installed in a version that its adapter supports.

    Args:
        package: Name of the package in the package index.
        minimum: Smallest supported version.
        extra: Extra of ``botorch_costly`` that installs the package.

    Raises:
        MissingExtraError: If the package is missing or too old; the message says what to install.

    Example:
        >>> require("torch", "2.0", "none")
        >>> try:
        ...     require("no-such-package", "1.0", "none")
        ... except ImportError as error:
        ...     print(error.name, "is", error.received)
        no-such-package is not installed
    """
    try:
        installed = version(package)
    except PackageNotFoundError:
        installed = "not installed"
    is_new = installed != "not installed" and _numbers(installed) >= _numbers(minimum)
    if not is_new:
        wanted = " ".join(repr(name) for name in _names(extra) or [f"{package}>={minimum}"])
        expected = f"version {minimum} or newer: pip install {wanted}"
        raise MissingExtraError(package, expected, installed)


def _names(extra: str) -> list[str]:
    """Return the requirements of an extra; none if the package has no metadata, as in a copy of it."""
    try:
        lines = requires("botorch_costly") or []
    except PackageNotFoundError:
        return []
    pairs = (line.split(";", 1) for line in lines if ";" in line)
    named = re.compile(rf"extra == ['\"]{re.escape(extra)}['\"]")
    return [name.strip() for name, condition in pairs if named.search(condition)]


def _numbers(text: str) -> tuple[int, ...]:
    """Return the release numbers of a version."""
    return tuple(map(int, re.findall(r"\d+", re.split(r"[^\d.]", text)[0])))
