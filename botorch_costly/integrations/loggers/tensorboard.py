"""A log for TensorBoard; its extra is ``botorch_costly[tensorboard]``."""

import os
from typing import Any

from botorch_costly.calls import advised
from botorch_costly.integrations.extras import require
from botorch_costly.integrations.loggers.entry import LogEntry
from botorch_costly.integrations.loggers.logger import Logger


@advised
class TensorBoardLogger(Logger):
    """Writes the numbers of each round as scalars, and reasons and choices as text.

    A resumed run hides the entries of rounds that are played again. The folder is opened with the first
    entry, so that only the logging process of a run writes it.

    Args:
        folder: Folder of the run, such as ``"runs/first"``.
        prefix: Prefix of all names, so that they form a section beside the values of training.

    Raises:
        MissingExtraError: If TensorBoard is missing, or older than 2.14.
    """

    def __init__(self, folder: str | os.PathLike[str], *, prefix: str = "tuning") -> None:
        require("tensorboard", "2.14", "tensorboard")
        self.folder, self.prefix = os.fspath(folder), prefix
        self._first: int | None = None
        self._writer: Any = None
        self._texts: dict[str, str] = {}  # the latest ones, by name

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_writer": None}  # another process opens its own file

    def begin(self, round: int) -> None:
        """Hide earlier entries of this round and later ones."""
        self.close()
        self._first = round
        self._texts.clear()  # a hidden text is written again

    def log(self, entry: LogEntry) -> None:
        """Write the numbers and the changed texts."""
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            # Event files grow only; purging hides old entries from the first round of a resumed run on.
            self._writer = SummaryWriter(self.folder, purge_step=self._first)
        for name, value in entry.numbers().items():
            self._writer.add_scalar(f"{self.prefix}/{name}", value, entry.round)
        for name, value in entry.row().items():
            if isinstance(value, str) and self._texts.get(name) != value:
                self._texts[name] = value
                self._writer.add_text(f"{self.prefix}/{name}", value, entry.round)

    def close(self) -> None:
        """Write pending entries, and close the folder."""
        if self._writer is not None:
            self._writer.close()
        self._writer, self._first = None, None
