"""Atomic replacement of files: if the process is killed while it writes, the old file remains."""

import contextlib
import itertools
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
except ImportError:  # no POSIX: an open file cannot be removed there, so its age is sufficient
    _HAS_LOCKS = False
else:
    _HAS_LOCKS = True

_ABANDONED = 3600.0  # seconds after which an unfinished file counts as abandoned without locks
_LONGEST_NAME = 100  # characters of the target's name in the name of its unfinished file


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that replaces ``path`` when the context ends.

    Until then it is beside ``path`` under another name. After an error it is removed, and ``path`` is
    unchanged. Unfinished files of killed processes are removed as well, those of concurrent writers are
    not. Links are followed, and the permissions of a replaced file are kept.

    Args:
        path: The file to replace or create; its folder must exist.

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
    _remove_abandoned(target)
    unfinished, file = _new_file(target)
    try:
        with _locked(file), file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # else a power failure could leave the new name without content
            file.close()
            if target.exists():
                shutil.copymode(target, unfinished)
            os.replace(unfinished, target)
    except BaseException:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise


def backup_of(path: str | os.PathLike[str]) -> Path:
    """Keep a file that is about to be replaced as ``<name>.1``, ``.2`` and so on; return the new path.

    Both names are of one file until it is replaced, so that it is at ``path`` at every moment.

    Raises:
        OSError: If the folder takes no further file.
    """
    target = Path(os.path.realpath(path))
    for kept in numbered(target):
        try:
            os.link(target, kept)
        except FileExistsError:
            # The same file is there if a process ended before it replaced the target.
            if not kept.samefile(target):
                continue
        except OSError:  # a disk without links
            if kept.exists():
                continue
            shutil.copy2(target, kept)
        break
    return kept


def numbered(path: Path) -> Iterator[Path]:
    """Yield the names under which earlier files are kept: ``<name>.1``, ``<name>.2`` and so on."""
    return (path.with_name(f"{path.name}.{number}") for number in itertools.count(1))


def _new_file(target: Path) -> tuple[Path, BinaryIO]:
    """Return a new, locked file beside the target."""
    while True:
        name = f".{target.name[:_LONGEST_NAME]}.{uuid.uuid4().hex}.part"
        unfinished = target.with_name(name)
        file = open(unfinished, "xb")  # noqa: SIM115  closed by its only caller
        with contextlib.suppress(OSError):  # a file system without locks
            _lock(file.fileno())
        if unfinished.exists():
            return unfinished, file
        file.close()  # before the lock another writer removed it as abandoned


@contextlib.contextmanager
def _locked(file: BinaryIO) -> Iterator[None]:
    """Hold the lock of a file until the context ends, even if the file is closed before.

    A copy of the descriptor shares the lock.
    """
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


def _remove_abandoned(target: Path) -> None:
    """Remove unfinished files of the target whose writers have ended."""
    name = re.escape(target.name[:_LONGEST_NAME])
    is_unfinished = re.compile(rf"\.{name}\.[0-9a-f]{{32}}\.part").fullmatch
    with contextlib.suppress(OSError), os.scandir(target.parent) as entries:
        for path in [entry.path for entry in entries if is_unfinished(entry.name)]:
            with contextlib.suppress(OSError):
                _remove_unless_open(path)


def _remove_unless_open(path: str) -> None:
    """Remove a file unless a process writes to it.

    Raises:
        OSError: If another process holds its lock, or it cannot be opened or removed.
    """
    if not _HAS_LOCKS:
        if time.time() - os.stat(path).st_mtime > _ABANDONED:
            os.unlink(path)
        return
    with open(path, "rb") as file:
        _lock(file.fileno())
        os.unlink(path)
