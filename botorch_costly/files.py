"""Files that are replaced as a whole: if the process is killed meanwhile, the old file is left."""

import contextlib
import os
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that takes the place of ``path`` once everything is written.

    Until then it lies beside ``path`` under another name. After an error it is removed, and ``path`` is
    as it was. A link is followed, and the permissions of a file that is replaced are kept.

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
    unfinished = target.with_name(f".{uuid.uuid4().hex}.part")
    try:
        with open(unfinished, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # or a power failure could leave the new name and no content
        if target.exists():
            shutil.copymode(target, unfinished)
        os.replace(unfinished, target)
    except BaseException:
        with contextlib.suppress(OSError):
            unfinished.unlink()
        raise
