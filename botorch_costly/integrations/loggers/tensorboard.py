"""A log for TensorBoard; its extra is ``botorch_costly[tensorboard]``."""

import os
from typing import Any

from botorch_costly.integrations.extras import require
from botorch_costly.integrations.loggers.entry import LogEntry
from botorch_costly.integrations.loggers.logger import Logger


class TensorBoardLogger(Logger):
    """Writes the numbers of each round as scalars, the reasons and the choices as text.

    A run that is resumed hides what was written of the rounds that are played again. The folder is
    opened with the first entry, so that of the processes of a run only the one that logs writes it.

    Args:
        folder: Of the run, such as ``"runs/first"``.
        prefix: Of all names, so that they have a section of their own beside those of training.

    Raises:
        MissingExtraError: If TensorBoard is missing, or older than 2.14.
    """

    def __init__(self, folder: str | os.PathLike[str], *, prefix: str = "tuning") -> None:
        require("tensorboard", "2.14", "tensorboard")
        self.folder, self.prefix = os.fspath(folder), prefix
        self._first: int | None = None
        self._writer: Any = None
        self._said: dict[str, str] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_writer": None}  # another process opens a file of its own

    def begin(self, round: int) -> None:
        """Hide what was written of this round and later ones."""
        self.close()
        self._first = round
        self._said.clear()  # a text that is hidden is written again

    def log(self, entry: LogEntry) -> None:
        """Write the numbers, and the texts that changed."""
        if self._writer is None:
            from torch.utils.tensorboard import SummaryWriter

            # Event files are appended to; from the first round of a resumed run on they are purged.
            self._writer = SummaryWriter(self.folder, purge_step=self._first)
        for name, value in entry.numbers().items():
            self._writer.add_scalar(f"{self.prefix}/{name}", value, entry.round)
        for name, value in entry.row().items():
            changed = isinstance(value, str) and self._said.get(name) != value
            if changed:
                self._said[name] = value
                self._writer.add_text(f"{self.prefix}/{name}", value, entry.round)

    def close(self) -> None:
        """Write what is left, and close the folder."""
        if self._writer is not None:
            self._writer.close()
        self._writer, self._first = None, None
