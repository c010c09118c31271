"""A line with the progress of a run and its number of queries."""

import shutil
import sys
from typing import TextIO

from botorch_costly.calls import advised
from botorch_costly.errors import check_count
from botorch_costly.integrations.loggers.entry import LogEntry
from botorch_costly.integrations.loggers.logger import Logger

_WIDTH = 24  # characters of the bar
_LINES = 10  # number of lines in a stream that is no terminal


@advised
class ProgressBar(Logger):
    """Shows ``round 120/300 [#########...............] queries 73/200``.

    A terminal shows one line, which is rewritten each round. Other streams, such as the log of a job, get
    a line for each tenth of the run, or of a hundred rounds if the horizon is unknown.

    Args:
        stream: Stream of the output; the standard error if omitted.
        every: Rounds between lines in a stream that is no terminal.

    Raises:
        InvalidArgumentError: If ``every`` is no integer of at least 1.
    """

    def __init__(self, stream: TextIO | None = None, *, every: int | None = None) -> None:
        self._fixed = stream
        self._every = None if every is None else check_count("every", every, minimum=1)
        self._furthest, self._open = -1, False

    @property
    def _stream(self) -> TextIO:
        return sys.stderr if self._fixed is None else self._fixed

    def begin(self, round: int) -> None:
        """Continue from this round."""
        self._furthest = round - 1

    def log(self, entry: LogEntry) -> None:
        """Show the round, unless a later round has been shown."""
        if entry.round < self._furthest:
            return
        self._furthest = entry.round
        if self._stream.isatty():
            width = shutil.get_terminal_size().columns - 1
            self._stream.write("\r" + line_of(entry)[:width].ljust(width))
            self._open = True
        elif self._is_due(entry):
            self._stream.write(line_of(entry) + "\n")
        self._stream.flush()

    def close(self) -> None:
        """End the line."""
        if self._open:
            self._stream.write("\n")
            self._stream.flush()
        self._open = False

    def _is_due(self, entry: LogEntry) -> bool:
        done = entry.round + 1
        every = self._every or max((entry.horizon or 100 * _LINES) // _LINES, 1)
        return done % every == 0 or done == entry.horizon


def line_of(entry: LogEntry) -> str:
    """Return the line of an entry.

    Example:
        >>> from botorch_costly import Decision
        >>> decision = Decision(149, {"lr": 0.1}, query=False, reason="no rival")
        >>> line_of(LogEntry(decision=decision, queries=73, budget=200, horizon=300))
        'round 150/300 [############............] queries 73/200'
    """
    done, horizon = entry.round + 1, entry.horizon
    bar = ""
    if horizon is not None:
        filled = round(_WIDTH * done / horizon)
        bar = f" [{'#' * filled}{'.' * (_WIDTH - filled)}]"
    of = "" if horizon is None else f"/{horizon}"
    cap = "" if entry.budget is None else f"/{entry.budget}"
    reward = "" if entry.reward is None else f" reward {entry.reward:.4g}"
    is_reward = entry.metric == entry.reward  # as of twins
    metric = "" if entry.metric is None or is_reward else f" metric {entry.metric:.4g}"
    return f"round {done}{of}{bar} queries {entry.queries}{cap}{reward}{metric}"
