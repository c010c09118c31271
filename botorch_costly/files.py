"""Files that are replaced as a whole: if the process is killed meanwhile, the old file is left."""

import contextlib
import os
import re
import shutil
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

try:
    from fcntl import LOCK_EX, LOCK_NB, flock
except ImportError:  # without POSIX an open file cannot be removed, and age tells the rest
    _HAS_LOCKS = False
else:
    _HAS_LOCKS = True

_LEFT = 3600.0  # seconds after which an unfinished file counts as left where there are no locks
_LONGEST_NAME = 100  # characters of the target's name in that of its unfinished file


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that takes the place of ``path`` once everything is written.

    Until then it lies beside ``path`` under another name. After an error it is removed, and ``path`` is
    as it was. What a killed process left of an earlier attempt is removed, too; what another process is
    writing at the same time stays. A link is followed, and the permissions of a file that is replaced are
    kept.

    Args:
        path: The file to replace or make; its folder must exist.

    Raises:
        OSError: If the file cannot be written.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "state"
        >>> with replacing(path) as file:
        ...     _ = file.write(b"all of it")
        >>> path.read_bytes()
        b'all of it'
    """
    target = Path(os.path.realpath(path))
    _remove_what_is_left(target)
    unfinished, file = _begun(target)
    try:
        with _locked(file), file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # or a power failure could leave the new name and no content
            file.close()
            if target.exists():
                shutil.copymode(target, unfinished)
            os.replace(unfinished, target)
    except BaseException:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise


def _begun(target: Path) -> tuple[Path, BinaryIO]:
    """Return a new file beside the target, locked for as long as it is written."""
    while True:
        name = f".{target.name[:_LONGEST_NAME]}.{uuid.uuid4().hex}.part"
        unfinished = target.with_name(name)
        file = open(unfinished, "xb")  # noqa: SIM115  closed by its only caller
        with contextlib.suppress(OSError):  # a file system without locks
            _lock(file.fileno())
        if unfinished.exists():
            return unfinished, file
        file.close()  # another writer took it for one that was left before it was locked


@contextlib.contextmanager
def _locked(file: BinaryIO) -> Iterator[None]:
    """Hold the lock of a file beyond its closing: a copy of a descriptor shares it."""
    if not _HAS_LOCKS:
        yield
        return
    descriptor = os.dup(file.fileno())
    try:
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    if _HAS_LOCKS:
        flock(descriptor, LOCK_EX | LOCK_NB)


def _remove_what_is_left(target: Path) -> None:
    """Remove unfinished files of the target whose writers have ended."""
    name = re.escape(target.name[:_LONGEST_NAME])
    is_unfinished = re.compile(rf"\.{name}\.[0-9a-f]{{32}}\.part").fullmatch
    with contextlib.suppress(OSError), os.scandir(target.parent) as entries:
        for entry in [one for one in entries if is_unfinished(one.name)]:
            with contextlib.suppress(OSError):
                _remove_if_left(entry.path)


def _remove_if_left(path: str) -> None:
    """Remove a file unless it is being written.

    Raises:
        OSError: If another process holds its lock, or it cannot be opened or removed.
    """
    if not _HAS_LOCKS:
        if time.time() - os.stat(path).st_mtime > _LEFT:
            os.unlink(path)
        return
    with open(path, "rb") as file:
        _lock(file.fileno())
        os.unlink(path)
