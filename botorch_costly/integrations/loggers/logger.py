"""Base of all loggers."""

from collections.abc import Collection

from botorch_costly.integrations.loggers.entry import LogEntry


class Logger:
    """Receives an entry per round; a subclass overrides ``log``, and other methods if needed.

    An error in a logger does not stop the run.

    Example:
        >>> class Printing(Logger):
        ...     def log(self, entry):
        ...         print(entry.round, entry.decision.reason)
    """

    def begin(self, round: int) -> None:
        """Prepare for entries, before the first of them.

        Args:
            round: The first round, not 0 in a resumed run. Entries of this round and later ones that were
                logged before are outdated.
        """

    def reopen(self, rounds: Collection[int]) -> None:
        """Remove the outcomes of earlier rounds, after ``begin``.

        These rounds have no outcome in the state of a resumed run: a logged one came after the state was
        saved, and may come again. A logger that cannot remove it gets two entries then.
        """

    def log(self, entry: LogEntry) -> None:
        """Log an entry.

        A late reward, after later rounds have been logged, makes another entry of its round.
        """

    def close(self) -> None:
        """Finish the log."""
